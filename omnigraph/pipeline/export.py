"""Export a snapshot to files in parallel: NDJSON that loads back, Parquet, or plain Lance datasets.

Tasks write parts under scratch names; the driver renames them once all are complete, so that a
failed export leaves nothing that looks like a finished one. The graph is only read.
"""

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, get_args

import pyarrow as pa

from omnigraph.errors import UsageError
from omnigraph.history.line import Line
from omnigraph.history.snapshot import Snapshot
from omnigraph.ids import new_ulid
from omnigraph.ingest.export import chosen_types, lines_of_rows
from omnigraph.lang.schema.catalog import Edge, Node
from omnigraph.storage.arrow import table_key
from omnigraph.storage.blobs import row_schema
from omnigraph.storage.find import take_bytes
from omnigraph.storage.fragments import fragment_sizes, read_fragments
from omnigraph.storage.plain import finish_plain, write_plain

from .held import holding
from .place import Place, place_of
from .scan import scan, tasks_of
from .session import watched
from .steps import Steps, teller
from .targets import Target, target_of
from .versions import check_versions

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Form = Literal["ndjson", "parquet", "lance"]
_PIECE = 8192
_DDL = "part int, name string, rows bigint, data string"
_SCHEMA = pa.schema(
    [("part", pa.int32()), ("name", pa.string()), ("rows", pa.int64()), ("data", pa.string())]
)
Batches = Iterator[pa.RecordBatch]


@dataclass(frozen=True, slots=True)
class Exported:
    """What an export wrote: entities and files by table key, and the seconds of each step."""

    form: Form
    commit_id: str
    rows: Mapping[str, int] = field(default_factory=dict)
    files: Mapping[str, Sequence[str]] = field(default_factory=dict)
    steps: Mapping[str, float] = field(default_factory=dict)

    @property
    def total(self) -> int:
        """The number of all entities."""
        return sum(self.rows.values())


@dataclass(frozen=True, slots=True)
class Part:
    """What a task that writes one part needs."""

    place: Place
    key: str
    form: Form
    one: Node | Edge
    schema: pa.Schema
    target: Target
    scratch: str


def export_on_spark(  # noqa: PLR0913 - all but four are keyword-only
    spark: "SparkSession",
    snapshot: Snapshot,
    folder: str | os.PathLike[str],
    form: Form = "ndjson",
    *,
    types: Sequence[str] | None = None,
    ordered: bool = False,
    line: Line | None = None,
    progress: Any = None,
) -> Exported:
    """Write a snapshot to an empty or absent folder, as `nodes/<Type>` and `edges/<Type>`.

    `ordered` sorts each type by id, part by part, so that equal snapshots produce equal rows in
    equal order. Plain Lance writes one dataset per type. A read lease keeps a cleanup from removing
    what is read. `branch_state` is the branch of the snapshot; `progress` is called type by type.
    """
    if form not in get_args(Form):
        expected = ", ".join(get_args(Form))
        raise UsageError(reason=f"unknown format {form!r}; expected one of {expected}")
    chosen = chosen_types(snapshot, types)
    target = target_of(folder)
    target.claim()
    check_versions(spark)
    rows: dict[str, int] = {}
    files: dict[str, Sequence[str]] = {}
    steps = Steps(spark, teller(progress))
    with watched(spark), holding(snapshot, line), steps.told_of():
        for one in chosen:
            key = table_key(one)
            steps.begin(one.name, snapshot.tables[key].rows)
            rows[key], files[key] = _export_type(spark, snapshot, one, target, form, ordered)
    steps.end()
    return Exported(form, snapshot.commit_id, rows, files, steps.seconds)


def _export_type(
    spark: "SparkSession",
    snapshot: Snapshot,
    one: Node | Edge,
    target: Target,
    form: Form,
    ordered: bool,
) -> tuple[int, Sequence[str]]:
    key, entry = table_key(one), snapshot.tables[table_key(one)]
    place = place_of(snapshot.store, {key: (entry.location, entry.lance_version)})
    table = snapshot.table(key)
    schema = row_schema(table.schema)
    scratch = f"{one.kind}s/{one.name}/.{new_ulid()}"
    part = Part(place, key, form, one, schema, target, scratch)
    if not entry.rows:
        return 0, _finish(part, [])
    units = _ordered(spark, snapshot, part) if ordered else _by_fragment(spark, part, table)
    try:
        done = sorted(units.toArrow().to_pylist(), key=lambda row: row["part"])
        files = _finish(part, [row for row in done if row["rows"]])
    finally:
        with suppress(OSError):
            target.remove(scratch)
    return sum(row["rows"] for row in done), files


def _finish(part: Part, done: Sequence[Mapping[str, Any]]) -> Sequence[str]:
    """Rename the written parts to their final names."""
    import json

    home = part.scratch.rpartition("/")[0]
    if part.form == "lance":
        fragments = [one for row in done for one in json.loads(row["data"])]
        name = f"{home}.lance"
        finish_plain(part.target.at(name), part.schema, fragments, part.target.options)
        return [name]
    names = [f"{home}/part-{at:05}.{part.form}" for at in range(len(done))]
    for row, name in zip(done, names, strict=True):
        part.target.move(row["name"], name)
    return names


def _by_fragment(spark: "SparkSession", part: Part, table: Any) -> "DataFrame":
    tasks = tasks_of(fragment_sizes(table))
    names = part.schema.names

    def run(batches: Batches) -> Batches:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                found = part.place.table(part.key)
                rows = read_fragments(found, tasks[number], names)
                yield _written(part, number, rows)

    return spark.range(0, len(tasks), 1, len(tasks)).mapInArrow(run, _DDL)


def _ordered(spark: "SparkSession", snapshot: Snapshot, part: Part) -> "DataFrame":
    """Let Spark sort ids with row ids; each task fetches the rows of its range in that order."""

    def run(batches: Batches) -> Batches:
        from pyspark import TaskContext

        context = TaskContext.get()
        number = context.partitionId() if context is not None else 0
        yield _written(part, number, _taken(part, batches))

    rows = scan(spark, snapshot, part.key, ["id"], places=True).select("id", "_rowid")
    return rows.orderBy("id").mapInArrow(run, _DDL)


def _taken(part: Part, batches: Batches) -> Batches:
    table = part.place.table(part.key)
    for batch in batches:
        ids = batch.column("_rowid").cast(pa.uint64())
        for start in range(0, len(ids), _PIECE):
            yield from take_bytes(table, ids.slice(start, _PIECE)).to_batches()


def _written(part: Part, number: int, rows: Batches) -> pa.RecordBatch:
    """Write the rows of a task; return what the driver needs to name the part."""
    import json

    counted = Counted(part.schema, rows)
    name, data = f"{part.scratch}/{number}-{new_ulid()}", None
    if part.form == "lance":
        where = part.target.at(f"{part.scratch.rpartition('/')[0]}.lance")
        data = json.dumps(write_plain(where, part.schema, counted, part.target.options))
    else:
        write = _lines if part.form == "ndjson" else _parquet
        with part.target.create(name) as file:
            write(part, file, counted)
    made = {"part": [number], "name": [name], "rows": [counted.rows], "data": [data]}
    return pa.RecordBatch.from_pydict(made, schema=_SCHEMA)


class Counted:
    """Batches cast to one schema, counted as they pass."""

    def __init__(self, schema: pa.Schema, batches: Batches) -> None:
        self.schema, self.batches, self.rows = schema, batches, 0

    def __iter__(self) -> Batches:
        for one in self.batches:
            self.rows += one.num_rows
            columns = [one.column(field.name).cast(field.type) for field in self.schema]
            yield pa.RecordBatch.from_arrays(columns, schema=self.schema)


def _lines(part: Part, file: Any, batches: Counted) -> None:
    for one in batches:
        for line in lines_of_rows(part.one, pa.Table.from_batches([one])):
            file.write(line)


def _parquet(part: Part, file: Any, batches: Counted) -> None:
    import pyarrow.parquet as pq

    with pq.ParquetWriter(file, part.schema) as writer:
        for one in batches:
            writer.write_batch(one)
