"""Stages the tables of a new schema: reshaped, copied or created, as unpublished versions.

A softly dropped property stays in files, but no new version refers to its field id. If its history
is erased too, the remaining data is copied to a new table in another directory.
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

_PIECE = 1 << 16  # rows per fragment of a copied table
_HELD = 256 << 20  # bytes per fragment


@dataclass(slots=True)
class Tables:
    """The table entries that the new manifest adds and removes."""

    adopted: dict[str, TableEntry] = field(default_factory=dict)
    registered: dict[str, TableEntry] = field(default_factory=dict)
    dropped: set[str] = field(default_factory=set)
    erased: set[str] = field(default_factory=set)
    seen: list[SameVersion] = field(default_factory=list)
    files: dict[str, FileChecksum] = field(default_factory=dict)


def writes_data(plan: SchemaPlan, txn: WriteTxn) -> bool:
    """Return whether existing rows must be rewritten, partly or completely."""
    found = passages(plan.before.ir, plan.after)
    changed = (one for one in found if one.fills or (plan.allow_data_loss and one.loses))
    entries = (txn.entry(one.old_key) for one in changed)
    return any(entry is not None and entry.rows for entry in entries)


def stage_tables(plan: SchemaPlan, txn: WriteTxn) -> Tables:
    """Stage every table of the new schema."""
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
    assert entry is not None  # noqa: S101 - a manifest has a table for every type of its schema
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
    assert entry is not None  # noqa: S101 - a manifest has a table for every type of its schema
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
    """Copy all rows to a new table, none of whose files holds dropped data."""
    made = _new_table(txn, passage.after, passage.new)
    pieces = [write_rows(txn.store, made, one) for one in _pieces(passage, table)]
    return commit(txn.store, made, appended(made, pieces)) if pieces else made


def _pieces(passage: Passage, table: Table) -> Iterator[pa.Table]:
    """Yield all rows in their new form, a bounded number at a time."""
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
    names = [column.field.name for column in passage.columns]
    made = [[column.of(batch) for column in passage.columns] for batch in rows]
    return pa.Table.from_batches([pa.record_batch(arrays, names) for arrays in made])
