"""`df.write.format("omnigraph")`: tasks write fragments, the driver checks keys and publishes once.

Rows never meet in one process: a task returns the metadata of its fragments and, of its rows, only
what rules about all rows need: ids, edge endpoints, unique values. Nothing is visible before
`commit`, and nothing is ever published if a rule is broken.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import datasource as api

from omnigraph.errors import ClientError, KeyConflict, ReadSetConflict
from omnigraph.history.branches import open_line
from omnigraph.history.plan import PublishPlan, Requirement, SameContent, SameSchema, WriteTxn
from omnigraph.history.publish import publish
from omnigraph.history.snapshot import Snapshot
from omnigraph.ingest.frames import take_table
from omnigraph.ingest.intake import Intake
from omnigraph.ingest.limits import LoadLimits
from omnigraph.ingest.load import LoadMode
from omnigraph.ingest.problem import Problem, Problems, located
from omnigraph.ingest.unchanged import without_unchanged
from omnigraph.lang.schema.catalog import Edge, Node
from omnigraph.lang.schema.ir import SchemaIR
from omnigraph.rules.check import check
from omnigraph.rules.delta import Delta, Mode, TableDelta, written
from omnigraph.rules.identity import resolve
from omnigraph.rules.lookup import Committed
from omnigraph.rules.unique import judged_columns
from omnigraph.rules.values import row_violations
from omnigraph.storage.fragments import appended, changed, overwritten, write_rows
from omnigraph.storage.sizes import FRAGMENT_BYTES, FRAGMENT_ROWS
from omnigraph.storage.table import Staged

from .packed import packed, unpacked
from .place import Place, place_of, type_of
from .stage import Pinned, from_spark

ROWS, BYTES = FRAGMENT_ROWS, FRAGMENT_BYTES  # limits of a fragment
_SHOWN = 1000  # problems that a task returns; only the first is raised
_HOW: dict[str, Mode] = {"append": "insert", "merge": "upsert", "overwrite": "replace"}


@dataclass(frozen=True, slots=True)
class Write:
    """A write to one type, as its tasks and its commit see it; based on one pinned version."""

    ir: SchemaIR
    schema_hash: str
    place: Place
    key: str
    branch: str
    mode: LoadMode
    content_id: str
    version: int
    filled: bool
    epoch: int

    @property
    def type(self) -> Node | Edge:
        """The type that is written."""
        return type_of(self.ir, self.key)


def write_to(shown: Snapshot, key: str, branch: str, mode: LoadMode, epoch: int) -> Write:
    """Prepare a write that is based on a snapshot."""
    entry = shown.tables[key]
    place = place_of(shown.store, {key: (entry.location, entry.lance_version)})
    return Write(
        shown.schema.ir,
        shown.schema_row.hash,
        place,
        key,
        branch,
        mode,
        entry.content_id,
        entry.version,
        entry.rows > 0,
        epoch,
    )


@dataclass(slots=True)
class Part(api.WriterCommitMessage):
    """What a task returns: its fragments, the rows they replace, its keys, and its problems."""

    fragments: list[dict[str, Any]] = field(default_factory=list)
    removed: list[Any] = field(default_factory=list)
    keys: list[bytes] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    made: bool = True


class GraphWriter(api.DataSourceArrowWriter):
    """Writes one DataFrame to one type, as one commit."""

    def __init__(self, write: Write) -> None:
        self.to = write

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Part:
        """Stage the rows of a task. Invalid rows are reported, they do not fail the task."""
        part = Part()
        tables = (from_spark(pa.Table.from_batches([one]), self.to.type) for one in iterator)
        try:
            for rows in _gathered(self.to, part, tables):
                _stage(self.to, part, rows)
        except ClientError as error:
            part.problems.append(Problem(None, self.to.type.name, None, error))
        del part.problems[_SHOWN:]
        return part

    def commit(self, messages: list[Any]) -> None:
        """Check what all tasks wrote, and publish it."""
        parts = [one for one in messages if one is not None]
        for problem in (one for part in parts for one in part.problems):
            raise problem.error
        publish_parts(self.to, parts)

    def abort(self, messages: list[Any]) -> None:
        """Do nothing: no data is visible, and retention removes the files of a failed write."""


def _gathered(to: Write, part: Part, tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
    """Yield rows in the form of the table, enough for one fragment at a time."""
    problems = Problems()
    intake = Intake(to.ir, problems, LoadLimits())
    parts: list[pa.Table] = []
    count = rows = size = 0
    for table in tables:
        take_table(intake, to.type, table, count + 1)
        intake.flush()
        shelf = intake.shelves[to.key]
        taken, _ = shelf.drain()
        part.made = part.made and shelf.made
        _tell(part, problems.found)
        problems.found.clear()
        parts.append(taken)
        count, rows, size = count + table.num_rows, rows + taken.num_rows, size + taken.nbytes
        if rows >= ROWS or size >= BYTES:
            yield pa.concat_tables(parts)
            parts, rows, size = [], 0, 0
    if rows:
        yield pa.concat_tables(parts)


def _tell(part: Part, problems: Iterable[Problem]) -> None:
    """Report problems without line numbers, which rows of a DataFrame do not have."""
    part.problems += [located(one, lambda _: None, None) for one in problems]


def _stage(to: Write, part: Part, rows: pa.Table) -> None:
    for one in row_violations(to.type, rows, None):
        part.problems.append(Problem(None, one.type_name, one.entity_id, one.error()))
    part.keys.append(packed(rows.select(judged_columns(to.type))))
    if part.problems:  # nothing will be published: do not write
        return
    # Repeated ids are refused once all keys are known; here every row counts as distinct.
    delta = written(to.key, rows, "fresh")
    if to.mode == "merge" and to.filled and not part.made:
        lookup = Pinned(to.place)
        asked = Delta({to.key: written(to.key, rows, "upsert")})
        delta = without_unchanged(resolve(asked, lookup)[0], lookup).tables[to.key]
    _write(to, part, delta)


def _write(to: Write, part: Part, delta: TableDelta) -> None:
    table, store = to.place.table(to.key), to.place.store()
    replaces = delta.row_ids >= 0
    fresh = delta.rows.filter(pa.array(~replaces)) if replaces.any() else delta.rows
    if fresh.num_rows:
        part.fragments.append(write_rows(store, table, fresh))
    if replaces.any():
        kept, ids = delta.rows.filter(pa.array(replaces)), delta.row_ids[replaces].tolist()
        part.fragments.append(write_rows(store, table, kept, ids))
        part.removed.append(delta.addresses[replaces])


def publish_parts(to: Write, parts: list[Part]) -> None:
    """Publish what tasks staged if no rule about all rows is broken; no commit without rows."""
    told = [one for part in parts for one in part.keys]
    if not told and to.mode != "overwrite":
        return
    keys = _keys(to, parts, told)
    line = open_line(to.place.store(), to.branch)

    def prepare(txn: WriteTxn) -> PublishPlan | None:
        if txn.base.state.head.gc_epoch != to.epoch:  # a cleanup may have removed our files
            raise ReadSetConflict(member="tables")
        lookup = Committed(txn)
        _, broken = check(to.ir.catalog, Delta({to.key: keys}), lookup, limit=1)
        if broken:
            raise broken[0].error()
        staged = _staged(to, parts, txn)
        if staged is None:
            return None
        return PublishPlan("load", {to.key: staged}, tuple(lookup.requirements), epoch=to.epoch)

    publish(line, prepare, None, _conditions(to))


def _keys(to: Write, parts: list[Part], told: list[bytes]) -> TableDelta:
    """Combine all keys into a delta without values; rules of a row were checked by the tasks."""
    there = [unpacked(one) for one in told]
    if not there:
        there = [to.place.table(to.key).schema.empty_table().select(judged_columns(to.type))]
    versions = pa.concat_tables(there)
    made = all(one.made for one in parts) and to.mode != "overwrite"
    delta = written(to.key, versions, "fresh" if made else _HOW[to.mode], records=True)
    if to.mode == "merge" and len(delta.latest) < versions.num_rows:
        hint = "rows of a DataFrame have no order: keep one of each id"
        raise KeyConflict(_twice(to, versions), type_key=to.key, hint=hint)
    return replace(delta, strict=to.mode == "append", judged=True)


def _twice(to: Write, versions: pa.Table) -> str:
    counted = versions.group_by("id").aggregate([([], "count_all")])
    many = counted.filter(pc.greater(counted["count_all"], 1))
    return f"several rows of {to.type.name} have the id '{many['id'][0].as_py()}'"


def _conditions(to: Write) -> tuple[Requirement, ...]:
    """Return the publish requirements: rows may only be replaced if the table is unchanged."""
    schema = SameSchema(to.schema_hash)
    if to.mode == "append":
        return (schema,)
    return (schema, SameContent(to.key, to.content_id, to.version))


def _staged(to: Write, parts: list[Part], txn: WriteTxn) -> Staged | None:
    table = txn.table(to.key)
    fragments = [one for part in parts for one in part.fragments]
    removed = [one for part in parts for one in part.removed]
    if to.mode == "overwrite":
        return overwritten(table, fragments) if fragments or to.filled else None
    if removed:
        return changed(txn.store, table, fragments, np.concatenate(removed))
    return appended(table, fragments) if fragments else None
