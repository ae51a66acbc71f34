"""Hash and compare all strings in an Arrow column, eight bytes at a time.

This module defines how ids are hashed. A string's hash is the same in every process and on every machine, but strings
with equal hashes must still be compared. Only loads use these hashes.
"""

from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import pyarrow as pa

UInt64Array = npt.NDArray[np.uint64]
Int64Array = npt.NDArray[np.int64]

WORD_BYTES = 8
_LONG_TEXT_BYTES = 256  # maximum length in bytes; longer strings are hashed one by one
_WORD_MASKS = np.array([(1 << 8 * size) - 1 for size in range(WORD_BYTES + 1)], np.uint64)
_FIRST_MULTIPLIER, _SECOND_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xBF58476D1CE4E5B9)
_MIX_SHIFT, _FINAL_SHIFT = np.uint64(32), np.uint64(29)


@dataclass(frozen=True, slots=True)
class TextArray:
    """An array of strings: their bytes, followed by eight bytes of padding, and each string's start and length."""

    data: npt.NDArray[np.uint8]
    starts: Int64Array
    lengths: Int64Array

    @classmethod
    def from_arrow(cls, column: pa.Array) -> Self:
        """Convert an Arrow array of strings, which must not contain nulls."""
        offset_type = np.dtype(np.int64 if pa.types.is_large_string(column.type) else np.int32)
        _, offset_buffer, value_buffer = column.buffers()
        if not len(column) or offset_buffer is None:
            return cls(np.zeros(WORD_BYTES, np.uint8), np.zeros(0, np.int64), np.zeros(0, np.int64))
        skipped_bytes = column.offset * offset_type.itemsize
        offsets = np.frombuffer(offset_buffer, offset_type, len(column) + 1, skipped_bytes).astype(np.int64)
        first_byte, last_byte = int(offsets[0]), int(offsets[-1])
        padded_bytes = np.zeros(last_byte - first_byte + WORD_BYTES, np.uint8)
        if last_byte > first_byte:
            padded_bytes[:-WORD_BYTES] = np.frombuffer(value_buffer, np.uint8, last_byte - first_byte, first_byte)
        return cls(padded_bytes, offsets[:-1] - first_byte, np.diff(offsets))

    def __len__(self) -> int:
        return len(self.starts)

    @property
    def words(self) -> UInt64Array:
        """The eight-byte word that begins at each byte."""
        return np.ndarray((len(self.data) - WORD_BYTES + 1,), "<u8", self.data, strides=(1,))

    def take(self, positions: Any) -> "TextArray":
        """Return some of the strings, in an array that shares its bytes with this array."""
        return TextArray(self.data, self.starts[positions], self.lengths[positions])


def hash_texts(texts: TextArray) -> UInt64Array:
    """Return a hash for each string.

    >>> first, second, third = hash_texts(TextArray.from_arrow(pa.array(["a", "b", "a"])))
    >>> bool(first == third), bool(first == second)
    (True, False)
    """
    words = texts.words
    hash_values = texts.lengths.astype(np.uint64) * _FIRST_MULTIPLIER
    max_length = int(texts.lengths.max(initial=0))
    for byte_offset in range(0, min(max_length, _LONG_TEXT_BYTES), WORD_BYTES):
        selected = _select_texts_reaching(texts, byte_offset)
        word_values = words[texts.starts[selected] + byte_offset]
        word_values &= _WORD_MASKS[np.minimum(texts.lengths[selected] - byte_offset, WORD_BYTES)]
        mixed_values = (hash_values[selected] ^ word_values) * _SECOND_MULTIPLIER
        mixed_values ^= mixed_values >> _MIX_SHIFT
        hash_values[selected] = mixed_values
    if max_length > _LONG_TEXT_BYTES:
        _hash_long_texts(texts, hash_values)
    hash_values *= _FIRST_MULTIPLIER
    return hash_values ^ (hash_values >> _FINAL_SHIFT)


def texts_equal(left_texts: TextArray, right_texts: TextArray) -> npt.NDArray[np.bool_]:
    """Return a mask of the positions at which two arrays of the same size have equal strings."""
    is_equal: npt.NDArray[np.bool_] = left_texts.lengths == right_texts.lengths
    left_words, right_words = left_texts.words, right_texts.words
    for byte_offset in range(0, int(left_texts.lengths.max(initial=0)), WORD_BYTES):
        selected = _select_texts_reaching(left_texts, byte_offset)
        if not isinstance(selected, slice):
            selected = selected[is_equal[selected]]
        differing_bits = left_words[left_texts.starts[selected] + byte_offset]
        # The right string may be shorter than the left one. If it ends before this offset, its first word is read
        # instead.
        right_positions = right_texts.starts[selected] + np.where(is_equal[selected], byte_offset, 0)
        differing_bits ^= right_words[np.minimum(right_positions, len(right_words) - 1)]
        differing_bits &= _WORD_MASKS[np.minimum(left_texts.lengths[selected] - byte_offset, WORD_BYTES)]
        is_equal[selected] &= differing_bits == 0
    return is_equal


def _select_texts_reaching(texts: TextArray, byte_offset: int) -> Any:
    """Return a NumPy index that selects the strings that extend beyond the given byte offset."""
    reaches_offset = texts.lengths > byte_offset
    return slice(None) if reaches_offset.all() else np.flatnonzero(reaches_offset)


def _hash_long_texts(texts: TextArray, hash_values: UInt64Array) -> None:
    for text_index in np.flatnonzero(texts.lengths > _LONG_TEXT_BYTES):
        start = texts.starts[text_index]
        text_bytes = texts.data[start : start + texts.lengths[text_index]].tobytes()
        hash_values[text_index] ^= np.uint64(
            int.from_bytes(blake2b(text_bytes, digest_size=WORD_BYTES).digest(), "little")
        )
