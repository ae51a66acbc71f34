"""The changes of a branch, commit by commit, as blocks in the order of publication.

Owns what a block is (a commit against its first parent, in an order that never changes), which
part of it a filter keeps, and the walk along a branch. A block is complete or not returned at all:
data that a cleanup removed is a gap, never an empty block.
"""

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field, replace

import pyarrow as pa

from omnigraph.errors import (
    ChangeFeedGap,
    ChangeSchemaBoundary,
    CommitHasNoParent,
    CommitNotFound,
    HistoryReclaimed,
    InputError,
    StorageError,
)
from omnigraph.lang.schema.ir import SchemaIR
from omnigraph.lang.schema.names import did_you_mean
from omnigraph.naming import quote_name, require_names
from omnigraph.storage.failures import DamagedError, storage_failure

from .commit import Commit, TableEntry
from .cursor import digest_of
from .diff import changed_keys, diff_table, former_key, snapshot_of
from .entities import OPS, TableChanges
from .snapshot import Snapshot

KINDS = ("node", "edge")
_REMEMBERED = 16 << 20  # largest block, in bytes, that is cached while it is read page by page


@dataclass(frozen=True, slots=True)
class Scope:
    """Which changes to return; types by their ids, which no rename changes. None means all."""

    kinds: frozenset[str] | None = None
    types: frozenset[int] | None = None
    ops: frozenset[str] | None = None

    @property
    def digest(self) -> str:
        """Return the hash of the filter, which a cursor is bound to."""
        facts = {"kinds": self.kinds, "types": self.types, "ops": self.ops}
        return digest_of({n: None if v is None else sorted(v) for n, v in facts.items()})

    def wants(self, kind: str, type_id: int) -> bool:
        """Return whether changes of a type are included at all."""
        return (self.kinds is None or kind in self.kinds) and (
            self.types is None or type_id in self.types
        )


def scope_of(
    schemas: Iterable[SchemaIR],
    *,
    types: Collection[str] | None = None,
    kinds: Collection[str] | None = None,
    ops: Collection[str] | None = None,
) -> Scope:
    """Build a filter from the names that callers use; a type may occur in any of the schemas."""
    return Scope(
        _among("kind", kinds, KINDS),
        None if types is None else _type_ids(list(schemas), types),
        _among("op", ops, OPS),
    )


def _among(
    what: str, given: Collection[str] | None, known: tuple[str, ...]
) -> frozenset[str] | None:
    if given is None:
        return None
    chosen = set(require_names(given, what))
    for one in sorted(chosen - set(known)):
        expected = f"{', '.join(known[:-1])} or {known[-1]}"
        raise InputError(reason=f"unknown {what} {quote_name(one)}; expected {expected}")
    return None if chosen == set(known) else frozenset(chosen)


def _type_ids(schemas: list[SchemaIR], given: Collection[str]) -> frozenset[int]:
    found: set[int] = set()
    for name in require_names(given):
        ids = (
            [one.type_id for one in schema.types if one.kind in KINDS and one.name == name]
            for schema in schemas
        )
        numbers = next((matches for matches in ids if matches), None)
        if numbers is None:
            known = {t.name for schema in schemas for t in schema.types if t.kind in KINDS}
            message = f"unknown type {quote_name(name)}"
            raise InputError(reason=message, hint=did_you_mean(name, known))
        found.update(numbers)
    return frozenset(found)


@dataclass(frozen=True, slots=True)
class TypeChanges:
    """The changes of one type in a block, with its type id."""

    type_id: int
    changes: TableChanges


@dataclass(frozen=True, slots=True)
class Block:
    """The changes of one commit against its first parent: nodes before edges, by type, then id."""

    commit: Commit
    types: tuple[TypeChanges, ...]


@dataclass(frozen=True, slots=True)
class Chain:
    """Commits on the first-parent path of a snapshot, oldest first, after a given commit."""

    shown: Snapshot
    after: str
    commits: tuple[Commit, ...] = field(default=(), repr=False)

    def upto(self, cut: str) -> "Chain | None":
        """Return the range up to and including a commit; None if that commit is not part of it."""
        ends = (at for at, one in enumerate(self.commits, 1) if one.id == cut)
        found = next(ends, 0 if cut == self.after else None)
        return None if found is None else replace(self, commits=self.commits[:found])


def chain_after(shown: Snapshot, after: str) -> Chain | None:
    """Return the commits after a commit, up to the snapshot; None if it is not on that path."""
    found: list[Commit] = []
    at: str | None = shown.commit_id
    while at is not None and at != after:
        try:
            found.append(shown.log.get(at))
        except (CommitNotFound, HistoryReclaimed) as error:
            raise ChangeFeedGap(first_unreadable_commit_id=at) from error
        at = found[-1].parent
    return None if at is None else Chain(shown, after, tuple(reversed(found)))


def blocks(chain: Chain, scope: Scope) -> Iterator[Block]:
    """Yield the blocks of a commit range.

    Only the state before the first commit is looked up; each further state is derived from the
    previous one and what its commit says it changed.
    """
    if not chain.commits:
        return
    old = _state_before(chain)
    for commit in chain.commits:
        new = _state_after(old, commit)
        yield _block(old, new, commit, scope)
        old = new


def remember(shown: Snapshot, block: Block, scope: Scope) -> None:
    """Cache a block that was returned only in part: the next page starts inside it."""
    size = sum(_bytes(one.changes) for one in block.types)
    if size <= _REMEMBERED:
        name = _name(block.commit, scope)
        shown.store.memory.put(name, block, weight=1 + size // 1024)


def _bytes(found: TableChanges) -> int:
    parts = (found.inserted, found.before, found.after, found.deleted)
    return sum(one.nbytes for one in parts)


def _name(commit: Commit, scope: Scope) -> str:
    return f"changes:{commit.id}:{scope.digest}"


def _block(old: Snapshot, new: Snapshot, commit: Commit, scope: Scope) -> Block:
    known: Block | None = new.store.memory.get(_name(commit, scope))
    if known is not None:
        return known
    try:
        return Block(commit, tuple(_told(old, new, scope)))
    except (HistoryReclaimed, OSError, StorageError, pa.ArrowInvalid) as error:
        if not isinstance(error, HistoryReclaimed) and not _taken(old, new, error):
            raise storage_failure(error, effect="none") from error
        raise ChangeFeedGap(first_unreadable_commit_id=new.commit_id) from error


def _taken(old: Snapshot, new: Snapshot, error: Exception) -> bool:
    """Return whether the files are gone: a table that is already open reports it in many ways."""
    lost = isinstance(error, DamagedError)  # an existing version is damaged: not by a cleanup
    if isinstance(error, StorageError) and error.kind == "not_found" and not lost:
        return True
    before, after = set(old.tables.values()), set(new.tables.values())
    return any(not new.store.has(one.location, one.lance_version) for one in before ^ after)


def commit_block(shown: Snapshot, scope: Scope) -> Block:
    """Return the block of the commit that a snapshot shows."""
    commit = shown.commit
    if commit.parent is None:
        raise CommitHasNoParent(graph_commit_id=commit.id)
    (found,) = blocks(Chain(shown, commit.parent, (commit,)), scope)
    return found


def _state_before(chain: Chain) -> Snapshot:
    shown = chain.shown
    try:
        near = snapshot_of(shown, shown.log, chain.after)
    except (CommitNotFound, HistoryReclaimed) as error:
        raise ChangeFeedGap(first_unreadable_commit_id=chain.commits[0].id) from error
    return replace(near, past=True, erased=shown.erased.union(shown.schema.erased))


def _state_after(old: Snapshot, commit: Commit) -> Snapshot:
    merged: dict[str, TableEntry | None] = {**old.tables, **commit.tables}
    return replace(
        old,
        commit_id=commit.id,
        manifest_version=commit.manifest_version,
        schema_row=commit.schema or old.schema_row,
        tables={key: one for key, one in merged.items() if one is not None},
    )


def _told(old: Snapshot, new: Snapshot, scope: Scope) -> Iterator[TypeChanges]:
    if old.schema_row.hash != new.schema_row.hash:
        _check_names(old, new, scope)
    for _, type_id, key in _in_order(old, new):
        if scope.wants(key.partition(":")[0], type_id):
            found = diff_table(old, new, key)
            kept = found if scope.ops is None else found.only(tuple(scope.ops))
            if not kept.empty:
                yield TypeChanges(type_id, kept)


def _check_names(old: Snapshot, new: Snapshot, scope: Scope) -> None:
    """Raise if property names differ: readers that copy by name must know, even if no row did."""
    for key in sorted(new.tables):
        before = former_key(old, new, key)
        if before not in old.tables or _names(old, before) == _names(new, key):
            continue
        kind, _, name = key.partition(":")
        if scope.wants(kind, new.schema.ir.type_id(kind, name)):  # type: ignore[arg-type]
            raise ChangeSchemaBoundary(graph_commit_id=new.commit_id, type_name=name)


def _names(shown: Snapshot, key: str) -> frozenset[str]:
    kind, _, name = key.partition(":")
    catalog = shown.schema.ir.catalog
    found = catalog.node(name) if kind == "node" else catalog.edge(name)
    return frozenset(one.name for one in found.properties) if found is not None else frozenset()


def _in_order(old: Snapshot, new: Snapshot) -> list[tuple[int, int, str]]:
    """Return the tables that differ, nodes before edges, then by type id."""
    found = []
    for key in changed_keys(old, new):
        kind, _, name = key.partition(":")
        schema = (new if key in new.tables else old).schema.ir
        found.append((KINDS.index(kind), schema.type_id(kind, name), key))  # type: ignore[arg-type]
    return sorted(found)
