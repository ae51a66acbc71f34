"""The change feed as blocks of whole commits, each with a durable cursor.

This module defines the structure of a block, how a change is encoded as JSON, and where a reader starts. A cursor
always points to the end of a whole commit. Apart from the cursor, no state is kept between calls.
"""

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from omnigraph.api.error_boundary import Guarded
from omnigraph.api.results.json_encoding import make_json_encoder
from omnigraph.errors import (
    ChangeCursorRejected,
    ChangeFeedGap,
    CommitNotFound,
    HistoryReclaimed,
    InputError,
    OmnigraphError,
    UsageError,
)
from omnigraph.history.branch_state import BranchState
from omnigraph.history.changes import (
    ChangeFilter,
    CommitBlock,
    CommitRange,
    build_change_filter,
    commits_after,
    iter_blocks,
)
from omnigraph.history.commit import Commit
from omnigraph.history.cursor import CursorBinding, decode_token, encode_token, hash_branch_name, read_token_position
from omnigraph.history.entities import EntityChange, TableChanges
from omnigraph.history.revisions import resolve_commit
from omnigraph.history.schema_changes import SchemaChange
from omnigraph.history.snapshot import Snapshot
from omnigraph.lang.schema.ir import SchemaIR
from omnigraph.records.cached_property import cached_property
from omnigraph.values.clock_and_ids import is_ulid
from omnigraph.values.name_rules import quote_name

ChangeFilterNames = Collection[str] | None
START_NOW, START_BEGINNING, START_AFTER_PREFIX = "now", "beginning", "after:"
_CHANGE_SCHEMA = pa.schema(
    [(name, pa.string()) for name in ("commit_id", "kind", "type", "id", "op", "before", "after")]
)


@dataclass(frozen=True, slots=True)
class ChangeFilterRequest:
    """A change filter as callers pass it: type names, kinds (node, edge) and operations."""

    types: ChangeFilterNames = None
    kinds: ChangeFilterNames = None
    ops: ChangeFilterNames = None

    def resolve(self, schemas: Iterator[SchemaIR]) -> ChangeFilter:
        """Resolve the filter against a graph's schemas."""
        return build_change_filter(schemas, type_names=self.types, kinds=self.kinds, ops=self.ops)


@dataclass(frozen=True, slots=True)
class FeedPosition:
    """A reader's start position: a named start, a cursor, or a page token. The default is `now`."""

    start: str | None = None
    cursor: str | None = None
    page_token: str | None = None

    def __post_init__(self) -> None:
        start_options = {"start": self.start, "cursor": self.cursor, "page_token": self.page_token}
        passed_names = [option_name for option_name, option_value in start_options.items() if option_value is not None]
        if len(passed_names) > 1:
            reason = f"{' and '.join(passed_names)} are mutually exclusive: pass only one of them"
            hint = "a cursor or page token already contains the start position"
            raise UsageError(reason=reason, hint=hint)


@dataclass(frozen=True, slots=True)
class BlockChanges(Guarded):
    """A commit's changes, ordered by kind (nodes first), type and id. They can be iterated over more than once.

    `schema_change` describes how the commit changed the schema, or is None.
    """

    tables: tuple[TableChanges, ...]
    schema_change: SchemaChange | None = None

    def __iter__(self) -> Iterator[EntityChange]:
        for table_changes in self.tables:
            yield from table_changes.records()

    def __len__(self) -> int:
        return sum(table_changes.total for table_changes in self.tables)

    def __repr__(self) -> str:
        return f"<{len(self)} change{'s'[: len(self) != 1]}>"


@dataclass(frozen=True)
class ChangeBlock(Guarded):
    """A commit, its changes relative to its first parent, and the cursor that points past the commit.

    Apply a block once per `commit.id`, and store the cursor together with the applied changes.
    """

    block: CommitBlock
    cursor: str

    def __repr__(self) -> str:
        schema_note = "" if self.schema_change is None else ", schema change"
        return f"<ChangeBlock {self.commit.id}: {self.commit.operation}, {self.changes!r}{schema_note}>"

    @property
    def commit(self) -> Commit:
        """The commit that made the changes."""
        return self.block.commit

    @cached_property
    def changes(self) -> BlockChanges:
        """The changes, ordered by kind (nodes first), type and id; empty if the commit changed no entities."""
        tables = tuple(type_changes.changes for type_changes in self.block.type_changes)
        return BlockChanges(tables, self.block.schema_change)

    @property
    def schema_change(self) -> SchemaChange | None:
        """The commit's schema changes as migration steps, or None if the commit did not change the schema."""
        return self.block.schema_change

    def to_json(self) -> dict[str, Any]:
        """Return the block as one JSON document."""
        return {
            "cause": describe_cause(self.commit),
            **describe_schema_change(self.schema_change),
            "changes": list(iter_change_documents(self.block)),
        }

    def to_arrow(self) -> pa.RecordBatch:
        """Return the changes as rows. The states of the entity before and after the change are JSON strings.

        A schema change is stored as JSON in the batch's schema metadata, under `schema_change`.
        """
        import orjson

        change_rows = [
            {
                "commit_id": self.commit.id,
                "kind": document["kind"],
                "type": document["type"]["name"],
                "id": document["id"],
                "op": document["op"],
                **{
                    image_name: orjson.dumps(document[image_name]).decode()
                    for image_name in ("before", "after")
                    if image_name in document
                },
            }
            for document in iter_change_documents(self.block)
        ]
        schema_member = describe_schema_change(self.schema_change)
        metadata = {name: orjson.dumps(value) for name, value in schema_member.items()}
        arrow_schema = _CHANGE_SCHEMA.with_metadata(metadata) if metadata else _CHANGE_SCHEMA
        return pa.RecordBatch.from_pylist(change_rows, schema=arrow_schema)


class Feed(Guarded, Iterator[ChangeBlock]):
    """The blocks after a position, up to the commit that was the branch head when the feed was opened.

    `cursor` points past the last block that was read. Before the first read, it points to the start of the feed.
    """

    def __init__(self, commit_range: CommitRange, change_filter: ChangeFilter, cursor_binding: CursorBinding) -> None:
        self.commit_range = commit_range
        self.change_filter = change_filter
        self.cursor_binding = cursor_binding
        self._block_iterator = iter_blocks(commit_range, change_filter)
        self._last_commit_id = commit_range.after_commit_id
        # The next call raises the error again, because a failed read must not look like the end of the feed.
        self._failure: OmnigraphError | None = None

    def __iter__(self) -> "Feed":
        return self

    def __next__(self) -> ChangeBlock:
        if self._failure is not None:
            raise self._failure
        try:
            block = next(self._block_iterator)
        except ChangeFeedGap as error:
            self._failure = add_cursor_to_gap(error, self.cursor)
            raise self._failure from error
        except OmnigraphError as error:
            self._failure = error
            raise
        self._last_commit_id = block.commit.id
        return ChangeBlock(block, self.cursor)

    @property
    def cursor(self) -> str:
        """The cursor to continue from later."""
        return encode_cursor(self.cursor_binding, self._last_commit_id)

    @property
    def at_start(self) -> bool:
        """Whether no blocks have been read yet."""
        return self._last_commit_id == self.commit_range.after_commit_id

    @property
    def caught_up(self) -> bool:
        """Whether all blocks have been read."""
        return self._last_commit_id == self.commit_range.snapshot.commit_id

    def to_arrow_batches(self) -> Iterator[pa.RecordBatch]:
        """Yield one Arrow batch per commit, for sinks that accept Arrow."""
        for block in self:
            yield block.to_arrow()


def open_feed(
    snapshot: Snapshot, branch_state: BranchState, filter_request: ChangeFilterRequest, position: FeedPosition
) -> Feed:
    """Open a branch's feed, from a start position or a cursor up to a snapshot."""
    cursor = position.cursor
    change_filter = resolve_change_filter(snapshot, filter_request, cursor)
    cursor_binding = build_cursor_binding(snapshot, branch_state, change_filter)
    if cursor is None:
        start = START_NOW if position.start is None else position.start
        return Feed(_commits_after_start(snapshot, branch_state, start), change_filter, cursor_binding)
    commit_id = decode_token(cursor, "feed-cursor", cursor_binding).get("commit")
    return Feed(commits_after_token(snapshot, str(commit_id), cursor), change_filter, cursor_binding)


def resolve_change_filter(snapshot: Snapshot, filter_request: ChangeFilterRequest, token: str | None) -> ChangeFilter:
    """Resolve the filter against the current schema. Look up dropped types in the schema at the token's commit."""
    return filter_request.resolve(_iter_schemas(snapshot, token))


def _iter_schemas(snapshot: Snapshot, token: str | None) -> Iterator[SchemaIR]:
    from omnigraph.history.diff import snapshot_at

    yield snapshot.schema.ir
    commit_id = None if token is None else read_token_position(token).get("commit")
    if isinstance(commit_id, str):
        try:
            yield snapshot_at(snapshot, snapshot.log, commit_id).schema.ir
        except (CommitNotFound, HistoryReclaimed):
            return  # decoding the token reports foreign and expired tokens


def build_cursor_binding(snapshot: Snapshot, branch_state: BranchState, change_filter: ChangeFilter) -> CursorBinding:
    """Return the scope in which a branch's cursors are valid."""
    domain, first_commit_id = snapshot.schema.ir.identity_domain, snapshot.log.first_commit().id
    return CursorBinding(
        domain, first_commit_id, change_filter.digest, hash_branch_name(branch_state.name), branch_state.ulid
    )


def encode_cursor(cursor_binding: CursorBinding, commit_id: str) -> str:
    """Return the cursor that points past a commit."""
    return encode_token("feed-cursor", cursor_binding, commit=commit_id)


def commits_after_token(snapshot: Snapshot, commit_id: str, token: str) -> CommitRange:
    """Return the commits after a token's commit. Reject a commit that is not in the branch's history."""
    try:
        commit_range = commits_after(snapshot, commit_id)
    except ChangeFeedGap as error:
        raise add_cursor_to_gap(error, token) from error
    if commit_range is None:
        raise ChangeCursorRejected(reason="the token's commit is not in the branch's history")
    return commit_range


def _commits_after_start(snapshot: Snapshot, branch_state: BranchState, start: str) -> CommitRange:
    if start == START_NOW:
        after_commit_id = snapshot.commit_id
    elif start == START_BEGINNING:
        after_commit_id = snapshot.log.first_commit().id
    elif str(start).startswith(START_AFTER_PREFIX):
        return _commits_after_revision(snapshot, branch_state, str(start).removeprefix(START_AFTER_PREFIX))
    else:
        message = f"unknown start {quote_name(start)}; expected now, beginning or after:REVISION"
        raise InputError(message, reason="unknown start")
    commit_range = commits_after(snapshot, after_commit_id)
    assert commit_range is not None  # noqa: S101 - both commits are on the branch
    return commit_range


def _commits_after_revision(snapshot: Snapshot, branch_state: BranchState, revision: str) -> CommitRange:
    """Return the commits after a revision. Reject a revision that is not on the branch."""
    is_commit_id = is_ulid(revision)
    commit_id = revision if is_commit_id else resolve_commit(snapshot.store, branch_state, snapshot, revision).id
    commit_range = commits_after(snapshot, commit_id)
    if commit_range is None:
        subject = f"commit '{commit_id}'" if is_commit_id else f"revision {quote_name(revision)} (commit {commit_id})"
        raise InputError(
            f"{subject} is not in the first-parent history of branch '{snapshot.branch}'",
            reason="not on the branch",
            hint=f"run `omnigraph commit list --branch {snapshot.branch}` to list the branch's commits;"
            " changes from merged branches are reported as part of the merge commit",
        )
    return commit_range


def add_cursor_to_gap(error: ChangeFeedGap, cursor: str) -> ChangeFeedGap:
    """Return the gap error with a cursor, which points past the last commit that was read before the gap."""
    first_unreadable_id = error.first_unreadable_commit_id
    return ChangeFeedGap(cursor=cursor, first_unreadable_commit_id=first_unreadable_id)


# JSON -------------------------------------------------------------------------------------------


def describe_cause(commit: Commit) -> dict[str, Any]:
    """Return a commit's author, time (in microseconds since 1970) and other metadata, omitting null members."""
    commit_facts = {
        "graph_commit_id": commit.id,
        "parent_commit_id": commit.parent,
        "merged_parent_commit_id": commit.merged_parent,
        "authored_branch": commit.branch,
        "actor_id": commit.actor,
        "authored_at": commit.created_at,
    }
    return {fact_name: fact_value for fact_name, fact_value in commit_facts.items() if fact_value is not None}


def describe_schema_change(schema_change: SchemaChange | None) -> dict[str, Any]:
    """Return a dict that contains a schema change as JSON, or an empty dict if the schema did not change."""
    return {} if schema_change is None else {"schema_change": schema_change.to_json()}


def iter_change_documents(block: CommitBlock) -> Iterator[dict[str, Any]]:
    """Yield the changes in a block as JSON values."""
    for type_changes in block.type_changes:
        encode_change = make_change_encoder(type_changes.type_id, type_changes.changes)
        yield from map(encode_change, type_changes.changes.records())


def make_change_encoder(type_id: int, changes: TableChanges) -> Callable[[EntityChange], dict[str, Any]]:
    """Return a function that converts changes of one type to JSON."""
    column_encoders = {field.name: make_json_encoder(field.type) for field in changes.updated_after.schema}
    encoders = {
        column_name: encode_value for column_name, encode_value in column_encoders.items() if encode_value is not None
    }

    def encode_image(properties: dict[str, Any] | None, endpoints: dict[str, str] | None) -> dict[str, Any] | None:
        if properties is None:
            return None
        encoded_properties = dict(properties)
        for column_name in encoders.keys() & encoded_properties.keys():
            if encoded_properties[column_name] is not None:
                encoded_properties[column_name] = encoders[column_name](encoded_properties[column_name])
        endpoint_member = {"endpoints": {"from": endpoints["src"], "to": endpoints["dst"]}} if endpoints else {}
        return {"properties": encoded_properties, **endpoint_member}

    def encode_change(change: EntityChange) -> dict[str, Any]:
        images = {
            "before": encode_image(change.before, change.endpoints_before),
            "after": encode_image(change.after, change.endpoints_after),
        }
        return {
            "kind": change.kind,
            "type": {"id": f"{type_id:08x}", "name": change.type},
            "id": change.id,
            "op": change.op,
            **{
                image_name: image_document
                for image_name, image_document in images.items()
                if image_document is not None
            },
        }

    return encode_change
