"""A set of ids in which each id is packed into a few eight-byte words, so that a lookup reads one row of a matrix.

This module defines how ids are packed: their bytes, then the byte 0x80, then zeros. Two ids have the same words only if
they are equal, so matching hashes are confirmed by comparing only the words. Sets with long ids use `hashed_ids`
instead, because every row of the matrix is as wide as the longest id.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from .text_hashes import WORD_BYTES, Int64Array, TextArray, UInt64Array

MAX_PACKED_BYTES = 47  # maximum length of an id in bytes, which needs six words
_END_BYTE = 0x80
_FIRST_MULTIPLIER, _SECOND_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xBF58476D1CE4E5B9)
_MIX_SHIFT, _FINAL_SHIFT = np.uint64(32), np.uint64(29)
# The bits that a word keeps, and the bits that mark the end of the id. The index is the number of bytes from the start
# of the word to the end of the id, plus one. The first entry is for words after the end.
_KEPT_BITS = np.array([0, *((1 << 8 * size) - 1 for size in range(WORD_BYTES + 1))], np.uint64)
_END_BITS = np.array([0, *(_END_BYTE << 8 * size for size in range(WORD_BYTES)), 0], np.uint64)


@dataclass(frozen=True, slots=True)
class PackedIds:
    """Packed ids in the order of their hashes. `prefix_starts` contains the start position of each hash prefix."""

    id_words: UInt64Array  # one row per id
    prefix_starts: npt.NDArray[np.uint32]
    has_repeated_hash: bool

    @classmethod
    def build(cls, texts: TextArray) -> Self:
        """Build the set; no id may be longer than `MAX_PACKED_BYTES`."""
        word_count = int(texts.lengths.max(initial=0)) // WORD_BYTES + 1
        word_columns = pack_words(texts, word_count)
        hashes = hash_words(word_columns)
        prefix_bits = len(texts).bit_length() + 1
        prefix_counts = np.bincount((hashes >> _prefix_shift(prefix_bits)).astype(np.int64), minlength=1 << prefix_bits)
        sort_order = np.argsort(hashes)
        hashes = hashes[sort_order]
        return cls(
            np.stack([word_column[sort_order] for word_column in word_columns], axis=1),
            np.append(0, np.cumsum(prefix_counts)).astype(np.uint32),
            bool((hashes[1:] == hashes[:-1]).any()),
        )

    def missing_positions(self, texts: TextArray) -> Int64Array:
        """Return the positions of the strings that are not among the ids, in ascending order."""
        if not len(self.id_words):
            return np.arange(len(texts))
        word_count = self.id_words.shape[1]
        word_columns = pack_words(texts, word_count)
        prefixes = (hash_words(word_columns) >> _prefix_shift(_prefix_bits(self.prefix_starts))).astype(np.int64)
        candidates = self.prefix_starts.take(prefixes).astype(np.int64)
        is_present = self._have_words(candidates, word_columns)
        pending = np.flatnonzero(~is_present)
        candidates, ends = candidates[pending], self.prefix_starts.take(prefixes[pending] + 1)
        while len(pending):
            candidates += 1
            has_candidate = candidates < ends
            pending, candidates, ends = pending[has_candidate], candidates[has_candidate], ends[has_candidate]
            is_match = self._have_words(candidates, [word_column[pending] for word_column in word_columns])
            is_present[pending[is_match]] = True
            pending, candidates, ends = pending[~is_match], candidates[~is_match], ends[~is_match]
        if int(texts.lengths.max(initial=0)) >= word_count * WORD_BYTES:  # these strings are longer than every id
            is_present &= texts.lengths < word_count * WORD_BYTES
        return np.flatnonzero(~is_present)

    def _have_words(self, positions: Int64Array, word_columns: Sequence[UInt64Array]) -> npt.NDArray[np.bool_]:
        """For each position, return whether the id at that position consists of the given words."""
        rows = self.id_words.take(positions, axis=0, mode="clip")
        is_equal: npt.NDArray[np.bool_] = rows[:, 0] == word_columns[0]
        for column_index in range(1, len(word_columns)):
            is_equal &= rows[:, column_index] == word_columns[column_index]
        return is_equal


def can_pack(texts: TextArray) -> bool:
    """Return whether all strings are short enough to be packed."""
    return int(texts.lengths.max(initial=0)) <= MAX_PACKED_BYTES


def pack_words(texts: TextArray, word_count: int) -> list[UInt64Array]:
    """Return the words of each string, one array per word. A string that is too long for its words is truncated.

    >>> import pyarrow as pa
    >>> [hex(word) for word in pack_words(TextArray.from_arrow(pa.array(["a", ""])), 1)[0].tolist()]
    ['0x8061', '0x80']
    """
    if not len(texts):
        return [np.zeros(0, np.uint64)] * word_count
    byte_offsets = range(0, word_count * WORD_BYTES, WORD_BYTES)
    first_length, last_start = int(texts.lengths[0]), int(texts.starts[-1])
    has_equal_lengths = bool((texts.lengths == first_length).all())
    if has_equal_lengths and last_start - int(texts.starts[0]) == first_length * (len(texts) - 1):
        return [_pack_equal_lengths(texts, first_length, byte_offset) for byte_offset in byte_offsets]
    return [_pack_word(texts, byte_offset) for byte_offset in byte_offsets]


def _pack_equal_lengths(texts: TextArray, length: int, byte_offset: int) -> UInt64Array:
    """Return one word of each string. The strings are adjacent, so they are read with a fixed stride."""
    bits_index = min(max(length - byte_offset, -1), WORD_BYTES) + 1
    if byte_offset >= length:
        return np.full(len(texts), _END_BITS[bits_index])
    start = int(texts.starts[0]) + byte_offset
    words: Any = np.ndarray((len(texts),), "<u8", texts.data, offset=start, strides=(length,))
    packed: UInt64Array = words & _KEPT_BITS[bits_index]
    packed |= _END_BITS[bits_index]
    return packed


def _pack_word(texts: TextArray, byte_offset: int) -> UInt64Array:
    bits_index = np.clip(texts.lengths - (byte_offset - 1), 0, WORD_BYTES + 1)
    packed: UInt64Array = texts.words.take(texts.starts + byte_offset, mode="clip")
    packed &= _KEPT_BITS.take(bits_index)
    packed |= _END_BITS.take(bits_index)
    return packed


def hash_words(word_columns: Sequence[UInt64Array]) -> UInt64Array:
    """Return a hash of each string's words."""
    hashes: UInt64Array = word_columns[0] * _FIRST_MULTIPLIER
    for word_column in word_columns[1:]:
        hashes ^= hashes >> _MIX_SHIFT
        hashes ^= word_column
        hashes *= _SECOND_MULTIPLIER
    hashes ^= hashes >> _FINAL_SHIFT
    hashes *= _FIRST_MULTIPLIER
    hashes ^= hashes >> _MIX_SHIFT
    return hashes


def _prefix_bits(prefix_starts: npt.NDArray[np.uint32]) -> int:
    return (len(prefix_starts) - 1).bit_length() - 1


def _prefix_shift(prefix_bits: int) -> np.uint64:
    return np.uint64(64 - prefix_bits)
