"""A set of ids of any length: the sorted hashes, the start position of each hash prefix, and the ids themselves.

A hash match is confirmed by comparing the strings. Sets without long ids use `packed_ids`, which is faster.
"""

from dataclasses import dataclass
from typing import Self

import numpy as np
import numpy.typing as npt

from .text_hashes import Int64Array, TextArray, UInt64Array, hash_texts, texts_equal


@dataclass(frozen=True, slots=True)
class HashedIds:
    """Ids in the order of their hashes."""

    hashes: UInt64Array
    prefix_starts: npt.NDArray[np.uint32]
    ids: TextArray
    has_repeated_hash: bool

    @classmethod
    def build(cls, texts: TextArray) -> Self:
        """Build the set."""
        hashes = hash_texts(texts)
        sort_order = np.argsort(hashes)
        hashes = hashes[sort_order]
        prefix_bits = max(1, len(hashes).bit_length())
        prefixes = np.arange(1 << prefix_bits, dtype=np.uint64) << np.uint64(64 - prefix_bits)
        return cls(
            hashes,
            np.searchsorted(hashes, prefixes).astype(np.uint32),
            texts.take(sort_order),
            bool((hashes[1:] == hashes[:-1]).any()),
        )

    def missing_positions(self, texts: TextArray) -> Int64Array:
        """Return the positions of the strings that are not among the ids, in ascending order."""
        if not len(self.hashes):
            return np.arange(len(texts))
        text_hashes = hash_texts(texts)
        prefix_shift = np.uint64(64 - (len(self.prefix_starts) - 1).bit_length())
        cursor = self.prefix_starts[(text_hashes >> prefix_shift).astype(np.int64)].astype(np.int64)
        pending = np.arange(len(texts))
        is_missing = np.ones(len(texts), bool)
        while len(pending):
            cursor = np.minimum(cursor, len(self.hashes) - 1)
            index_hashes, pending_hashes = self.hashes[cursor], text_hashes[pending]
            hash_hits = np.flatnonzero(index_hashes == pending_hashes)
            confirmed = hash_hits[texts_equal(texts.take(pending[hash_hits]), self.ids.take(cursor[hash_hits]))]
            is_missing[pending[confirmed]] = False
            continues = (index_hashes <= pending_hashes) & (cursor < len(self.hashes) - 1)
            continues[confirmed] = False
            pending, cursor = pending[continues], cursor[continues] + 1
        return np.flatnonzero(is_missing)
