"""An index of a node type's ids, in files that every process on a machine maps into memory.

An index file contains the sorted hashes, the start position of each hash prefix, and the ids in hash order. The first
process builds the index while other processes wait for it. A hash match is confirmed by comparing the strings. The
index is split into shards to limit the memory needed to build it. Tasks in `endpoint_lookup` build and read the index.
"""

import fcntl
import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from .text_hashes import Int64Array, TextArray, UInt64Array, hash_texts, texts_equal

SHARD_IDS = 16_000_000  # number of ids per shard
_LOOKUP_TEXTS = 1 << 16  # number of strings to look up at a time, small enough for the CPU cache
ReadIds = Callable[[], Iterable[pa.Array]]


@dataclass(frozen=True, slots=True)
class IdIndexShard:
    """A memory-mapped index shard; `prefix_starts` contains the start position of each hash prefix."""

    hashes: UInt64Array
    prefix_starts: npt.NDArray[np.uint32]
    ids: TextArray
    has_repeated_hash: bool

    def missing_mask(self, texts: TextArray, text_hashes: UInt64Array) -> npt.NDArray[np.bool_]:
        """Return a mask of the strings that are not among the ids."""
        if not len(self.hashes):
            return np.ones(len(texts), bool)
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
        return is_missing


@dataclass(frozen=True, slots=True)
class IdIndex:
    """An index of a type's ids."""

    shards: tuple[IdIndexShard, ...]

    @property
    def may_repeat_ids(self) -> bool:
        """Whether any hash occurs more than once, so that the index may contain an id twice."""
        return any(shard.has_repeated_hash for shard in self.shards)

    def missing_positions(self, text_column: pa.Array) -> Int64Array:
        """Return the positions of the strings that are not among the ids."""
        starts = range(0, len(text_column), _LOOKUP_TEXTS)
        position_arrays = [
            start + self._missing_in_slice(TextArray.from_arrow(text_column.slice(start, _LOOKUP_TEXTS)))
            for start in starts
        ]
        return np.concatenate(position_arrays) if position_arrays else np.zeros(0, np.int64)

    def _missing_in_slice(self, texts: TextArray) -> Int64Array:
        text_hashes = hash_texts(texts)
        if len(self.shards) == 1:
            return np.flatnonzero(self.shards[0].missing_mask(texts, text_hashes))
        is_missing = np.zeros(len(texts), bool)
        shard_numbers = assign_shards(text_hashes, len(self.shards))
        for shard_number, shard in enumerate(self.shards):
            text_positions = np.flatnonzero(shard_numbers == shard_number)
            is_missing[text_positions] = shard.missing_mask(texts.take(text_positions), text_hashes[text_positions])
        return np.flatnonzero(is_missing)


def assign_shards(text_hashes: UInt64Array, shard_count: int) -> UInt64Array:
    """Return the shard number for each hash; within a shard, the high bits of a hash select its prefix."""
    return text_hashes % np.uint64(shard_count)


def open_id_index(folder: Path, id_count: int, read_ids: ReadIds) -> IdIndex:
    """Open the index in a folder, building it if it does not exist; `read_ids` must yield about `id_count` ids."""
    shard_count = max(1, -(-id_count // SHARD_IDS))
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("w") as lock_file:
        fcntl.flock(lock_file, fcntl.LOCK_EX)
        for shard_number in range(shard_count):
            if not (folder / f"{shard_number}.json").exists():
                _build_shard(folder, shard_number, shard_count, read_ids)
    return IdIndex(tuple(_map_shard(folder, shard_number) for shard_number in range(shard_count)))


def _build_shard(folder: Path, shard_number: int, shard_count: int, read_ids: ReadIds) -> None:
    """Write one shard; the JSON file is written last, because it marks the shard as complete."""
    id_arrays: list[pa.Array] = []
    hash_arrays: list[UInt64Array] = []
    for id_column in read_ids():
        column_hashes = hash_texts(TextArray.from_arrow(id_column))
        in_shard = assign_shards(column_hashes, shard_count) == shard_number
        id_arrays.append(id_column.filter(pa.array(in_shard)).cast(pa.large_string()))
        hash_arrays.append(column_hashes[in_shard])
    hash_values = np.concatenate(hash_arrays) if hash_arrays else np.zeros(0, np.uint64)
    shard_ids = pa.concat_arrays(id_arrays) if id_arrays else pa.array([], pa.large_string())
    del id_arrays, hash_arrays
    sort_order = np.argsort(hash_values)
    hash_values = hash_values[sort_order]
    sorted_texts = TextArray.from_arrow(shard_ids.take(pa.array(sort_order)))
    prefix_bits = max(1, len(hash_values).bit_length())
    prefix_values = np.arange(1 << prefix_bits, dtype=np.uint64) << np.uint64(64 - prefix_bits)
    np.save(folder / f"{shard_number}.hashes.npy", hash_values)
    np.save(folder / f"{shard_number}.begins.npy", np.searchsorted(hash_values, prefix_values).astype(np.uint32))
    np.save(folder / f"{shard_number}.data.npy", sorted_texts.data)
    np.save(folder / f"{shard_number}.starts.npy", sorted_texts.starts)
    np.save(folder / f"{shard_number}.lengths.npy", sorted_texts.lengths)
    shard_facts = {"repeats": bool((hash_values[1:] == hash_values[:-1]).any())}
    (folder / f"{shard_number}.json").write_text(json.dumps(shard_facts))


def _map_shard(folder: Path, shard_number: int) -> IdIndexShard:
    def load_array(array_name: str) -> Any:
        return np.load(folder / f"{shard_number}.{array_name}.npy", mmap_mode="r").view(np.ndarray)

    shard_facts = json.loads((folder / f"{shard_number}.json").read_text())
    id_texts = TextArray(load_array("data"), load_array("starts"), load_array("lengths"))
    return IdIndexShard(load_array("hashes"), load_array("begins"), id_texts, shard_facts["repeats"])
