"""Pages of changes, limited by count and by size in bytes.

This module packs changes into pages and defines page tokens. A page that ends inside a commit has a page token but no
cursor. A page that ends after a commit has a cursor but no page token. As a result, a reader can never store a cursor
for a half-applied commit.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import orjson
import pyarrow.compute as pc

from omnigraph.api.change_feed.feed import (
    ChangeFilterRequest,
    Feed,
    FeedPosition,
    add_cursor_to_gap,
    build_cursor_binding,
    commits_after_token,
    describe_cause,
    describe_schema_change,
    encode_cursor,
    make_change_encoder,
    open_feed,
    resolve_change_filter,
)
from omnigraph.errors import ChangeCursorRejected, ChangeDiffRefused, ChangeFeedGap, InputError, ResourceLimitExceeded
from omnigraph.history.branch_state import BranchState
from omnigraph.history.changes import (
    ENTITY_KINDS,
    ChangeFilter,
    CommitBlock,
    CommitRange,
    TypeChanges,
    cache_block,
    commit_block,
    iter_blocks,
)
from omnigraph.history.commit import Commit
from omnigraph.history.cursor import (
    CursorBinding,
    decode_token,
    encode_entity_position,
    encode_token,
    is_entity_position,
)
from omnigraph.history.entities import EntityChange, TableChanges
from omnigraph.history.schema_changes import SchemaChange
from omnigraph.history.snapshot import Snapshot

EntityPosition = Mapping[str, Any]
DEFAULT_PAGE_CHANGES, MAX_PAGE_CHANGES = 1_000, 8_192
DEFAULT_PAGE_BYTES, MAX_PAGE_BYTES = 4 << 20, 32 << 20
DEFAULT_POLL_COMMITS, MAX_POLL_COMMITS = 128, 512


@dataclass(frozen=True, slots=True)
class PageLimits:
    """The limits on changes and bytes per page, and on commits per poll.

    A change larger than `bytes` gets its own page.
    """

    changes: int = DEFAULT_PAGE_CHANGES
    bytes: int = DEFAULT_PAGE_BYTES
    commits: int = DEFAULT_POLL_COMMITS

    def __post_init__(self) -> None:
        _check_limit("commit_changes_page_changes", self.changes, MAX_PAGE_CHANGES)
        _check_limit("commit_changes_page_bytes", self.bytes, MAX_PAGE_BYTES)
        _check_limit("change_feed_commits_per_poll", self.commits, MAX_POLL_COMMITS)


def _check_limit(resource_name: str, requested: int, maximum: int) -> None:
    if requested < 1:
        raise InputError(reason=f"a limit must be at least 1, not {requested}")
    if requested > maximum:
        raise ResourceLimitExceeded(resource=resource_name, limit=maximum, actual=requested)


@dataclass(frozen=True, slots=True)
class CommitPart:
    """The changes on one page that belong to one commit, as records and as JSON.

    `schema_change` describes how the commit changed the schema. It is set only in the commit's first part.
    """

    commit: Commit
    changes: tuple[EntityChange, ...]
    documents: tuple[dict[str, Any], ...] = field(repr=False)
    schema_change: SchemaChange | None = None

    def to_json(self) -> dict[str, Any]:
        """Return this part of the commit as one JSON document."""
        schema_member = describe_schema_change(self.schema_change)
        return {"cause": describe_cause(self.commit), **schema_member, "changes": list(self.documents)}


@dataclass(frozen=True, slots=True)
class CommitPage:
    """A page of one commit's changes. The last page has no `next_page_token`."""

    part: CommitPart
    next_page_token: str | None = None

    @property
    def commit(self) -> Commit:
        """The commit that made the changes."""
        return self.part.commit

    @property
    def changes(self) -> tuple[EntityChange, ...]:
        """The changes on this page."""
        return self.part.changes

    @property
    def schema_change(self) -> SchemaChange | None:
        """The commit's schema changes. Set only on the first page."""
        return self.part.schema_change

    def to_json(self) -> dict[str, Any]:
        """Return the page as one JSON document."""
        token = {"next_page_token": self.next_page_token} if self.next_page_token else {}
        return self.part.to_json() | token


@dataclass(frozen=True, slots=True)
class ChangePage:
    """A page in a feed. It has a page token if it ends inside a commit, and a cursor otherwise."""

    blocks: tuple[CommitPart, ...]
    next_page_token: str | None = None
    cursor: str | None = None
    caught_up: bool | None = None

    def to_json(self) -> dict[str, Any]:
        """Return the page as one JSON document, omitting members that do not apply."""
        page_facts = {"next_page_token": self.next_page_token, "cursor": self.cursor, "caught_up": self.caught_up}
        present_facts = {name: value for name, value in page_facts.items() if value is not None}
        return {"blocks": [commit_part.to_json() for commit_part in self.blocks], **present_facts}


@dataclass(slots=True)
class _PageBudget:
    """The remaining capacity of a page."""

    changes: int
    bytes: int
    is_started: bool = False

    @property
    def is_full(self) -> bool:
        return self.changes <= 0 or self.bytes <= 0

    def reserve(self, document_bytes: int) -> bool:
        """Reserve room for one change and return whether it fits. The first change always fits."""
        if self.is_started and (self.changes < 1 or self.bytes < document_bytes):
            return False
        self.changes -= 1
        self.bytes -= document_bytes
        self.is_started = True
        return True


def commit_pages(
    snapshot: Snapshot, filter_request: ChangeFilterRequest, limits: PageLimits, page_token: str | None = None
) -> Iterator[CommitPage]:
    """Yield the pages of a commit's changes, reading all of them from one snapshot."""
    change_filter = resolve_change_filter(snapshot, filter_request, None)
    cursor_binding = CursorBinding(
        snapshot.schema.ir.identity_domain, snapshot.log.first_commit().id, change_filter.digest
    )
    position = None
    if page_token is not None:
        position = _decode_position(page_token, cursor_binding, snapshot.commit_id)
    block = commit_block(snapshot, change_filter)
    while True:
        commit_part, position = _pack_block(block, _PageBudget(limits.changes, limits.bytes), position)
        if position is None:
            yield CommitPage(commit_part)
            return
        cache_block(snapshot, block, change_filter)
        next_token = encode_token("commit-page", cursor_binding, commit=snapshot.commit_id, place=position)
        yield CommitPage(commit_part, next_token)


def _decode_position(token: str, cursor_binding: CursorBinding, commit_id: str) -> EntityPosition:
    token_facts = decode_token(token, "commit-page", cursor_binding)
    if token_facts.get("commit") != commit_id:
        raise ChangeCursorRejected(reason="the token belongs to a different commit")
    return _validate_position(token_facts.get("place"))


def _validate_position(position: Any) -> EntityPosition:
    """Return the position if it identifies an entity in a commit. Reject any other position."""
    position_facts = position if isinstance(position, dict) else {}
    required_names = ("id",) if "id" in position_facts else ("prefix", "digest")
    are_texts = all(isinstance(position_facts.get(member_name), str) for member_name in required_names)
    if (
        not are_texts
        or position_facts.get("kind") not in ENTITY_KINDS
        or not isinstance(position_facts.get("type"), int)
    ):
        raise ChangeCursorRejected(reason="the token does not point to an entity in the commit")
    return position_facts


def read_feed_page(
    snapshot: Snapshot,
    branch_state: BranchState,
    filter_request: ChangeFilterRequest,
    limits: PageLimits,
    position: FeedPosition,
) -> ChangePage:
    """Return one page of a feed. The first page in a poll determines the poll's last commit."""
    page_token = position.page_token
    if page_token is None:
        feed = open_feed(snapshot, branch_state, filter_request, position)
        return _fill_page(_PollWindow.from_feed(feed, limits), limits, None)
    change_filter = resolve_change_filter(snapshot, filter_request, page_token)
    cursor_binding = build_cursor_binding(snapshot, branch_state, change_filter)
    token_facts = decode_token(page_token, "feed-page", cursor_binding)
    poll_range = commits_after_token(snapshot, str(token_facts.get("commit")), page_token).truncate_at(
        str(token_facts.get("cut"))
    )
    if poll_range is None:
        raise ChangeCursorRejected(reason="the token's commit is not in the branch's history")
    poll_window = _PollWindow(poll_range, change_filter, cursor_binding, token_facts.get("more") is True)
    return _fill_page(poll_window, limits, _validate_position(token_facts.get("place")))


@dataclass(frozen=True, slots=True)
class _PollWindow:
    """The commits in one poll. `has_more` is true if the branch has more commits after them."""

    commit_range: CommitRange
    change_filter: ChangeFilter
    cursor_binding: CursorBinding
    has_more: bool

    @classmethod
    def from_feed(cls, feed: Feed, limits: PageLimits) -> "_PollWindow":
        full_range = feed.commit_range
        limited_range = CommitRange(
            full_range.snapshot, full_range.after_commit_id, full_range.commits[: limits.commits]
        )
        return cls(
            limited_range, feed.change_filter, feed.cursor_binding, len(limited_range.commits) < len(full_range.commits)
        )

    @property
    def last_commit_id(self) -> str:
        return self.commit_range.commits[-1].id if self.commit_range.commits else self.commit_range.after_commit_id

    def page_after_commit(self, commit_parts: list[CommitPart], commit_id: str) -> ChangePage:
        """Return a page that ends after a whole commit."""
        is_caught_up = not self.has_more and commit_id == self.last_commit_id
        return ChangePage(tuple(commit_parts), None, encode_cursor(self.cursor_binding, commit_id), is_caught_up)

    def page_inside_commit(
        self, commit_parts: list[CommitPart], after_commit_id: str, position: EntityPosition
    ) -> ChangePage:
        """Return a page that ends inside the commit after `after_commit_id`."""
        token_facts = {"commit": after_commit_id, "cut": self.last_commit_id, "more": self.has_more, "place": position}
        return ChangePage(tuple(commit_parts), encode_token("feed-page", self.cursor_binding, **token_facts))


def _fill_page(poll_window: _PollWindow, limits: PageLimits, position: EntityPosition | None) -> ChangePage:
    page_budget = _PageBudget(limits.changes, limits.bytes)
    commit_parts: list[CommitPart] = []
    after_commit_id = poll_window.commit_range.after_commit_id
    for block in _iter_poll_blocks(poll_window, commit_parts):
        commit_part, stop_position = _pack_block(block, page_budget, position)
        if stop_position is not None and not commit_part.changes:
            break  # none of this commit's changes fit, so the page ends before the commit
        commit_parts.append(commit_part)
        if stop_position is not None:
            cache_block(poll_window.commit_range.snapshot, block, poll_window.change_filter)
            return poll_window.page_inside_commit(commit_parts, after_commit_id, stop_position)
        after_commit_id, position = block.commit.id, None
        if page_budget.is_full:
            break
    return poll_window.page_after_commit(commit_parts, after_commit_id)


def _iter_poll_blocks(poll_window: _PollWindow, commit_parts: list[CommitPart]) -> Iterator[CommitBlock]:
    """Yield the blocks in a poll. An unreadable block ends the poll or, if it is the first block, raises an error."""
    block_iterator = iter_blocks(poll_window.commit_range, poll_window.change_filter)
    try:
        yield from block_iterator
    except (ChangeFeedGap, ChangeDiffRefused) as error:
        if commit_parts:
            return
        if isinstance(error, ChangeFeedGap):
            raise add_cursor_to_gap(
                error, encode_cursor(poll_window.cursor_binding, poll_window.commit_range.after_commit_id)
            ) from error
        raise


def _pack_block(
    block: CommitBlock, page_budget: _PageBudget, position: EntityPosition | None
) -> tuple[CommitPart, EntityPosition | None]:
    """Return the changes after a position, as many as fit on the page, and the next position (None at the end)."""
    packed_changes: list[EntityChange] = []
    packed_documents: list[dict[str, Any]] = []
    last_position: EntityPosition = position or {}
    schema_change = None if position else block.schema_change
    for type_changes in block.type_changes:
        encode_change = make_change_encoder(type_changes.type_id, type_changes.changes)
        for change in _changes_after(type_changes, position).records():
            document = encode_change(change)
            if not page_budget.reserve(len(orjson.dumps(document))):
                packed = (tuple(packed_changes), tuple(packed_documents), schema_change)
                return CommitPart(block.commit, *packed), last_position
            packed_changes.append(change)
            packed_documents.append(document)
            last_position = {"kind": change.kind, "type": type_changes.type_id, **encode_entity_position(change.id)}
    return CommitPart(block.commit, tuple(packed_changes), tuple(packed_documents), schema_change), None


def _changes_after(type_changes: TypeChanges, position: EntityPosition | None) -> TableChanges:
    """Return a type's changes after a position."""
    if not position:
        return type_changes.changes
    stop_order = ENTITY_KINDS.index(position["kind"]), position["type"]
    type_order = (ENTITY_KINDS.index(type_changes.changes.key.kind), type_changes.type_id)
    if type_order != stop_order:
        return type_changes.changes if type_order > stop_order else type_changes.changes.select_ops(())
    return _changes_after_entity(type_changes.changes, _find_entity_id(type_changes.changes, position))


def _find_entity_id(changes: TableChanges, position: EntityPosition) -> str:
    """Return the full id of the entity at a position."""
    if "id" in position:
        return str(position["id"])
    for changed_rows in (changes.inserted, changes.updated_after, changes.deleted):
        candidate_ids = changed_rows["id"].filter(pc.starts_with(changed_rows["id"], position["prefix"]))
        for entity_id in candidate_ids.to_pylist():
            if is_entity_position(position, entity_id):
                return str(entity_id)
    raise ChangeCursorRejected(reason="the token does not point to an entity in the commit")


def _changes_after_entity(changes: TableChanges, entity_id: str) -> TableChanges:
    def rows_after(changed_rows: Any, id_rows: Any) -> Any:
        return changed_rows.filter(pc.greater(id_rows["id"], entity_id))

    return TableChanges(
        changes.key,
        rows_after(changes.inserted, changes.inserted),
        rows_after(changes.updated_before, changes.updated_after),
        rows_after(changes.updated_after, changes.updated_after),
        rows_after(changes.deleted, changes.deleted),
    )
