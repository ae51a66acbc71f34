"""Translation of whole id columns into row ids of a node table, for millions of ids.

A hash only proposes a row: an id matches when its length and every byte agree, so a hash collision
can cost time but must never change a result.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from .rows import NULL, Ids

Words = npt.NDArray[np.uint64]
_WIDEST = 64  # bytes; longer ids use Arrow's hash table, which is slower per id
_ROUNDS = 12
_BLOCK = 1 << 16  # ids at a time: intermediate arrays stay in the processor's cache
_ROW = np.uint64((1 << 48) - 1)
_MIX = np.uint64(0x9E3779B97F4A7C15)
# Mask of the bytes of a word that belong to an id with this many bytes left.
_MASKS = np.array([(1 << (8 * n)) - 1 for n in range(9)], np.uint64)


@dataclass(frozen=True, slots=True)
class _Texts:
    """Strings as words of eight bytes, zero-padded, and their lengths."""

    words: tuple[Words, ...]
    lengths: Words

    def at(self, places: Any) -> "_Texts":
        return _Texts(tuple(one.take(places) for one in self.words), self.lengths.take(places))

    def hashes(self) -> Words:
        mixed = self.lengths.copy()
        for one in self.words:
            mixed = (mixed ^ one) * _MIX
            mixed ^= mixed >> np.uint64(29)
        return mixed * _MIX


@dataclass(frozen=True, slots=True)
class _Round:
    """A hash table with at most one id position per slot; -1 marks an empty slot."""

    slots: npt.NDArray[np.int32]
    shift: np.uint64


class Encoder:
    """Maps ids to row ids of one node table.

    >>> found = Encoder(pa.array(["ann", "bob"]), np.array([7, 3])).encode(pa.array(["bob", "x"]))
    >>> found.tolist()
    [3, -1]
    """

    def __init__(self, ids: pa.Array, rows: Ids) -> None:
        self._ids, self._rows = ids, rows
        self._rounds: list[_Round] = []
        longest = _longest(ids)
        self._width = -(-longest // 8)
        self._by_words = False
        if len(ids) and longest <= _WIDEST and int(rows.max()) < 1 << 48:
            known = _texts(ids, self._width)
            # Length, row and words of an id are stored together: one distant memory read per probe.
            about = (known.lengths << np.uint64(48)) | rows.astype(np.uint64)
            self._records = np.column_stack([about, *known.words])
            self._by_words = self._fill(known.hashes())

    def _fill(self, hashes: Words) -> bool:
        """Place every id in a slot; ids displaced by another id go to the next hash table."""
        left = np.arange(len(hashes), dtype=np.int32)
        while len(left) and len(self._rounds) < _ROUNDS:
            bits = max(4, (4 * len(left)).bit_length())
            one = _Round(np.full(1 << bits, -1, np.int32), np.uint64(64 - bits))
            at = hashes >> one.shift
            one.slots[at] = left
            self._rounds.append(one)
            lost = np.flatnonzero(one.slots[at] != left)
            left, hashes = left[lost], _rehash(hashes[lost])
        return len(left) == 0

    def encode(self, column: pa.Array | pa.ChunkedArray) -> Ids:
        """Return the row id of each id, -1 if it does not exist."""
        chunks = column.chunks if isinstance(column, pa.ChunkedArray) else [column]
        parts = [self._chunk(one) for one in chunks]
        return np.concatenate(parts) if parts else np.empty(0, np.int64)

    def _chunk(self, chunk: pa.Array) -> Ids:
        if not self._by_words or chunk.null_count:
            return self._by_arrow(chunk)
        found = np.empty(len(chunk), np.int64)
        for at in range(0, len(chunk), _BLOCK):
            found[at : at + _BLOCK] = self._block(chunk.slice(at, _BLOCK))
        return found

    def _block(self, block: pa.Array) -> Ids:
        asked = _texts(block, self._width)
        hashes = asked.hashes()
        found = np.full(len(block), NULL, np.int64)
        left: npt.NDArray[np.intp] | None = None
        for one in self._rounds:
            proposed = one.slots.take(hashes >> one.shift, mode="wrap")
            rows, same = self._verified(proposed, asked)
            if left is None:
                found[:] = np.where(same, rows, NULL)
            else:
                found[left[same]] = rows[same]
            other = np.flatnonzero(~same)
            if len(other) == 0:
                break
            left = other if left is None else left[other]
            asked, hashes = asked.at(other), _rehash(hashes[other])
        return found

    def _verified(
        self, proposed: npt.NDArray[np.int32], asked: _Texts
    ) -> tuple[Ids, npt.NDArray[np.bool_]]:
        """Return the rows of proposed positions, and a mask of correct proposals.

        An empty slot proposes -1, the last id; the comparison rejects it like any other mismatch.
        """
        known = np.take(self._records, proposed, axis=0, mode="wrap")
        about = known[:, 0]
        same: npt.NDArray[np.bool_] = (about >> np.uint64(48)) == asked.lengths
        for at, words in enumerate(asked.words):
            same &= known[:, at + 1] == words
        return (about & _ROW).view(np.int64), same

    def _by_arrow(self, chunk: pa.Array) -> Ids:
        import pyarrow.compute as pc

        places = pc.index_in(chunk, value_set=self._ids, skip_nulls=True)
        at: Ids = places.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64)
        if len(self._rows) == 0:
            return at
        return np.where(at < 0, NULL, self._rows[at])


def encoder_of(ids: Sequence[pa.Array] | pa.ChunkedArray, rows: Ids) -> Encoder:
    """Build an encoder for a scanned id column."""
    chunks = ids.chunks if isinstance(ids, pa.ChunkedArray) else list(ids)
    return Encoder(pa.concat_arrays(chunks) if chunks else pa.array([], pa.string()), rows)


def _rehash(hashes: Words) -> Words:
    turned = (hashes ^ (hashes >> np.uint64(31))) * np.uint64(0xD6E8FEB86659FD93)
    return turned ^ (turned >> np.uint64(27))


def _longest(ids: pa.Array) -> int:
    if len(ids) == 0:
        return 0
    return int(np.diff(_offsets(ids)).max())


def _offsets(texts: pa.Array) -> npt.NDArray[np.int64]:
    kind = np.int64 if pa.types.is_large_string(texts.type) else np.int32
    buffer = texts.buffers()[1]
    whole = np.frombuffer(buffer, kind, count=texts.offset + len(texts) + 1)
    return whole[texts.offset :].astype(np.int64)


def _texts(texts: pa.Array, width: int) -> _Texts:
    """Pack strings into `word_count` words; longer ones keep their length and thus never match."""
    offsets = _offsets(texts)
    lengths = np.diff(offsets)
    # Eight bytes of padding allow a full word to be read at every position of the data.
    first, last = int(offsets[0]), int(offsets[-1])
    data = np.zeros(last - first + 8, np.uint8)
    buffer = texts.buffers()[2]
    if buffer is not None and last > first:
        data[:-8] = np.frombuffer(buffer, np.uint8, count=last)[first:]
    windows = np.ndarray((len(data) - 7,), np.dtype("<u8"), data, strides=(1,))
    begins = offsets[:-1] - first
    length = int(lengths[0]) if len(lengths) else 0
    if len(lengths) and length and (lengths == length).all():
        return _even_texts(windows, length, width, len(lengths))
    words = []
    for at in range(0, 8 * width, 8):
        rest = np.clip(lengths - at, 0, 8)
        place = np.minimum(begins + at, len(windows) - 1)
        words.append((windows[place] & _MASKS[rest]).astype(np.uint64, copy=False))
    return _Texts(tuple(words), lengths.astype(np.uint64))


def _even_texts(windows: Words, length: int, width: int, count: int) -> _Texts:
    """Pack strings of equal length: their words lie at a constant stride."""
    words = []
    for at in range(0, 8 * width, 8):
        if at < length:
            words.append(windows[at::length][:count] & _MASKS[min(length - at, 8)])
        else:
            words.append(np.zeros(count, np.uint64))
    return _Texts(tuple(words), np.full(count, length, np.uint64))
