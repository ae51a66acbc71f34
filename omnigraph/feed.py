"""The change feed for programs: blocks of whole commits, each with a durable cursor.

Owns the form of a block, the JSON of a change, and where a reader starts. A cursor always points
after a whole commit. Nothing is kept between calls: the cursor is the only state.
"""

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import pyarrow as pa

from omnigraph.boundary import Guarded
from omnigraph.encode import encoder
from omnigraph.errors import (
    ChangeCursorRejected,
    ChangeFeedGap,
    CommitNotFound,
    HistoryReclaimed,
    InputError,
    OmnigraphError,
    UsageError,
)
from omnigraph.history.changes import Block, Chain, Scope, blocks, chain_after, scope_of
from omnigraph.history.commit import Commit
from omnigraph.history.cursor import Binding, branch_scope, decode, encode, peek
from omnigraph.history.entities import EntityChange, TableChanges
from omnigraph.history.line import Line
from omnigraph.history.snapshot import Snapshot
from omnigraph.lang.schema.ir import SchemaIR
from omnigraph.naming import quote_name

Names = Collection[str] | None
NOW, BEGINNING, AFTER = "now", "beginning", "after:"
_SCHEMA = pa.schema(
    [(name, pa.string()) for name in ("commit_id", "kind", "type", "id", "op", "before", "after")]
)


@dataclass(frozen=True, slots=True)
class Wanted:
    """A change filter as callers pass it: names of types, kinds (node, edge) and ops."""

    types: Names = None
    kinds: Names = None
    ops: Names = None

    def within(self, schemas: Iterator[SchemaIR]) -> Scope:
        """Resolve the filter against the schemas of a graph."""
        return scope_of(schemas, types=self.types, kinds=self.kinds, ops=self.ops)


@dataclass(frozen=True, slots=True)
class Position:
    """Where a reader starts: at a named start, a cursor, or a page token; by default now."""

    start: str | None = None
    cursor: str | None = None
    page_token: str | None = None

    def __post_init__(self) -> None:
        facts = {"start": self.start, "cursor": self.cursor, "page_token": self.page_token}
        given = [name for name, value in facts.items() if value is not None]
        if len(given) > 1:
            reason = f"{' and '.join(given)} are mutually exclusive: pass only one of them"
            hint = "a cursor or a page token already says where to continue"
            raise UsageError(reason=reason, hint=hint)


@dataclass(frozen=True, slots=True)
class BlockChanges(Guarded):
    """The changes of one commit, in order; can be iterated repeatedly."""

    tables: tuple[TableChanges, ...]

    def __iter__(self) -> Iterator[EntityChange]:
        for one in self.tables:
            yield from one.records()

    def __len__(self) -> int:
        return sum(one.total for one in self.tables)

    def __repr__(self) -> str:
        return f"<{len(self)} change{'s'[: len(self) != 1]}>"


@dataclass(frozen=True)
class ChangeBlock(Guarded):
    """A whole commit: its changes against its first parent, and the cursor after it.

    Apply a block once per `commit.id`, and store the cursor together with the applied changes.
    """

    block: Block
    cursor: str

    def __repr__(self) -> str:
        return f"<ChangeBlock {self.commit.id}: {self.commit.operation}, {self.changes!r}>"

    @property
    def commit(self) -> Commit:
        """The commit that made the changes."""
        return self.block.commit

    @cached_property
    def changes(self) -> BlockChanges:
        """The changes: nodes before edges, by type, then by id; empty if only files moved."""
        return BlockChanges(tuple(one.changes for one in self.block.types))

    def to_json(self) -> dict[str, Any]:
        """Return the block as one document."""
        return {"cause": cause(self.commit), "changes": list(documents(self.block))}

    def to_arrow(self) -> pa.RecordBatch:
        """Return the changes as rows; the images before and after are JSON texts."""
        import orjson

        rows = [
            {
                "commit_id": self.commit.id,
                "kind": one["kind"],
                "type": one["type"]["name"],
                "id": one["id"],
                "op": one["op"],
                **{n: orjson.dumps(one[n]).decode() for n in ("before", "after") if n in one},
            }
            for one in documents(self.block)
        ]
        return pa.RecordBatch.from_pylist(rows, schema=_SCHEMA)


class Feed(Guarded, Iterator[ChangeBlock]):
    """The blocks after a position, up to the head at the time the feed was opened.

    `cursor` points after the last block that was read, initially to the start of the feed.
    """

    def __init__(self, chain: Chain, scope: Scope, binding: Binding) -> None:
        self.chain, self.scope, self.binding = chain, scope, binding
        self._blocks = blocks(chain, scope)
        self._at = chain.after
        self._failed: OmnigraphError | None = None  # raised again: an error must not end a feed

    def __iter__(self) -> "Feed":
        return self

    def __next__(self) -> ChangeBlock:
        if self._failed is not None:
            raise self._failed
        try:
            found = next(self._blocks)
        except ChangeFeedGap as error:
            self._failed = told_gap(error, self.cursor)
            raise self._failed from error
        except OmnigraphError as error:
            self._failed = error
            raise
        self._at = found.commit.id
        return ChangeBlock(found, self.cursor)

    @property
    def cursor(self) -> str:
        """The cursor from which to continue later."""
        return cursor_at(self.binding, self._at)

    @property
    def at_start(self) -> bool:
        """Whether no block was read yet."""
        return self._at == self.chain.after

    @property
    def caught_up(self) -> bool:
        """Whether all blocks were read."""
        return self._at == self.chain.shown.commit_id

    def to_arrow_batches(self) -> Iterator[pa.RecordBatch]:
        """Yield the blocks as batches of rows, one per commit, for sinks that take Arrow."""
        for one in self:
            yield one.to_arrow()


def open_feed(shown: Snapshot, line: Line, wanted: Wanted, position: Position) -> Feed:
    """Open the feed of a branch from a start or a cursor, up to a snapshot."""
    cursor = position.cursor
    scope = scope_for(shown, wanted, cursor)
    binding = bound(shown, line, scope)
    if cursor is None:
        start = NOW if position.start is None else position.start
        return Feed(_started(shown, start), scope, binding)
    at = decode(cursor, "feed-cursor", binding).get("commit")
    return Feed(reached(shown, str(at), cursor), scope, binding)


def scope_for(shown: Snapshot, wanted: Wanted, token: str | None) -> Scope:
    """Resolve the filter by the current schema; dropped types are found in the token's schema."""
    return wanted.within(_schemas(shown, token))


def _schemas(shown: Snapshot, token: str | None) -> Iterator[SchemaIR]:
    from omnigraph.history.diff import snapshot_of

    yield shown.schema.ir
    at = None if token is None else peek(token).get("commit")
    if isinstance(at, str):
        try:
            yield snapshot_of(shown, shown.log, at).schema.ir
        except (CommitNotFound, HistoryReclaimed):
            return  # a foreign or expired token is reported where the token is decoded


def bound(shown: Snapshot, line: Line, scope: Scope) -> Binding:
    """Return what the cursors of a branch are bound to."""
    domain, first = shown.schema.ir.domain, shown.log.first().id
    return Binding(domain, first, scope.digest, branch_scope(line.name), line.ulid)


def cursor_at(binding: Binding, commit_id: str) -> str:
    """Return the cursor after a commit."""
    return encode("feed-cursor", binding, commit=commit_id)


def reached(shown: Snapshot, commit_id: str, token: str) -> Chain:
    """Return the commits after a token's commit; reject one outside the branch's history."""
    try:
        found = chain_after(shown, commit_id)
    except ChangeFeedGap as error:
        raise told_gap(error, token) from error
    if found is None:
        raise ChangeCursorRejected(reason="its commit is not in the history of the branch")
    return found


def _started(shown: Snapshot, start: str) -> Chain:
    after = str(start).removeprefix(AFTER)
    if start == NOW:
        after = shown.commit_id
    elif start == BEGINNING:
        after = shown.log.first().id
    elif after == str(start):
        known = "now, beginning or after:COMMIT_ID"
        message = f"unknown start {quote_name(start)}; expected {known}"
        raise InputError(message, reason="unknown start")
    found = chain_after(shown, after)
    if found is None:
        raise InputError(
            f"commit '{after}' is not in the first-parent history of branch '{shown.branch}'",
            reason="not on the branch",
            hint=f"omnigraph commit list --branch {shown.branch} lists its commits;"
            " a merged commit is reported as part of its merge",
        )
    return found


def told_gap(error: ChangeFeedGap, cursor: str) -> ChangeFeedGap:
    """Return a gap error with the cursor that leads up to the gap."""
    first = error.first_unreadable_commit_id
    return ChangeFeedGap(cursor=cursor, first_unreadable_commit_id=first)


# JSON -------------------------------------------------------------------------------------------


def cause(one: Commit) -> dict[str, Any]:
    """Return who made a commit and when; times are microseconds since 1970, no null members."""
    facts = {
        "graph_commit_id": one.id,
        "parent_commit_id": one.parent,
        "merged_parent_commit_id": one.merged_parent,
        "authored_branch": one.branch,
        "actor_id": one.actor,
        "authored_at": one.created_at,
    }
    return {name: value for name, value in facts.items() if value is not None}


def documents(block: Block) -> Iterator[dict[str, Any]]:
    """Yield the changes of a block as JSON values."""
    for one in block.types:
        form = document_form(one.type_id, one.changes)
        yield from map(form, one.changes.records())


def document_form(type_id: int, changes: TableChanges) -> Callable[[EntityChange], dict[str, Any]]:
    """Return the function that turns the changes of one type into JSON."""
    found = {field.name: encoder(field.type) for field in changes.after.schema}
    encoders = {name: one for name, one in found.items() if one is not None}

    def image(
        properties: dict[str, Any] | None, ends: dict[str, str] | None
    ) -> dict[str, Any] | None:
        if properties is None:
            return None
        plain = dict(properties)
        for name in encoders.keys() & plain.keys():
            if plain[name] is not None:
                plain[name] = encoders[name](plain[name])
        told = {"endpoints": {"from": ends["src"], "to": ends["dst"]}} if ends else {}
        return {"properties": plain, **told}

    def document(one: EntityChange) -> dict[str, Any]:
        images = {
            "before": image(one.before, one.endpoints_before),
            "after": image(one.after, one.endpoints_after),
        }
        return {
            "kind": one.kind,
            "type": {"id": f"{type_id:08x}", "name": one.type},
            "id": one.id,
            "op": one.op,
            **{name: value for name, value in images.items() if value is not None},
        }

    return document
