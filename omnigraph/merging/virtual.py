"""The recursive merge base of a criss-cross history: several common ancestors, merged in memory.

Bases are merged pairwise over their own bases, entity by entity, in the order of their ids. Where
they disagree there is no base value: such an uncertain entity is taken from neither side, so any
difference between the sides becomes a conflict.
"""

from collections.abc import Mapping

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.history.bases import Frame
from omnigraph.history.commit import Commit
from omnigraph.history.diff import fitted, former_key, matched, snapshot_of
from omnigraph.history.gone import told_when_gone
from omnigraph.history.log import merge_bases
from omnigraph.history.snapshot import Snapshot
from omnigraph.ingest.defaults import first_values
from omnigraph.rules.check import type_named
from omnigraph.storage.blobs import row_schema
from omnigraph.storage.equality import same_rows
from omnigraph.storage.find import find

from .sides import Granularity, Sides, ids_of

_Value = tuple[pa.Table, frozenset[str]]  # rows, and ids without a certain base value


def virtual_sides(frame: Frame, first: Sides, granularity: Granularity) -> Sides:
    """Return the sides of a table relative to the merge of all bases instead of the first base."""
    ids = pa.concat_arrays([ids_of(first.ours), ids_of(first.theirs)]).unique()
    key = first.key
    ours, theirs = (_rows(one, frame.ours, key, ids) for one in (frame.ours, frame.theirs))
    ids = _where_different(ids, ours, theirs)
    ours, theirs = _only(ours, ids), _only(theirs, ids)
    names = tuple(one.commit_id for one in frame.bases)
    base, doubtful = _virtual(frame, names, key, ids)
    base = base.filter(pc.invert(pc.is_in(base["id"], pa.array(sorted(doubtful), pa.string()))))
    shape = ours.schema
    return Sides(
        key,
        matched(key, base, ours, shape),
        matched(key, base, theirs, shape),
        granularity,
        doubtful,
    )


def _virtual(frame: Frame, bases: tuple[str, ...], key: str, ids: pa.Array) -> _Value:
    """Return entities as they are in the merge of some commits."""
    rows = _at(frame, bases[0], key, ids)
    doubtful: frozenset[str] = frozenset()
    below = _ancestors(frame, bases[0])
    for name in bases[1:]:
        own = _ancestors(frame, name)
        base, unsure = _virtual(frame, merge_bases(below, own), key, ids)
        rows, clashing = _merged(base, rows, _at(frame, name, key, ids), unsure)
        doubtful |= clashing
        below = {**below, **own}
    return rows, doubtful


def _merged(base: pa.Table, one: pa.Table, other: pa.Table, unsure: frozenset[str]) -> _Value:
    """Merge two sets of rows over a third: single changes are taken, double ones are uncertain."""
    shape = one.schema
    sides = Sides("", matched("", base, one, shape), matched("", base, other, shape))
    fresh, after, gone = sides.taken()
    touched = pa.concat_arrays([after["id"].combine_chunks(), gone])
    kept = one.filter(pc.invert(pc.is_in(one["id"], value_set=touched)))
    differing = frozenset(_where_different(_ids(one, other), one, other).to_pylist())
    clashing = frozenset(sides.contested) | (unsure & differing)
    return pa.concat_tables([kept, fresh, after]), clashing


def _at(frame: Frame, commit_id: str, key: str, ids: pa.Array) -> pa.Table:
    return _rows(snapshot_of(frame.ours, frame.ours.log, commit_id), frame.ours, key, ids)


def _rows(one: Snapshot, near: Snapshot, key: str, ids: pa.Array) -> pa.Table:
    return rows_where(one, near, key, {"id": ids})


def rows_where(one: Snapshot, near: Snapshot, key: str, where: Mapping[str, pa.Array]) -> pa.Table:
    """Return the entities of a snapshot in the columns of the target."""
    now = near.table(key).schema
    name = former_key(one, near, key)
    if name not in one.tables:
        return row_schema(now).empty_table()
    table = one.table(name)
    with told_when_gone(one):
        found = find(table, where, table.schema.names)
    first = first_values(type_named(near.schema.ir.catalog, key))
    return fitted(found, table.schema, now, first).cast(row_schema(now))


def _where_different(ids: pa.Array, one: pa.Table, other: pa.Table) -> pa.Array:
    """Return the ids whose rows differ between both tables."""
    place = pc.index_in(one["id"].combine_chunks(), value_set=other["id"].combine_chunks())
    both = one.filter(pc.is_valid(place))
    alike = both.filter(pa.array(same_rows(both, other.take(place.drop_null()))))["id"]
    neither = pc.invert(pc.is_in(ids, value_set=_ids(one, other)))
    same = pc.or_(neither, pc.is_in(ids, value_set=alike.combine_chunks()))
    return ids.filter(pc.invert(same))


def _only(rows: pa.Table, ids: pa.Array) -> pa.Table:
    return rows.filter(pc.is_in(rows["id"], value_set=ids))


def _ids(one: pa.Table, other: pa.Table) -> pa.Array:
    return pa.concat_arrays([one["id"].combine_chunks(), other["id"].combine_chunks()]).unique()


def _ancestors(frame: Frame, commit_id: str) -> dict[str, Commit]:
    return frame.ours.log.ancestors(commit_id)
