"""Find records that agree in some columns, by shuffling only the hashes of these columns.

Each task hashes the columns of the records that it reads, so Spark receives eight bytes per record. Records with
repeated hashes, of which there are usually none, are read again and compared by value.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from omnigraph.ingest.id_sets.text_hashes import TextArray, UInt64Array, hash_texts

from .report_rows import RowKind, spark_ddl
from .staged_fragments import Batches, StagedFragment, map_staged_fragments

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

MapBatch = Callable[[pa.RecordBatch], Batches]
DuplicateGroup = tuple[tuple[Any, ...], list[int]]  # (values of the columns, positions of the records in input order)
_HASH_SCHEMA = pa.schema([("h", pa.int64())])
_MULTIPLIER, _SHIFT = np.uint64(0x9E3779B97F4A7C15), np.uint64(32)


@dataclass(frozen=True)
class RecordSource:
    """Rows that describe a load's records: those that tasks read from fragments, and those that are only in reports."""

    spark: "SparkSession"
    fragments: Sequence[StagedFragment]
    read_fragment: Callable[[StagedFragment], Batches]
    reported_rows: "DataFrame | None"
    row_kind: RowKind

    @property
    def is_empty(self) -> bool:
        """Whether there are no rows."""
        return not self.fragments and self.reported_rows is None

    def map_batches(self, map_batch: MapBatch, schema: pa.Schema) -> "DataFrame":
        """Apply a function to all batches, on executors, and return the results."""
        read_fragment, ddl = self.read_fragment, spark_ddl(schema)

        def work(fragment: StagedFragment) -> Batches:
            for batch in read_fragment(fragment):
                yield from map_batch(batch)

        mapped = map_staged_fragments(self.spark, self.fragments, work, ddl)
        if self.reported_rows is None:
            return mapped
        return mapped.unionAll(self.reported_rows.mapInArrow(_map_each(map_batch), ddl))


def find_duplicate_groups(source: RecordSource, group_columns: Sequence[str]) -> list[DuplicateGroup]:
    """Return the groups of records that have the same values, and the positions of the records."""
    if source.is_empty:
        return []
    hashes = source.map_batches(lambda batch: _hash_batch(batch, group_columns), _HASH_SCHEMA)
    repeated = hashes.groupBy("h").count().where("count > 1").select("h").toArrow()["h"].to_numpy()
    if not len(repeated):
        return []
    repeated_hashes = repeated.view(np.uint64)
    columns = [*group_columns, "spot"]
    schema = pa.schema([source.row_kind.schema.field(name) for name in columns])
    matches = source.map_batches(
        lambda batch: _select_hashes(batch, group_columns, repeated_hashes, schema), schema
    ).toArrow()
    sorted_rows = sorted(zip(*(matches[column].to_pylist() for column in columns), strict=True))
    positions_by_group = [
        (group_values, [group_row[-1] for group_row in group_rows])
        for group_values, group_rows in groupby(sorted_rows, lambda sorted_row: sorted_row[:-1])
    ]
    return [(group_values, positions) for group_values, positions in positions_by_group if len(positions) > 1]


def hash_rows(batch: pa.RecordBatch, columns: Sequence[str]) -> UInt64Array:
    """Return a hash of the values of some columns, which must be integers or strings without nulls."""
    hashes = np.zeros(batch.num_rows, np.uint64)
    for column_name in columns:
        column = batch.column(column_name)
        is_number = pa.types.is_integer(column.type)
        hashes ^= column.to_numpy().astype(np.uint64) if is_number else hash_texts(TextArray.from_arrow(column))
        hashes *= _MULTIPLIER
        hashes ^= hashes >> _SHIFT
    return hashes


def _map_each(map_batch: MapBatch) -> Callable[[Batches], Batches]:
    def run(batches: Batches) -> Batches:
        for batch in batches:
            yield from map_batch(batch)

    return run


def _hash_batch(batch: pa.RecordBatch, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
    hashes = hash_rows(batch, columns)
    yield pa.RecordBatch.from_arrays([pa.array(hashes.view(np.int64))], schema=_HASH_SCHEMA)


def _select_hashes(
    batch: pa.RecordBatch, columns: Sequence[str], selected_hashes: UInt64Array, schema: pa.Schema
) -> Iterator[pa.RecordBatch]:
    is_selected = np.isin(hash_rows(batch, columns), selected_hashes)
    if is_selected.any():
        yield batch.select(schema.names).filter(pa.array(is_selected)).cast(schema)
