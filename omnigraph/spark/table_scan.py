"""Read a pinned table version as a DataFrame, with predefined columns and a filter.

Every action on such a DataFrame reads the same version, regardless of concurrent writes. Tasks read fragments from that
version and must never read the branch head.
"""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from omnigraph.errors import InputError
from omnigraph.history.snapshot import Snapshot
from omnigraph.lang.schema.names import did_you_mean
from omnigraph.lang.schema.type_names import type_for_key
from omnigraph.storage.fragments import fragment_row_counts, read_fragments
from omnigraph.values.table_key import TableKey

from .pinned_graph import PinnedGraph, pin_graph
from .read_leases import DataFrameLease
from .spark_types import cast_to_spark, columns_of_type, spark_arrow_schema, spark_ddl
from .versions import check_versions

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_TASK_ROWS = 1 << 20  # number of rows per task if fragments are small


def scan(  # noqa: PLR0913 - the last two are keyword-only
    spark: "SparkSession",
    snapshot: Snapshot,
    table_key: TableKey,
    columns: Sequence[str] | None = None,
    row_filter: Any = None,
    *,
    with_row_ids: bool = False,
    lease: DataFrameLease | None = None,
) -> "DataFrame":
    """Return a table's rows as a DataFrame.

    `row_filter` is an Arrow expression. `with_row_ids` adds the columns `_rowid` and `_rowaddr`. With a `lease`, the
    data that a running task reads is protected from cleanup.
    """
    entity_type = type_for_key(snapshot.schema.ir.catalog, table_key)
    column_names = select_columns(table_key, columns_of_type(entity_type), columns)
    check_versions(spark)
    table_entry = snapshot.tables[table_key]
    pinned_graph = pin_graph(snapshot.store, {table_key: (table_entry.location, table_entry.lance_version)})
    fragment_groups = group_fragments(fragment_row_counts(snapshot.table(table_key)))
    spark_schema = spark_arrow_schema(entity_type, column_names, with_row_ids=with_row_ids)
    read_task = _make_reader(pinned_graph, table_key, fragment_groups, column_names, row_filter, spark_schema)
    if lease is not None:
        read_task = lease.wrap_task(read_task)
    group_numbers = spark.range(0, len(fragment_groups), 1, max(1, len(fragment_groups)))
    return group_numbers.mapInArrow(read_task, spark_ddl(entity_type, column_names, with_row_ids=with_row_ids))


def select_columns(table_key: TableKey, known_columns: Sequence[str], columns: Sequence[str] | None) -> list[str]:
    """Return the requested columns, or all columns by default; raise `InputError` for an unknown column."""
    if columns is None:
        return list(known_columns)
    for column in columns:
        if column not in known_columns:
            hint = did_you_mean(column, known_columns)
            raise InputError(reason=f"{table_key} has no column '{column}'", hint=hint)
    return list(columns)


def group_fragments(sizes: dict[int, int], max_rows: int = _TASK_ROWS) -> list[list[int]]:
    """Group fragments into tasks: each large fragment gets its own group, and small adjacent fragments share one.

    >>> group_fragments({1: 5, 2: 3, 3: 9, 4: 1}, max_rows=8)
    [[1, 2], [3], [4]]
    """
    groups: list[list[int]] = []
    group_rows = max_rows
    for fragment_id, row_count in sizes.items():
        if group_rows + row_count > max_rows:
            groups.append([])
            group_rows = 0
        groups[-1].append(fragment_id)
        group_rows += row_count
    return groups


def _make_reader(
    pinned_graph: PinnedGraph,
    table_key: TableKey,
    fragment_groups: list[list[int]],
    column_names: list[str],
    row_filter: Any,
    spark_schema: pa.Schema,
) -> Any:
    with_row_ids = "_rowid" in spark_schema.names and "_rowid" not in column_names

    def read(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for group_number in batch.column(0).to_pylist():
                table = pinned_graph.table(table_key)
                for rows in read_fragments(
                    table, fragment_groups[group_number], column_names, row_filter, with_row_ids=with_row_ids
                ):
                    yield cast_to_spark(rows, spark_schema)

    # The query plan shows the function name.
    read.__name__ = table_key if row_filter is None else f"{table_key} where {row_filter}"
    return read
