"""An index of all ids of a node type, in files that every process of a machine maps into memory.

Owns the format: the sorted hashes, where each hash prefix starts among them, and the ids in the
same order. The first process builds the index, others wait for it; a hash match is confirmed by
comparing texts. The index is split into shards, so that building it needs bounded memory.
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

from .texts import Numbers, Places, Texts, hashes, same

SHARD = 16_000_000  # ids of one shard
_STEP = 1 << 16  # texts looked up together, so that they stay in the processor's cache
Read = Callable[[], Iterable[pa.Array]]


@dataclass(frozen=True, slots=True)
class Shard:
    """One mapped shard of an index; `prefix_starts` is where the hashes of each prefix start."""

    hashes: Numbers
    begins: npt.NDArray[np.uint32]
    ids: Texts
    repeats: bool

    def unknown(self, asked: Texts, numbers: Numbers) -> npt.NDArray[np.bool_]:
        """Return which of the texts are not among the ids."""
        if not len(self.hashes):
            return np.ones(len(asked), bool)
        shift = np.uint64(64 - (len(self.begins) - 1).bit_length())
        at = self.begins[(numbers >> shift).astype(np.int64)].astype(np.int64)
        left = np.arange(len(asked))
        lost = np.ones(len(asked), bool)
        while len(left):
            at = np.minimum(at, len(self.hashes) - 1)
            found, mine = self.hashes[at], numbers[left]
            hit = np.flatnonzero(found == mine)
            right = hit[same(asked.take(left[hit]), self.ids.take(at[hit]))]
            lost[left[right]] = False
            onward = (found <= mine) & (at < len(self.hashes) - 1)
            onward[right] = False
            left, at = left[onward], at[onward] + 1
        return lost


@dataclass(frozen=True, slots=True)
class Known:
    """The index of a type's ids."""

    shards: tuple[Shard, ...]

    @property
    def repeats(self) -> bool:
        """Whether two ids may be equal: some hash occurs twice."""
        return any(one.repeats for one in self.shards)

    def unknown(self, column: pa.Array) -> Places:
        """Return the positions of texts that are not among the ids."""
        starts = range(0, len(column), _STEP)
        parts = [start + self._unknown(Texts.of(column.slice(start, _STEP))) for start in starts]
        return np.concatenate(parts) if parts else np.zeros(0, np.int64)

    def _unknown(self, asked: Texts) -> Places:
        numbers = hashes(asked)
        if len(self.shards) == 1:
            return np.flatnonzero(self.shards[0].unknown(asked, numbers))
        lost = np.zeros(len(asked), bool)
        mine = shard_of(numbers, len(self.shards))
        for at, one in enumerate(self.shards):
            some = np.flatnonzero(mine == at)
            lost[some] = one.unknown(asked.take(some), numbers[some])
        return np.flatnonzero(lost)


def shard_of(numbers: Numbers, count: int) -> Numbers:
    """Return the shard of each hash: its low bits select the shard, its high bits the prefix."""
    return numbers % np.uint64(count)


def known(folder: Path, count: int, read: Read) -> Known:
    """Open the index in a folder, building it if absent; `read_ids` yields about `id_count` ids."""
    shards = max(1, -(-count // SHARD))
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        for at in range(shards):
            if not (folder / f"{at}.json").exists():
                _build(folder, at, shards, read)
    return Known(tuple(_mapped(folder, at) for at in range(shards)))


def _build(folder: Path, at: int, shards: int, read: Read) -> None:
    """Write one shard; its JSON file comes last, because it marks the shard as complete."""
    texts: list[pa.Array] = []
    numbers: list[Numbers] = []
    for column in read():
        some = hashes(Texts.of(column))
        kept = shard_of(some, shards) == at
        texts.append(column.filter(pa.array(kept)).cast(pa.large_string()))
        numbers.append(some[kept])
    made = np.concatenate(numbers) if numbers else np.zeros(0, np.uint64)
    ids = pa.concat_arrays(texts) if texts else pa.array([], pa.large_string())
    del texts, numbers
    order = np.argsort(made)
    made = made[order]
    ordered = Texts.of(ids.take(pa.array(order)))
    bits = max(1, len(made).bit_length())
    firsts = np.arange(1 << bits, dtype=np.uint64) << np.uint64(64 - bits)
    np.save(folder / f"{at}.hashes.npy", made)
    np.save(folder / f"{at}.begins.npy", np.searchsorted(made, firsts).astype(np.uint32))
    np.save(folder / f"{at}.data.npy", ordered.data)
    np.save(folder / f"{at}.starts.npy", ordered.starts)
    np.save(folder / f"{at}.lengths.npy", ordered.lengths)
    facts = {"repeats": bool((made[1:] == made[:-1]).any())}
    (folder / f"{at}.json").write_text(json.dumps(facts))


def _mapped(folder: Path, at: int) -> Shard:
    def array(name: str) -> Any:
        return np.load(folder / f"{at}.{name}.npy", mmap_mode="r").view(np.ndarray)

    facts = json.loads((folder / f"{at}.json").read_text())
    texts = Texts(array("data"), array("starts"), array("lengths"))
    return Shard(array("hashes"), array("begins"), texts, facts["repeats"])
