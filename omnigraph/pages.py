"""Pages of changes, limited in number and in bytes.

Owns the packing and the page tokens. A page that ends inside a commit has a page token and no
cursor; one that ends after a commit has a cursor and no page token. So no reader can store a cursor
with half of a commit applied.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import orjson
import pyarrow.compute as pc

from omnigraph.errors import (
    ChangeCursorRejected,
    ChangeDiffRefused,
    ChangeFeedGap,
    InputError,
    ResourceLimitExceeded,
)
from omnigraph.feed import (
    Feed,
    Position,
    Wanted,
    bound,
    cause,
    cursor_at,
    document_form,
    open_feed,
    reached,
    scope_for,
    told_gap,
)
from omnigraph.history.changes import (
    KINDS,
    Block,
    Chain,
    Scope,
    TypeChanges,
    blocks,
    commit_block,
    remember,
)
from omnigraph.history.commit import Commit
from omnigraph.history.cursor import Binding, decode, encode, entity_place, names_entity
from omnigraph.history.entities import EntityChange, TableChanges
from omnigraph.history.line import Line
from omnigraph.history.snapshot import Snapshot

Place = Mapping[str, Any]
CHANGES, MOST_CHANGES = 1_000, 8_192
BYTES, MOST_BYTES = 4 << 20, 32 << 20
COMMITS, MOST_COMMITS = 128, 512


@dataclass(frozen=True, slots=True)
class PageLimits:
    """The size limits of a page. Bytes are a target: a larger change comes alone."""

    changes: int = CHANGES
    bytes: int = BYTES
    commits: int = COMMITS

    def __post_init__(self) -> None:
        _within("commit_changes_page_changes", self.changes, MOST_CHANGES)
        _within("commit_changes_page_bytes", self.bytes, MOST_BYTES)
        _within("change_feed_commits_per_poll", self.commits, MOST_COMMITS)


def _within(resource: str, given: int, most: int) -> None:
    if given < 1:
        raise InputError(reason=f"a limit must be at least 1, not {given}")
    if given > most:
        raise ResourceLimitExceeded(resource=resource, limit=most, actual=given)


@dataclass(frozen=True, slots=True)
class Part:
    """The changes of one commit in a page, all or some, as records and as JSON."""

    commit: Commit
    changes: tuple[EntityChange, ...]
    documents: tuple[dict[str, Any], ...] = field(repr=False)

    def to_json(self) -> dict[str, Any]:
        """Return the part as one document."""
        return {"cause": cause(self.commit), "changes": list(self.documents)}


@dataclass(frozen=True, slots=True)
class CommitPage:
    """A page of the changes of one commit; the last page has no `next_page_token`."""

    part: Part
    next_page_token: str | None = None

    @property
    def commit(self) -> Commit:
        """The commit."""
        return self.part.commit

    @property
    def changes(self) -> tuple[EntityChange, ...]:
        """The changes of this page."""
        return self.part.changes

    def to_json(self) -> dict[str, Any]:
        """Return the page as one document."""
        token = {"next_page_token": self.next_page_token} if self.next_page_token else {}
        return self.part.to_json() | token


@dataclass(frozen=True, slots=True)
class ChangePage:
    """A page of a feed: it has a page token if it ends inside a commit, otherwise a cursor."""

    blocks: tuple[Part, ...]
    next_page_token: str | None = None
    cursor: str | None = None
    caught_up: bool | None = None

    def to_json(self) -> dict[str, Any]:
        """Return the page as one document, without members that do not apply."""
        facts = {
            "next_page_token": self.next_page_token,
            "cursor": self.cursor,
            "caught_up": self.caught_up,
        }
        known = {name: value for name, value in facts.items() if value is not None}
        return {"blocks": [one.to_json() for one in self.blocks], **known}


@dataclass(slots=True)
class _Room:
    """The remaining capacity of a page."""

    changes: int
    bytes: int
    used: bool = False

    @property
    def full(self) -> bool:
        return self.changes <= 0 or self.bytes <= 0

    def take(self, size: int) -> bool:
        """Reserve room for one change and return whether it fits; the first always does."""
        if self.used and (self.changes < 1 or self.bytes < size):
            return False
        self.changes, self.bytes, self.used = self.changes - 1, self.bytes - size, True
        return True


def commit_pages(
    shown: Snapshot, wanted: Wanted, limits: PageLimits, page_token: str | None = None
) -> Iterator[CommitPage]:
    """Yield the pages of a commit's changes, all of one snapshot."""
    scope = scope_for(shown, wanted, None)
    binding = Binding(shown.schema.ir.domain, shown.log.first().id, scope.digest)
    place = None if page_token is None else _place(page_token, binding, shown.commit_id)
    block = commit_block(shown, scope)
    while True:
        part, place = _pack(block, _Room(limits.changes, limits.bytes), place)
        if place is None:
            yield CommitPage(part)
            return
        remember(shown, block, scope)
        token = encode("commit-page", binding, commit=shown.commit_id, place=place)
        yield CommitPage(part, token)


def _place(token: str, binding: Binding, commit_id: str) -> Place:
    at = decode(token, "commit-page", binding)
    if at.get("commit") != commit_id:
        raise ChangeCursorRejected(reason="it belongs to another commit")
    return _sound(at.get("place"))


def _sound(place: Any) -> Place:
    """Return a position inside a commit; reject anything else."""
    facts = place if isinstance(place, dict) else {}
    names = ("id",) if "id" in facts else ("prefix", "digest")
    texts = all(isinstance(facts.get(name), str) for name in names)
    if not texts or facts.get("kind") not in KINDS or not isinstance(facts.get("type"), int):
        raise ChangeCursorRejected(reason="it points to no entity of the commit")
    return facts


def poll(
    shown: Snapshot, line: Line, wanted: Wanted, limits: PageLimits, position: Position
) -> ChangePage:
    """Return one page of a feed. The first page of a poll fixes the last commit of the poll."""
    token = position.page_token
    if token is None:
        feed = open_feed(shown, line, wanted, position)
        return _page(_Poll.of(feed, limits), limits, None)
    scope = scope_for(shown, wanted, token)
    binding = bound(shown, line, scope)
    at = decode(token, "feed-page", binding)
    cut = reached(shown, str(at.get("commit")), token).upto(str(at.get("cut")))
    if cut is None:
        raise ChangeCursorRejected(reason="its commit is not in the history of the branch")
    asked = _Poll(cut, scope, binding, at.get("more") is True)
    return _page(asked, limits, _sound(at.get("place")))


@dataclass(frozen=True, slots=True)
class _Poll:
    """The commits of one poll. `has_more` means that the head was further ahead."""

    chain: Chain
    scope: Scope
    binding: Binding
    more: bool

    @classmethod
    def of(cls, feed: Feed, limits: PageLimits) -> "_Poll":
        every = feed.chain
        few = Chain(every.shown, every.after, every.commits[: limits.commits])
        return cls(few, feed.scope, feed.binding, len(few.commits) < len(every.commits))

    @property
    def cut(self) -> str:
        return self.chain.commits[-1].id if self.chain.commits else self.chain.after

    def ended(self, parts: list[Part], at: str) -> ChangePage:
        """Return a page that ends after a whole commit."""
        caught_up = not self.more and at == self.cut
        return ChangePage(tuple(parts), None, cursor_at(self.binding, at), caught_up)

    def interrupted(self, parts: list[Part], at: str, place: Place) -> ChangePage:
        """Return a page that ends inside the commit after `after_commit_id`."""
        facts = {"commit": at, "cut": self.cut, "more": self.more, "place": place}
        return ChangePage(tuple(parts), encode("feed-page", self.binding, **facts))


def _page(asked: _Poll, limits: PageLimits, place: Place | None) -> ChangePage:
    room = _Room(limits.changes, limits.bytes)
    parts: list[Part] = []
    at = asked.chain.after
    for block in _blocks(asked, parts):
        part, stopped = _pack(block, room, place)
        if stopped is not None and not part.changes:
            break  # no change of this commit fits: the page ends before it
        parts.append(part)
        if stopped is not None:
            remember(asked.chain.shown, block, asked.scope)
            return asked.interrupted(parts, at, stopped)
        at, place = block.commit.id, None
        if room.full:
            break
    return asked.ended(parts, at)


def _blocks(asked: _Poll, parts: list[Part]) -> Iterator[Block]:
    """Yield the blocks of a poll. An unreadable block ends it, or fails the poll if it is first."""
    found = blocks(asked.chain, asked.scope)
    try:
        yield from found
    except (ChangeFeedGap, ChangeDiffRefused) as error:
        if parts:
            return
        if isinstance(error, ChangeFeedGap):
            raise told_gap(error, cursor_at(asked.binding, asked.chain.after)) from error
        raise


def _pack(block: Block, room: _Room, place: Place | None) -> tuple[Part, Place | None]:
    """Pack the changes after a position that fit; return the next position if any remain."""
    taken: list[EntityChange] = []
    told: list[dict[str, Any]] = []
    last: Place = place or {}
    for one in block.types:
        form = document_form(one.type_id, one.changes)
        for change in _after(one, place).records():
            document = form(change)
            if not room.take(len(orjson.dumps(document))):
                return Part(block.commit, tuple(taken), tuple(told)), last
            taken.append(change)
            told.append(document)
            last = {"kind": change.kind, "type": one.type_id, **entity_place(change.id)}
    return Part(block.commit, tuple(taken), tuple(told)), None


def _after(one: TypeChanges, place: Place | None) -> TableChanges:
    """Return the changes of a type that come after a position."""
    if not place:
        return one.changes
    there = KINDS.index(place["kind"]), place["type"]
    here = KINDS.index(one.changes.key.partition(":")[0]), one.type_id
    if here != there:
        return one.changes if here > there else one.changes.only(())
    return _behind(one.changes, _entity(one.changes, place))


def _entity(changes: TableChanges, place: Place) -> str:
    """Return the full id of the entity at a position."""
    if "id" in place:
        return str(place["id"])
    for table in (changes.inserted, changes.after, changes.deleted):
        found = table["id"].filter(pc.starts_with(table["id"], place["prefix"]))
        for entity_id in found.to_pylist():
            if names_entity(place, entity_id):
                return str(entity_id)
    raise ChangeCursorRejected(reason="it points to no entity of the commit")


def _behind(changes: TableChanges, entity_id: str) -> TableChanges:
    def kept(table: Any, by: Any) -> Any:
        return table.filter(pc.greater(by["id"], entity_id))

    return TableChanges(
        changes.key,
        kept(changes.inserted, changes.inserted),
        kept(changes.before, changes.after),
        kept(changes.after, changes.after),
        kept(changes.deleted, changes.deleted),
    )
