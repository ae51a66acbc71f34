"""What changed between two snapshots, entity by entity, reading only where their tables differ.

Tables with equal content ids are never opened. Rows are matched by entity id, never by row id: row
ids of two branches are unrelated. Values are equal if their bytes are.
"""

from collections.abc import Iterable, Iterator, Mapping

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.errors import ChangeSchemaBoundary, StorageError
from omnigraph.storage.arrow import PROPERTY_ID
from omnigraph.storage.blobs import row_schema
from omnigraph.storage.difference import compare, differing_rows, rows_at, same_at
from omnigraph.storage.equality import same_rows
from omnigraph.storage.find import read
from omnigraph.storage.scan import ROW_ID
from omnigraph.storage.store import Store
from omnigraph.storage.table import Table, open_table

from .entities import TableChanges
from .gone import told_when_gone
from .log import Log
from .snapshot import Snapshot
from .stretches import Stretch, stretches

_Ids = npt.NDArray[np.uint64]
_MANY = 4_096  # above this many rows, check first whether maintenance only moved them


def changed_keys(old: Snapshot, new: Snapshot) -> list[str]:
    """Return the sorted keys of tables whose content differs; reads no table.

    A table that was only renamed appears under its new key.
    """
    keys = {*old.tables, *new.tables} - {former_key(old, new, key) for key in new.tables}
    return sorted(key for key in {*keys, *new.tables} if _content(old, new, key))


def _content(old: Snapshot, new: Snapshot, key: str) -> bool:
    was, now = old.tables.get(former_key(old, new, key)), new.tables.get(key)
    return was is None or now is None or was.content_id != now.content_id


def former_key(old: Snapshot, new: Snapshot, key: str) -> str:
    """Return the old key of a table of the new snapshot: a renamed table keeps its location."""
    now = new.tables.get(key)
    if now is None or key in old.tables:
        return key
    return next((k for k, one in old.tables.items() if one.location == now.location), key)


def diff_snapshots(
    old: Snapshot, new: Snapshot, keys: Iterable[str] | None = None
) -> Iterator[TableChanges]:
    """Yield the changes of every table that differs, or of the given ones, table by table."""
    for key in changed_keys(old, new) if keys is None else keys:
        found = diff_table(old, new, key)
        if not found.empty:
            yield found


def diff_table(
    old: Snapshot,
    new: Snapshot,
    key: str,
    *,
    whole: bool = False,
    fit: Mapping[str, pa.Scalar] | None = None,
) -> TableChanges:
    """Return the changes of one table.

    `compare_all_rows` compares every row by id, as a check on the shortcut. A type with different
    properties raises `ChangeSchemaBoundary`; with `column_defaults` the old rows get the new
    columns instead, filled with these values where the rows had none.
    """
    with told_when_gone(old), told_when_gone(new):
        return _diff_table(old, new, key, whole=whole, fit=fit)


def _diff_table(
    old: Snapshot,
    new: Snapshot,
    key: str,
    *,
    whole: bool,
    fit: Mapping[str, pa.Scalar] | None,
) -> TableChanges:
    before = former_key(old, new, key)
    was = old.table(before) if before in old.tables else None
    now = new.table(key) if key in new.tables else None
    if was is not None and now is not None and fit is None and not _agree(was, now):
        kind_name = key.partition(":")[2]
        raise ChangeSchemaBoundary(graph_commit_id=new.commit_id, type_name=kind_name)
    if was is not None and now is not None and before == key and not whole:
        parts = _in_stretches(old, new, key, (was, now))
        if parts is not None:
            return parts
    return diff_tables(new.store, key, was, now, whole=whole, filled=fit)


def _in_stretches(
    old: Snapshot, new: Snapshot, key: str, tables: tuple[Table, Table]
) -> TableChanges | None:
    """Diff a table before and after its maintenance only; None if that reads no fewer rows."""
    was, now = tables
    if was.location != now.location or was.schema.names != now.schema.names:
        return None
    left = compare(was, now).rows
    found = stretches(old, new, key) if left > _MANY else None
    if found is None:
        return None
    try:
        return _composed(new.store, key, found, now, left)
    except (FileNotFoundError, StorageError):  # a cleanup removed a version in between
        return None


def rows_between(old: Snapshot, new: Snapshot, key: str) -> int:
    """Return an upper bound of the rows to compare in a table of both snapshots; reads no row."""
    was, now = old.table(key), new.table(key)
    if was.location != now.location:
        return int(was.dataset.count_rows() + now.dataset.count_rows())
    left = compare(was, now).rows
    found = stretches(old, new, key) if left > _MANY else None
    if found is None:
        return left
    try:
        return min(left, sum(compare(*_opened(new.store, pair)).rows for pair in found))
    except (FileNotFoundError, StorageError):  # a cleanup removed a version in between
        return left


def _composed(
    store: Store, key: str, found: Iterable[Stretch], now: Table, most: int
) -> TableChanges | None:
    """Combine the changes along a version path; None unless it reads fewer rows than the limit."""
    pairs = [_opened(store, segment) for segment in found]
    alike = all(table.schema.equals(now.schema) for pair in pairs for table in pair)
    if not alike or sum(compare(*pair).rows for pair in pairs) >= most:
        return None
    parts = no_changes(key, now)
    for one, other in pairs:
        parts = _followed(parts, diff_tables(store, key, one, other))
    return parts


def _opened(store: Store, pair: Stretch) -> list[Table]:
    return [open_table(store, one.location, one.lance_version) for one in pair]


def _followed(first: TableChanges, then: TableChanges) -> TableChanges:
    """Combine two successive sets of changes into one."""
    before = [first.before, first.deleted, *_others((then.before, then.deleted), first.ids)]
    after = [then.inserted, then.after, *_others((first.inserted, first.after), then.ids)]
    shape = first.inserted.schema
    return matched(first.key, pa.concat_tables(before), pa.concat_tables(after), shape)


def _others(tables: Iterable[pa.Table], ids: pa.Array) -> list[pa.Table]:
    return [one.filter(pc.invert(pc.is_in(one["id"], value_set=ids))) for one in tables]


def diff_tables(
    store: Store,
    key: str,
    old: Table | None,
    new: Table | None,
    *,
    whole: bool = False,
    filled: Mapping[str, pa.Scalar] | None = None,
) -> TableChanges:
    """Return the changes from one version of a table to another; None is a missing table."""
    shape = row_schema((new or old).schema)  # type: ignore[union-attr]
    if old is None or new is None:
        before = shape.empty_table() if old is None else read(old, old.schema.names)
        after = shape.empty_table() if new is None else read(new, new.schema.names)
        return matched(key, before, after, shape)
    alike = old.schema.names == new.schema.names
    if old.location == new.location and not whole:
        before, after = differing_rows(store, compare(old, new), alike=alike)
    else:
        first, second = _by_id(old, new, alike=alike)
        before, after = rows_at(old, first), rows_at(new, second)
    return matched(key, fitted(before, old.schema, new.schema, filled), after, shape)


def no_changes(key: str, table: Table) -> TableChanges:
    """Return the changes of a table that did not change."""
    nothing = row_schema(table.schema).empty_table()
    return TableChanges(key, nothing, nothing, nothing, nothing)


def _by_id(old: Table, new: Table, *, alike: bool) -> tuple[_Ids, _Ids]:
    """Match all rows of both tables by entity id; return the row ids of those that differ."""
    was, now = (read(one, ["id"], places=True) for one in (old, new))
    first, second = was[ROW_ID].to_numpy(), now[ROW_ID].to_numpy()
    place = pc.index_in(was["id"].combine_chunks(), value_set=now["id"].combine_chunks())
    mine = np.flatnonzero(pc.is_valid(place).to_numpy(zero_copy_only=False))
    theirs = place.drop_null().to_numpy()
    if not alike or not len(mine):
        return first, second
    same = same_at(old, first[mine], new, second[theirs])
    return np.delete(first, mine[same]), np.delete(second, theirs[same])


def matched(key: str, before: pa.Table, after: pa.Table, shape: pa.Schema) -> TableChanges:
    """Match rows of two states by entity id; a row that is equal in both is not a change."""
    before, after = before.cast(shape).sort_by("id"), after.cast(shape).sort_by("id")
    first, second = before["id"].combine_chunks(), after["id"].combine_chunks()
    gone = pc.invert(pc.is_in(first, value_set=second))
    new = pc.invert(pc.is_in(second, value_set=first))
    was, now = before.filter(pc.invert(gone)), after.filter(pc.invert(new))
    differ = pa.array(~same_rows(was, now))
    return TableChanges(
        key, after.filter(new), was.filter(differ), now.filter(differ), before.filter(gone)
    )


def snapshot_of(near: Snapshot, log: Log, commit_id: str) -> Snapshot:
    """Return the snapshot of any commit in a log."""
    if commit_id == near.commit_id:
        return near
    tables, schema = log.state_of(commit_id)
    version = log.get(commit_id).manifest_version
    store, erased = near.store, frozenset(near.schema.erased)
    return Snapshot(store, near.branch, commit_id, version, schema, tables, log, True, erased)


def _agree(old: Table, new: Table) -> bool:
    """Return whether two tables have equal properties, by identity and type; names may differ."""
    return _properties(old.schema) == _properties(new.schema)


def _properties(schema: pa.Schema) -> dict[bytes, str]:
    return {_identity(one): str(one.type) for one in schema}


def _identity(one: pa.Field) -> bytes:
    found: bytes = (one.metadata or {}).get(PROPERTY_ID, one.name.encode())
    return found


def fitted(
    rows: pa.Table,
    old: pa.Schema,
    new: pa.Schema,
    filled: Mapping[str, pa.Scalar] | None = None,
) -> pa.Table:
    """Return rows with the columns of another schema, matched by property identity.

    A column that did not exist gets its value from `column_defaults`, else null.
    """
    if old.names == new.names:
        return rows
    known = {_identity(field): field for field in old}
    columns = {}
    for one, plain in zip(new, row_schema(new), strict=True):
        was = known.get(_identity(one))
        if was is not None and was.type == one.type:
            columns[one.name] = rows[was.name]
        elif was is not None:  # a numeric type that was widened
            columns[one.name] = rows[was.name].cast(plain.type)
        elif filled is not None and one.name in filled:
            columns[one.name] = pa.repeat(filled[one.name], rows.num_rows)
        else:
            columns[one.name] = pa.nulls(rows.num_rows, plain.type)
    return pa.table(columns)
