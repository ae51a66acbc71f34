"""A pinned table version as a DataFrame; columns and filter are chosen before anything is read.

Every action on such a DataFrame reads the same version, whatever is written meanwhile. Tasks read
fragments; they must never read the head of the branch.
"""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from omnigraph.errors import InputError
from omnigraph.history.snapshot import Snapshot
from omnigraph.lang.schema.names import did_you_mean
from omnigraph.storage.fragments import fragment_sizes, read_fragments

from .held import Hold
from .place import Place, place_of, type_of
from .types import arrow_schema, as_spark, columns_of, ddl
from .versions import check_versions

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_ROWS = 1 << 20  # rows of one task, if fragments are small


def scan(  # noqa: PLR0913 - the last two are keyword-only
    spark: "SparkSession",
    snapshot: Snapshot,
    key: str,
    columns: Sequence[str] | None = None,
    where: Any = None,
    *,
    places: bool = False,
    hold: Hold | None = None,
) -> "DataFrame":
    """Return the rows of a table as a DataFrame.

    `row_filter` is an Arrow expression; `with_row_ids` adds `_rowid` and `_rowaddr`. With a `lease`
    no cleanup removes what a running task reads.
    """
    one = type_of(snapshot.schema.ir, key)
    names = chosen(key, columns_of(one), columns)
    check_versions(spark)
    entry = snapshot.tables[key]
    where_at = place_of(snapshot.store, {key: (entry.location, entry.lance_version)})
    tasks = tasks_of(fragment_sizes(snapshot.table(key)))
    schema = arrow_schema(one, names, places=places)
    read = _reader(where_at, key, tasks, names, where, schema)
    if hold is not None:
        read = hold.over(read)
    units = spark.range(0, len(tasks), 1, max(1, len(tasks)))
    return units.mapInArrow(read, ddl(one, names, places=places))


def chosen(key: str, known: Sequence[str], columns: Sequence[str] | None) -> list[str]:
    """Return the requested columns, all by default; raise `InputError` for an unknown one."""
    if columns is None:
        return list(known)
    for name in columns:
        if name not in known:
            hint = did_you_mean(name, known)
            raise InputError(reason=f"{key} has no column '{name}'", hint=hint)
    return list(columns)


def tasks_of(sizes: dict[int, int], rows: int = _ROWS) -> list[list[int]]:
    """Group fragments for tasks: a large one alone, small neighbours together.

    >>> tasks_of({1: 5, 2: 3, 3: 9, 4: 1}, rows=8)
    [[1, 2], [3], [4]]
    """
    tasks: list[list[int]] = []
    held = rows
    for number, size in sizes.items():
        if held + size > rows:
            tasks.append([])
            held = 0
        tasks[-1].append(number)
        held += size
    return tasks


def _reader(
    where_at: Place,
    key: str,
    tasks: list[list[int]],
    names: list[str],
    where: Any,
    schema: pa.Schema,
) -> Any:
    places = "_rowid" in schema.names and "_rowid" not in names

    def read(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                table = where_at.table(key)
                for rows in read_fragments(table, tasks[number], names, where, places=places):
                    yield as_spark(rows, schema)

    # Shown in the query plan.
    read.__name__ = key if where is None else f"{key} where {where}"
    return read
