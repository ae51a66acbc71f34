"""History of one entity: its versions, and the commit that set each property value.

Owns the walk over the commit graph. A version belongs to the commit that created it, on whatever
branch. A merge that only carried it over created nothing; a merge that decided between both sides
did. Each content of the table is read once, for one row. Commits that did not touch the table cost
nothing.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from omnigraph.errors import EntityNotFound, HistoryReclaimed, StorageError
from omnigraph.storage.blobs import row_schema
from omnigraph.storage.equality import same_values
from omnigraph.storage.find import find
from omnigraph.storage.table import Table, open_table

from .bases import best_bases
from .commit import Commit, TableEntry
from .diff import fitted, matched
from .entities import EntityChange, Op
from .log import in_order
from .snapshot import Snapshot


@dataclass(frozen=True, slots=True)
class EntityVersion:
    """The change that one commit made to an entity; `values` is None if it removed the entity.

    `before` are the values at the first parent, `changed` the properties that an update changed,
    `endpoints` the source and target of an edge.
    """

    commit: Commit
    op: Op
    values: dict[str, Any] | None
    before: dict[str, Any] | None = None
    changed: tuple[str, ...] = ()
    endpoints: dict[str, str] | None = None


class EntityHistory(list[EntityVersion]):
    """The versions of an entity, newest first.

    `gap` is the newest commit that changed the type and whose predecessor was cleaned up, so that
    the two cannot be compared. Versions before it are not listed. None if the history is complete.
    """

    gap: Commit | None = None

    @property
    def complete(self) -> bool:
        """Whether the history reaches back to the first version."""
        return self.gap is None

    def __repr__(self) -> str:
        end = "" if self.gap is None else f"; a cleanup took what was before commit {self.gap.id}"
        return f"<EntityHistory: {len(self)} version{'s'[: len(self) != 1]}{end}>"


@dataclass(frozen=True, slots=True)
class Blamed:
    """A property with its current value and the commit that set it; None if that was cleaned up."""

    name: str
    value: Any
    commit: Commit | None

    @property
    def actor(self) -> str | None:
        """Who set the value."""
        return self.commit.actor if self.commit is not None else None


@dataclass(frozen=True, slots=True)
class _Row:
    """The entity's row in one content of its table, possibly empty, with the table's columns."""

    rows: pa.Table
    schema: pa.Schema


class Trace:
    """Traces an entity through all ancestors of a snapshot."""

    def __init__(self, shown: Snapshot, key: str, entity_id: str) -> None:
        if key not in shown.tables:
            raise EntityNotFound(f"there is no {key.replace(':', ' type ')} here")
        self._shown, self._key, self._id = shown, key, entity_id
        self._commits = in_order(shown.log.ancestors(shown.commit_id).values())
        self._entries = _entries(self._commits, shown.tables[key])
        self._gone = frozenset(shown.schema.erased)
        self._known: dict[str, _Row] = {}

    def versions(self, limit: int | None = None) -> EntityHistory:
        """Return the versions, newest first, up to a limit; stop where the past was cleaned up."""
        found = EntityHistory()
        for commit in self._commits:
            if limit is not None and len(found) >= limit:
                break
            if not any(self._differs(commit, parent) for parent in commit.parents or ("",)):
                continue
            try:
                change = self._change(commit)
            except HistoryReclaimed:
                found.gap = commit
                break
            if change is not None:
                found.append(_version(commit, change))
        return found

    def blame(self) -> dict[str, Blamed]:
        """Return for each property of the entity the commit that set its current value."""
        now = self._row(self._shown.commit_id)
        if now is None or not now.rows.num_rows:
            type_name = self._key.partition(":")[2]
            raise EntityNotFound(f"there is no {type_name} '{self._id}' here")
        names = [name for name in now.rows.column_names if name != "id"]
        waiting = {self._shown.commit_id: set(names)}
        found: dict[str, Commit | None] = {}
        for commit in self._commits:
            asked = waiting.pop(commit.id, None)
            if asked:
                self._hand_on(commit, asked, waiting, found, now)
        values = now.rows.to_pylist()[0]
        return {name: Blamed(name, values[name], found.get(name)) for name in names}

    def _hand_on(
        self,
        commit: Commit,
        asked: set[str],
        waiting: dict[str, set[str]],
        found: dict[str, Commit | None],
        now: _Row,
    ) -> None:
        """Pass values that a parent already had on to that parent; blame this commit for others."""
        try:
            for parent in commit.parents:
                had = asked if not self._differs(commit, parent) else self._same(parent, asked, now)
                waiting.setdefault(parent, set()).update(had)
                asked = asked - had
        except HistoryReclaimed:
            return
        found.update(dict.fromkeys(asked, commit))

    def _same(self, commit_id: str, names: set[str], now: _Row) -> set[str]:
        """Return the properties that already had their current value at a commit."""
        then = self._row(commit_id)
        if then is None or not then.rows.num_rows:
            return set()
        rows = fitted(then.rows, then.schema, now.schema).cast(now.rows.schema)
        return {name for name in names if same_values(rows[name], now.rows[name])[0]}

    def _differs(self, commit: Commit, parent: str) -> bool:
        """Whether the table differs between a commit and a parent; compares ids, reads nothing."""
        one, other = self._entries.get(commit.id), self._entries.get(parent)
        return (one and one.content_id) != (other and other.content_id)

    def _change(self, commit: Commit) -> EntityChange | None:
        """Return the change of a commit to the entity; None if a parent already had that value.

        A merge counts as well if it took the value of one side against a change of the other.
        """
        after = self._row(commit.id)
        changes = [self._against(parent, after) for parent in commit.parents or ("",)]
        made = all(one is not None for one in changes)
        return changes[0] if made or (changes[0] is not None and self._decided(commit)) else None

    def _decided(self, merge: Commit) -> bool:
        """Whether the first parent of a merge had changed the entity since the merge base."""
        ours, theirs = (replace(self._shown, commit_id=one) for one in merge.parents)
        mine = self._row(ours.commit_id)
        return all(self._against(base, mine) is not None for base in best_bases(ours, theirs)[0])

    def _against(self, parent: str, after: _Row | None) -> EntityChange | None:
        before = self._row(parent)
        known = after or before
        if known is None:
            return None
        shape = row_schema(known.schema)
        was = shape.empty_table() if before is None else _fit(before, known)
        now = shape.empty_table() if after is None else after.rows
        return next(matched(self._key, was, now, shape).records(), None)

    def _row(self, commit_id: str) -> _Row | None:
        """Read the entity at a commit; None if the table does not exist there."""
        entry = self._entries.get(commit_id)
        if entry is None:
            return None
        if entry.content_id not in self._known:
            table = self._open(entry, commit_id)
            self._known[entry.content_id] = _Row(self._read(table, entry, commit_id), table.schema)
        return self._known[entry.content_id]

    def _read(self, table: Table, entry: TableEntry, commit_id: str) -> pa.Table:
        wanted = {"id": pa.array([self._id], pa.string())}
        try:
            return find(table, wanted, table.schema.names)
        except (OSError, StorageError, pa.ArrowException) as error:
            if self._shown.store.has(entry.location, entry.lance_version):
                raise
            raise HistoryReclaimed(first_unreadable_commit_id=commit_id) from error

    def _open(self, entry: TableEntry, commit_id: str) -> Table:
        try:
            if entry.location not in self._gone:
                return open_table(self._shown.store, entry.location, entry.lance_version)
        except FileNotFoundError:
            pass
        raise HistoryReclaimed(first_unreadable_commit_id=commit_id)


def _fit(row: _Row, known: _Row) -> pa.Table:
    return fitted(row.rows, row.schema, known.schema).cast(row_schema(known.schema))


def _version(commit: Commit, change: EntityChange) -> EntityVersion:
    facts = (change.after, change.before, change.changed, change.endpoints)
    return EntityVersion(commit, change.op, *facts)


def _entries(commits: list[Commit], now: TableEntry) -> Mapping[str, TableEntry | None]:
    """Return the table entry of each commit, whatever the table was called then."""
    found: dict[str, TableEntry | None] = {}
    for one in reversed(commits):
        before = found.get(one.parents[0]) if one.parents else None
        found[one.id] = _entry(one, before, now)
    return found


def _entry(commit: Commit, before: TableEntry | None, now: TableEntry) -> TableEntry | None:
    listed = [one for one in commit.tables.values() if one is not None]
    same = next((one for one in listed if one.location == now.location), None)
    if same is not None:
        return same
    named = commit.tables.get(now.key, before)
    dropped = before is not None and commit.tables.get(before.key, before) is None
    return None if dropped and named is before else named
