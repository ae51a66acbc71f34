"""Fragments that tasks of a load wrote: what the driver knows of each, and how to read them back.

Owns the input positions of a fragment's rows. The rules that need all records read single columns
back from the fragments, so that no record passes through Spark for checking.
"""

import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from omnigraph.rules.delta import Positions
from omnigraph.storage.fragments import read_staged

from .place import Place
from .scan import tasks_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Batches = Iterator[pa.RecordBatch]


@dataclass(frozen=True, slots=True)
class Fragment:
    """A written fragment; `ids_generated` if all its ids are new, so no other record knows them."""

    key: str
    facts: Mapping[str, Any]
    runs: bytes
    rows: int
    made: bool

    @property
    def bytes(self) -> int:
        """The size of its files."""
        return sum(one["file_size_bytes"] or 0 for one in self.facts["files"])

    @property
    def spots(self) -> Positions:
        """The input positions of its rows."""
        return unpack_spots(self.runs)

    def read(self, place: Place, columns: Sequence[str]) -> Batches:
        """Read some columns of its rows."""
        return read_staged(place.store(), place.table(self.key), self.facts, columns)


def pack_spots(spots: Positions) -> bytes:
    """Encode input positions in few bytes: usually they are consecutive.

    >>> unpack_spots(pack_spots(np.array([5, 6, 7, 1]))).tolist()
    [5, 6, 7, 1]
    """
    begins = np.flatnonzero(np.diff(spots, prepend=spots[:1] - 2) != 1)
    lengths = np.diff(begins, append=len(spots))
    return zlib.compress(np.stack([spots[begins], lengths]).astype(np.int64).tobytes(), 1)


def unpack_spots(packed: bytes) -> Positions:
    """Decode input positions."""
    firsts, lengths = np.frombuffer(zlib.decompress(packed), np.int64).reshape(2, -1)
    before = np.cumsum(lengths) - lengths
    return np.repeat(firsts - before, lengths) + np.arange(int(lengths.sum()))


Make = Callable[[Fragment, pa.RecordBatch, Positions], Batches]


def over_staged(
    spark: "SparkSession",
    fragments: Sequence[Fragment],
    work: Callable[[Fragment], Batches],
    ddl: str,
) -> "DataFrame":
    """Apply a function to every fragment, on the executors."""
    tasks = tasks_of({at: one.rows for at, one in enumerate(fragments)})

    def run(batches: Batches) -> Batches:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                for at in tasks[number]:
                    yield from work(fragments[at])

    return spark.range(0, len(tasks), 1, max(1, len(tasks))).mapInArrow(run, ddl)


def rows_of(
    place: Place, columns: Callable[[Fragment], Sequence[str]], make: Make
) -> Callable[[Fragment], Batches]:
    """Make a function that maps the rows of a fragment, batch by batch, with their positions."""

    def work(one: Fragment) -> Batches:
        spots, start = one.spots, 0
        for batch in one.read(place, columns(one)):
            yield from make(one, batch, spots[start : start + batch.num_rows])
            start += batch.num_rows

    return work
