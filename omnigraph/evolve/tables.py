"""The tables of a new schema: reshaped, moved, made, as versions that nobody names yet.

A property that goes softly stays in files which no version names any more under its number; one
that goes with its history leaves a table of its own behind, in another directory.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import pyarrow as pa

from omnigraph import ids
from omnigraph.history.commit import TableEntry
from omnigraph.history.plan import SameVersion, WriteTxn
from omnigraph.lang.schema.catalog import Edge, Node
from omnigraph.lang.schema.ir import SchemaIR
from omnigraph.storage.arrow import table_key, table_schema
from omnigraph.storage.checksums import FileChecksum
from omnigraph.storage.find import batches
from omnigraph.storage.fragments import appended, write_rows
from omnigraph.storage.layout import table_directory
from omnigraph.storage.reshape import reshape
from omnigraph.storage.table import Table, commit, create_table

from .columns import Passage, added_types, dropped_types, passages
from .proposal import SchemaPlan

_PIECE = 1 << 16  # rows of one fragment of a table that is moved
_HELD = 256 << 20  # bytes of them


@dataclass(slots=True)
class Tables:
    """What a state will name, and what it no longer does."""

    adopted: dict[str, TableEntry] = field(default_factory=dict)
    registered: dict[str, TableEntry] = field(default_factory=dict)
    dropped: set[str] = field(default_factory=set)
    erased: set[str] = field(default_factory=set)
    seen: list[SameVersion] = field(default_factory=list)
    files: dict[str, FileChecksum] = field(default_factory=dict)


def writes_data(plan: SchemaPlan, txn: WriteTxn) -> bool:
    """Whether rows that are there have to be written again, in part or as a whole."""
    found = passages(plan.before.ir, plan.after)
    changed = (one for one in found if one.fills or (plan.allow_data_loss and one.loses))
    entries = (txn.entry(one.old_key) for one in changed)
    return any(entry is not None and entry.rows for entry in entries)


def stage_tables(plan: SchemaPlan, txn: WriteTxn) -> Tables:
    """Make every table of the new schema."""
    made = Tables()
    for passage in passages(plan.before.ir, plan.after):
        _carry_over(plan, txn, passage, made)
    for one in dropped_types(plan.before.ir, plan.after):
        _drop(plan, txn, table_key(one), made)
    for one in added_types(plan.before.ir, plan.after):
        made.registered[table_key(one)] = _create(txn, plan.after, one, made)
    made.dropped -= {*made.adopted, *made.registered}
    return made


def _carry_over(plan: SchemaPlan, txn: WriteTxn, passage: Passage, made: Tables) -> None:
    entry, table = txn.entry(passage.old_key), txn.table(passage.old_key)
    assert entry is not None  # noqa: S101 - a schema and its tables are one state
    hard = plan.allow_data_loss and passage.loses
    if hard:
        after, highest = _move(txn, passage, table), 0
        made.erased.add(entry.location)
    else:
        after, highest = reshape(txn.store, table, passage.columns, entry.max_field_id)
    same = after.version == table.version and not hard
    if same and passage.new_key == passage.old_key:
        return
    made.files |= after.new_files
    made.seen.append(_exactly(entry))
    renamed = replace(entry, key=passage.new_key)
    made.adopted[passage.new_key] = renamed if same else _next(txn, renamed, after, highest)
    if passage.new_key != passage.old_key:
        made.dropped.add(passage.old_key)


def _next(txn: WriteTxn, entry: TableEntry, table: Table, highest: int) -> TableEntry:
    return replace(
        entry,
        location=table.location,
        version=entry.version + 1,
        lance_version=table.version,
        content_id=txn.commit_id,
        branch=txn.branch,
        max_field_id=max(highest, table.highest_field_id),
    )


def _drop(plan: SchemaPlan, txn: WriteTxn, key: str, made: Tables) -> None:
    entry = txn.entry(key)
    assert entry is not None  # noqa: S101 - a schema and its tables are one state
    made.dropped.add(key)
    made.seen.append(_exactly(entry))
    if plan.allow_data_loss:
        made.erased.add(entry.location)


def _exactly(entry: TableEntry) -> SameVersion:
    return SameVersion(entry.key, entry.content_id, entry.lance_version, entry.version)


def _create(txn: WriteTxn, ir: SchemaIR, one: Node | Edge, made: Tables) -> TableEntry:
    key, table = table_key(one), _new_table(txn, ir, one)
    made.files |= table.new_files
    number = table.highest_field_id
    return TableEntry(key, table.location, 1, table.version, txn.commit_id, 0, txn.branch, number)


def _new_table(txn: WriteTxn, ir: SchemaIR, one: Node | Edge) -> Table:
    location = table_directory(table_key(one), ids.new_ulid())
    return create_table(txn.store, location, table_schema(ir, one))


def _move(txn: WriteTxn, passage: Passage, table: Table) -> Table:
    """All rows in a table of their own: no file of it holds what was dropped."""
    made = _new_table(txn, passage.after, passage.new)
    pieces = [write_rows(txn.store, made, one) for one in _pieces(passage, table)]
    return commit(txn.store, made, appended(made, pieces)) if pieces else made


def _pieces(passage: Passage, table: Table) -> Iterator[pa.Table]:
    """All rows in their new form, some at a time."""
    sources = [one.source for one in passage.columns if one.source is not None]
    held: list[pa.RecordBatch] = []
    for batch in batches(table, sources):
        held.append(batch)
        if sum(b.num_rows for b in held) >= _PIECE or sum(b.nbytes for b in held) >= _HELD:
            yield _renewed(passage, held)
            held = []
    if held:
        yield _renewed(passage, held)


def _renewed(passage: Passage, held: list[pa.RecordBatch]) -> pa.Table:
    rows = pa.Table.from_batches(held).combine_chunks().to_batches()
    names = [one.field.name for one in passage.columns]
    made = [[one.of(batch) for one in passage.columns] for batch in rows]
    return pa.Table.from_batches([pa.record_batch(one, names) for one in made])
