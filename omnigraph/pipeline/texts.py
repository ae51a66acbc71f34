"""Arrow texts as machine words: hashed and compared eight bytes at a time, a whole column at once.

Owns the hash of an id. It is the same in every process and on every machine, but it proves nothing:
texts with equal hashes must still be compared.
"""

from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Numbers = npt.NDArray[np.uint64]
Places = npt.NDArray[np.int64]

_WORD = 8
_LONG = 256  # longer texts are hashed one by one
_MASKS = np.array([(1 << 8 * size) - 1 for size in range(_WORD + 1)], np.uint64)
_FIRST, _SECOND = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xBF58476D1CE4E5B9)
_HALF, _LESS = np.uint64(32), np.uint64(29)


@dataclass(frozen=True, slots=True)
class Texts:
    """Texts as their bytes, padded by eight, with the start and length of each."""

    data: npt.NDArray[np.uint8]
    starts: Places
    lengths: Places

    @classmethod
    def of(cls, column: pa.Array) -> Self:
        """Convert a column without nulls."""
        kind = np.dtype(np.int64 if pa.types.is_large_string(column.type) else np.int32)
        _, ends, data = column.buffers()
        if not len(column) or ends is None:
            return cls(np.zeros(_WORD, np.uint8), np.zeros(0, np.int64), np.zeros(0, np.int64))
        skipped = column.offset * kind.itemsize
        offsets = np.frombuffer(ends, kind, len(column) + 1, skipped).astype(np.int64)
        first, last = int(offsets[0]), int(offsets[-1])
        padded = np.zeros(last - first + _WORD, np.uint8)
        if last > first:
            padded[:-_WORD] = np.frombuffer(data, np.uint8, last - first, first)
        return cls(padded, offsets[:-1] - first, np.diff(offsets))

    def __len__(self) -> int:
        return len(self.starts)

    @property
    def words(self) -> Numbers:
        """The word that begins at each byte."""
        return np.ndarray((len(self.data) - _WORD + 1,), "<u8", self.data, strides=(1,))

    def take(self, places: Any) -> "Texts":
        """Select some of the texts; the bytes are shared."""
        return Texts(self.data, self.starts[places], self.lengths[places])


def hashes(texts: Texts) -> Numbers:
    """Return a hash for each text.

    >>> one, two, three = hashes(Texts.of(pa.array(["a", "b", "a"])))
    >>> bool(one == three), bool(one == two)
    (True, False)
    """
    words = texts.words
    made = texts.lengths.astype(np.uint64) * _FIRST
    longest = int(texts.lengths.max(initial=0))
    for at in range(0, min(longest, _LONG), _WORD):
        some = _reaching(texts, at)
        word = words[texts.starts[some] + at]
        word &= _MASKS[np.minimum(texts.lengths[some] - at, _WORD)]
        mixed = (made[some] ^ word) * _SECOND
        mixed ^= mixed >> _HALF
        made[some] = mixed
    if longest > _LONG:
        _hash_long(texts, made)
    made *= _FIRST
    return made ^ (made >> _LESS)


def same(left: Texts, right: Texts) -> npt.NDArray[np.bool_]:
    """Return where two arrays of the same size have equal texts."""
    alike: npt.NDArray[np.bool_] = left.lengths == right.lengths
    mine, other = left.words, right.words
    for at in range(0, int(left.lengths.max(initial=0)), _WORD):
        some = _reaching(left, at)
        if not isinstance(some, slice):
            some = some[alike[some]]
        word = mine[left.starts[some] + at]
        # A right text of another length may end earlier: read its start to stay in bounds.
        there = right.starts[some] + np.where(alike[some], at, 0)
        word ^= other[np.minimum(there, len(other) - 1)]
        word &= _MASKS[np.minimum(left.lengths[some] - at, _WORD)]
        alike[some] &= word == 0
    return alike


def _reaching(texts: Texts, at: int) -> Any:
    """Return an index of the texts that have a byte at an offset."""
    there = texts.lengths > at
    return slice(None) if there.all() else np.flatnonzero(there)


def _hash_long(texts: Texts, made: Numbers) -> None:
    for one in np.flatnonzero(texts.lengths > _LONG):
        start = texts.starts[one]
        held = texts.data[start : start + texts.lengths[one]].tobytes()
        made[one] ^= np.uint64(int.from_bytes(blake2b(held, digest_size=_WORD).digest(), "little"))
