"""The fragments that load tasks write: their descriptions for the driver, and functions to read them back.

To check the rules that involve all records, single columns are read back from the fragments, so whole records do not
pass through Spark.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from omnigraph.ingest.position_runs import unpack_positions
from omnigraph.rules.delta import Positions
from omnigraph.storage.fragments import read_staged_fragment
from omnigraph.values.table_key import TableKey

from .pinned_graph import PinnedGraph
from .table_scan import group_fragments

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Batches = Iterator[pa.RecordBatch]


@dataclass(frozen=True, slots=True)
class StagedFragment:
    """A written fragment; if `ids_generated` is true, all its ids are new, so no other record refers to them."""

    table_key: TableKey
    metadata: Mapping[str, Any]
    packed_positions: bytes
    row_count: int
    ids_generated: bool

    @property
    def file_bytes(self) -> int:
        """The total size of the fragment's files."""
        return sum(data_file["file_size_bytes"] or 0 for data_file in self.metadata["files"])

    @property
    def positions(self) -> Positions:
        """The input positions of the fragment's rows."""
        return unpack_positions(self.packed_positions)

    def read_columns(self, pinned_graph: PinnedGraph, columns: Sequence[str]) -> Batches:
        """Read some columns from the fragment."""
        return read_staged_fragment(pinned_graph.store(), pinned_graph.table(self.table_key), self.metadata, columns)


MakeRows = Callable[[StagedFragment, pa.RecordBatch, Positions], Batches]


def map_staged_fragments(
    spark: "SparkSession", fragments: Sequence[StagedFragment], work: Callable[[StagedFragment], Batches], ddl: str
) -> "DataFrame":
    """Apply a function to every fragment on the executors, and return the results as a DataFrame."""
    fragment_groups = group_fragments(
        {fragment_index: fragment.row_count for fragment_index, fragment in enumerate(fragments)}
    )

    def run(batches: Batches) -> Batches:
        for batch in batches:
            for group_number in batch.column(0).to_pylist():
                for fragment_index in fragment_groups[group_number]:
                    yield from work(fragments[fragment_index])

    return spark.range(0, len(fragment_groups), 1, max(1, len(fragment_groups))).mapInArrow(run, ddl)


def map_fragment_rows(
    pinned_graph: PinnedGraph, select_columns: Callable[[StagedFragment], Sequence[str]], make_rows: MakeRows
) -> Callable[[StagedFragment], Batches]:
    """Return a function that reads a fragment in batches and converts its rows and their positions."""

    def work(fragment: StagedFragment) -> Batches:
        positions, start = fragment.positions, 0
        for batch in fragment.read_columns(pinned_graph, select_columns(fragment)):
            yield from make_rows(fragment, batch, positions[start : start + batch.num_rows])
            start += batch.num_rows

    return work
