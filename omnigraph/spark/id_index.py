"""An index of a node type's ids, in files that every process on a machine maps into memory.

This module defines the file format: one set of ids per shard, packed if its ids are short and hashed otherwise. The
first process builds the index while other processes wait for it. The index is split into shards to limit the memory
needed to build it. The tasks of `endpoint_lookup` build and read the index.
"""

import fcntl
import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from omnigraph.ingest.id_sets.hashed_ids import HashedIds
from omnigraph.ingest.id_sets.packed_ids import PackedIds, can_pack
from omnigraph.ingest.id_sets.text_hashes import Int64Array, TextArray, UInt64Array, hash_texts

SHARD_IDS = 16_000_000  # number of ids per shard
_LOOKUP_TEXTS = 1 << 14  # number of strings looked up together, small enough for the processor's cache
ReadIds = Callable[[], Iterable[pa.Array]]


@dataclass(frozen=True, slots=True)
class IdIndex:
    """An index of a type's ids."""

    shards: tuple[PackedIds | HashedIds, ...]

    @property
    def may_repeat_ids(self) -> bool:
        """Whether any hash occurs more than once, which means that the index may contain an id twice."""
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
        if len(self.shards) == 1:
            return self.shards[0].missing_positions(texts)
        is_missing = np.zeros(len(texts), bool)
        shard_numbers = assign_shards(hash_texts(texts), len(self.shards))
        for shard_number, shard in enumerate(self.shards):
            text_positions = np.flatnonzero(shard_numbers == shard_number)
            is_missing[text_positions[shard.missing_positions(texts.take(text_positions))]] = True
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
    """Write one shard. The JSON file is written last, because it marks the shard as complete."""
    shard_ids = _read_shard_ids(shard_number, shard_count, read_ids)
    texts = TextArray.from_arrow(shard_ids)
    shard = PackedIds.build(texts) if can_pack(texts) else HashedIds.build(texts)
    arrays_by_name = _packed_arrays(shard) if isinstance(shard, PackedIds) else _hashed_arrays(shard)
    for array_name, array in arrays_by_name.items():
        np.save(folder / f"{shard_number}.{array_name}.npy", array)
    shard_facts = {"packed": isinstance(shard, PackedIds), "repeats": shard.has_repeated_hash}
    (folder / f"{shard_number}.json").write_text(json.dumps(shard_facts))


def _read_shard_ids(shard_number: int, shard_count: int, read_ids: ReadIds) -> pa.Array:
    id_arrays: list[pa.Array] = []
    for id_column in read_ids():
        shard_column = id_column
        if shard_count > 1:
            shard_numbers = assign_shards(hash_texts(TextArray.from_arrow(id_column)), shard_count)
            shard_column = id_column.filter(pa.array(shard_numbers == shard_number))
        id_arrays.append(shard_column.cast(pa.large_string()))
    return pa.concat_arrays(id_arrays) if id_arrays else pa.array([], pa.large_string())


def _packed_arrays(shard: PackedIds) -> dict[str, Any]:
    return {"words": shard.id_words, "begins": shard.prefix_starts}


def _hashed_arrays(shard: HashedIds) -> dict[str, Any]:
    texts = shard.ids
    arrays = {"data": texts.data, "starts": texts.starts, "lengths": texts.lengths}
    return {"hashes": shard.hashes, "begins": shard.prefix_starts, **arrays}


def _map_shard(folder: Path, shard_number: int) -> PackedIds | HashedIds:
    def load_array(array_name: str) -> Any:
        return np.load(folder / f"{shard_number}.{array_name}.npy", mmap_mode="r").view(np.ndarray)

    shard_facts = json.loads((folder / f"{shard_number}.json").read_text())
    if shard_facts["packed"]:
        return PackedIds(load_array("words"), load_array("begins"), shard_facts["repeats"])
    id_texts = TextArray(load_array("data"), load_array("starts"), load_array("lengths"))
    return HashedIds(load_array("hashes"), load_array("begins"), id_texts, shard_facts["repeats"])
