"""The part of a graph handle that tells what changed: feeds, pages of them, baselines.

Each call takes one snapshot and hands it on. Following a branch waits between looks and never
holds a thread longer than it is wanted: it ends when the handle is closed.
"""

import threading
from collections.abc import Callable, Iterator
from os import PathLike
from pathlib import Path

from omnigraph.baseline import Baseline
from omnigraph.boundary import guarded
from omnigraph.errors import GraphClosed, InputError, UsageError
from omnigraph.events import operation
from omnigraph.feed import BlockChanges, ChangeBlock, Feed, Names, Position, Wanted, open_feed
from omnigraph.handle import Handle
from omnigraph.history.changes import commit_block
from omnigraph.history.snapshot import Snapshot
from omnigraph.pages import BYTES, CHANGES, COMMITS, ChangePage, CommitPage, PageLimits
from omnigraph.pages import commit_pages as pages_of_commit
from omnigraph.pages import poll as page_of_feed

_LOOK = 0.1  # seconds after which a waiting reader sees that its handle was closed
Wait = Callable[[float], object]


class Feeding(Handle):
    """Everything that tells changes, commit by commit."""

    def changes(
        self,
        start: str | None = None,
        *,
        cursor: str | None = None,
        types: Names = None,
        kinds: Names = None,
        ops: Names = None,
    ) -> Feed:
        """The commits of the branch after a position, up to the newest: blocks of changes.

        `start` is `beginning`, `after:` and a commit id, or `now`, which is the default and gives
        no block, only a `.cursor` to go on from. A cursor works with the filter that made it.
        """
        shown, wanted = self._newest(), Wanted(types, kinds, ops)
        return open_feed(shown, self._line, wanted, Position(start, cursor))

    def follow(  # noqa: PLR0913 - all but one are named
        self,
        start: str | None = None,
        *,
        cursor: str | None = None,
        poll: float = 2.0,
        stop: threading.Event | None = None,
        wait: Wait | None = None,
        types: Names = None,
        kinds: Names = None,
        ops: Names = None,
    ) -> Iterator[ChangeBlock]:
        """The same without an end: waits for new commits, and looks every `poll` seconds.

        Ends when `stop` is set or the handle is closed. The position is taken at once, not when
        the first block is asked for. `wait` replaces the waiting.
        """
        if self._fixed:
            raise UsageError(reason="a handle on one moment of the past has nothing to follow")
        if not poll > 0:
            raise InputError(reason=f"poll is a number of seconds above 0, not {poll}")
        ended = stop or threading.Event()
        pause = wait or (lambda seconds: self._rest(ended, seconds))
        wanted = Wanted(types, kinds, ops)

        def feed(position: Position) -> Feed:
            return open_feed(self._newest(), self._line, wanted, position)

        first = feed(Position(start, cursor))
        return self._followed(first, feed, ended, lambda: pause(poll))

    def poll_changes(  # noqa: PLR0913 - all but one are named
        self,
        start: str | None = None,
        *,
        cursor: str | None = None,
        page_token: str | None = None,
        limit: int = CHANGES,
        max_bytes: int = BYTES,
        max_commits: int = COMMITS,
        types: Names = None,
        kinds: Names = None,
        ops: Names = None,
    ) -> ChangePage:
        """One page of the feed, for services: it ends in a page token, or in a cursor.

        A page that ends inside a commit has a `next_page_token`, to be given back; one that ends
        behind a commit has a `cursor`, and `caught_up` when that was the newest one.
        """
        limits, position = (
            PageLimits(limit, max_bytes, max_commits),
            Position(start, cursor, page_token),
        )
        wanted = Wanted(types, kinds, ops)
        with operation("poll_changes", self.branch_name) as event:
            page = page_of_feed(self._newest(), self._line, wanted, limits, position)
            event.rows = sum(len(one.changes) for one in page.blocks)
        return page

    def commit_changes(  # noqa: PLR0913 - all but one are named
        self,
        commit_id: str,
        *,
        page_token: str | None = None,
        limit: int = CHANGES,
        max_bytes: int = BYTES,
        types: Names = None,
        kinds: Names = None,
        ops: Names = None,
    ) -> CommitPage:
        """A page of what one commit changed against its first parent."""
        shown, limits = self._state_of(commit_id), PageLimits(limit, max_bytes)
        return next(pages_of_commit(shown, Wanted(types, kinds, ops), limits, page_token))

    def commit_pages(
        self,
        commit_id: str,
        *,
        page_token: str | None = None,
        limit: int = CHANGES,
        max_bytes: int = BYTES,
        **filters: Names,
    ) -> Iterator[CommitPage]:
        """All pages of what one commit changed, from the first or from a page token on."""
        shown, limits = self._state_of(commit_id), PageLimits(limit, max_bytes)
        return pages_of_commit(shown, Wanted(**filters), limits, page_token)

    def baseline(
        self,
        path: str | PathLike[str] | None = None,
        *,
        types: Names = None,
        kinds: Names = None,
        ops: Names = None,
    ) -> Baseline:
        """Everything that the branch holds now, and the cursor from which a feed goes on.

        Iterate over it, or give a path for a file of NDJSON (.gz and .zst are packed). `.cursor` is
        None until everything was read. `ops` only matters to the feed that follows.
        """
        made = Baseline(self._newest(), self._line, Wanted(types, kinds, ops))
        if path is not None:
            with operation("baseline", self.branch_name) as event:
                made.write(Path(path))
                event.rows = made.count
        return made

    @guarded
    def _changes_of(self, commit_id: str, **filters: Names) -> BlockChanges:
        """All that one commit changed."""
        shown = self._state_of(commit_id)
        block = commit_block(shown, Wanted(**filters).within(iter([shown.schema.ir])))
        return ChangeBlock(block, "").changes

    def _state_of(self, commit_id: str) -> Snapshot:
        at: Snapshot = self.at(commit_id).snapshot  # type: ignore[attr-defined]
        return at

    def _followed(
        self,
        feed: Feed,
        again: Callable[[Position], Feed],
        ended: threading.Event,
        pause: Callable[[], object],
    ) -> Iterator[ChangeBlock]:
        while True:
            for block in feed:
                if self._closed or ended.is_set():
                    return
                yield block
            if self._closed or ended.is_set():
                return
            pause()
            try:
                feed = again(Position(cursor=feed.cursor))
            except GraphClosed:
                return

    def _rest(self, ended: threading.Event, seconds: float) -> None:
        left = seconds
        while left > 0 and not self._closed and not ended.wait(min(left, _LOOK)):
            left -= _LOOK
