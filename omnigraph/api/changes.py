"""`graph.changes`: the changes that each commit makes, as feeds, pages and baselines.

Each call reads from a single snapshot. A reader that follows a branch waits between checks of the branch head. If the
handle is closed, the wait ends within a fraction of a second.
"""

import threading
from collections.abc import Callable, Iterator
from os import PathLike
from pathlib import Path

from omnigraph.api.change_feed.baseline import Baseline
from omnigraph.api.change_feed.feed import (
    BlockChanges,
    ChangeBlock,
    ChangeFilterNames,
    ChangeFilterRequest,
    Feed,
    FeedPosition,
    open_feed,
)
from omnigraph.api.change_feed.pages import (
    DEFAULT_PAGE_BYTES,
    DEFAULT_PAGE_CHANGES,
    DEFAULT_POLL_COMMITS,
    ChangePage,
    CommitPage,
    PageLimits,
)
from omnigraph.api.change_feed.pages import commit_pages as pages_of_commit
from omnigraph.api.change_feed.pages import read_feed_page as page_of_feed
from omnigraph.api.facet import Facet
from omnigraph.api.handle import Handle
from omnigraph.api.log_events import log_operation
from omnigraph.errors import GraphClosed, InputError, UsageError
from omnigraph.history.changes import commit_block
from omnigraph.history.commit import Commit
from omnigraph.history.revisions import Revision

_CLOSE_CHECK_SECONDS = 0.1  # while a reader waits, seconds between two checks for a closed handle
Wait = Callable[[float], object]


class Changes(Facet):
    """A branch's change feed, which you can read, follow, or page through.

    >>> from omnigraph import testing
    >>> with testing.graph("node Person { name: String @key }") as graph:
    ...     _ = graph.insert("Person", {"name": "ada"})
    ...     blocks = list(graph.changes.feed("beginning"))
    ...     [(change.op, change.id) for change in blocks[-1].changes]
    [('insert', 'ada')]
    """

    __slots__ = ()

    def feed(
        self,
        start: str | None = None,
        *,
        cursor: str | None = None,
        types: ChangeFilterNames = None,
        kinds: ChangeFilterNames = None,
        ops: ChangeFilterNames = None,
    ) -> Feed:
        """Return the commits after a position, up to the newest, as blocks of changes.

        `start` is `beginning`, `now`, or `after:` followed by a revision, such as a commit id, a tag,
        a branch or `HEAD~1`. The default is `now`, which returns no blocks, only a `.cursor` to
        continue from. A cursor works only with the filter that it was created with.
        """
        return _open_feed(self._handle, ChangeFilterRequest(types, kinds, ops), FeedPosition(start, cursor))

    def follow(  # noqa: PLR0913 - all but one are keywords
        self,
        start: str | None = None,
        *,
        cursor: str | None = None,
        poll: float = 2.0,
        stop: threading.Event | None = None,
        wait: Wait | None = None,
        types: ChangeFilterNames = None,
        kinds: ChangeFilterNames = None,
        ops: ChangeFilterNames = None,
    ) -> Iterator[ChangeBlock]:
        """Follow the feed indefinitely. Check for new commits every `poll` seconds.

        The iteration ends when `stop` is set or the handle is closed. The start position is determined when this method
        is called, not when the first block is requested. If `wait` is given, `wait(seconds)` is called between polls
        instead of the default sleep.
        """
        handle = self._handle
        check_followable(handle, poll)
        stopped = stop or threading.Event()
        pause = wait or (lambda seconds: _wait(handle, stopped, seconds))
        filter_request = ChangeFilterRequest(types, kinds, ops)
        feed = _open_feed(handle, filter_request, FeedPosition(start, cursor))
        return _follow_feed(handle, feed, filter_request, stopped, lambda: pause(poll))

    def poll(  # noqa: PLR0913 - all but one are keywords
        self,
        start: str | None = None,
        *,
        cursor: str | None = None,
        page_token: str | None = None,
        limit: int = DEFAULT_PAGE_CHANGES,
        max_bytes: int = DEFAULT_PAGE_BYTES,
        max_commits: int = DEFAULT_POLL_COMMITS,
        types: ChangeFilterNames = None,
        kinds: ChangeFilterNames = None,
        ops: ChangeFilterNames = None,
    ) -> ChangePage:
        """Return one page of the feed, for services that poll it.

        A page that ends inside a commit has a `next_page_token` for the next call. A page that ends
        after a commit has a `cursor`, and its `caught_up` is true if that commit is the newest.
        """
        handle, filter_request = self._handle, ChangeFilterRequest(types, kinds, ops)
        limits = PageLimits(limit, max_bytes, max_commits)
        position = FeedPosition(start, cursor, page_token)
        with log_operation("poll_changes", handle.branch_name) as event:
            snapshot = handle.latest_snapshot()
            page = page_of_feed(snapshot, handle.branch_state, filter_request, limits, position)
            event.rows = sum(len(block.changes) for block in page.blocks)
        return page

    def of_commit(
        self,
        commit: Commit | Revision,
        *,
        types: ChangeFilterNames = None,
        kinds: ChangeFilterNames = None,
        ops: ChangeFilterNames = None,
    ) -> BlockChanges:
        """Return all changes that a commit made relative to its first parent."""
        revision = commit.id if isinstance(commit, Commit) else commit
        snapshot = self._handle.at(revision).snapshot
        filter_request = ChangeFilterRequest(types, kinds, ops)
        block = commit_block(snapshot, filter_request.resolve(iter([snapshot.schema.ir])))
        return ChangeBlock(block, "").changes

    def commit_page(  # noqa: PLR0913 - all but one are keywords
        self,
        commit_id: str,
        *,
        page_token: str | None = None,
        limit: int = DEFAULT_PAGE_CHANGES,
        max_bytes: int = DEFAULT_PAGE_BYTES,
        types: ChangeFilterNames = None,
        kinds: ChangeFilterNames = None,
        ops: ChangeFilterNames = None,
    ) -> CommitPage:
        """Return one page of the changes that a commit made relative to its first parent."""
        snapshot, limits = self._handle.at(commit_id).snapshot, PageLimits(limit, max_bytes)
        return next(pages_of_commit(snapshot, ChangeFilterRequest(types, kinds, ops), limits, page_token))

    def commit_pages(
        self,
        commit_id: str,
        *,
        page_token: str | None = None,
        limit: int = DEFAULT_PAGE_CHANGES,
        max_bytes: int = DEFAULT_PAGE_BYTES,
        **filters: ChangeFilterNames,
    ) -> Iterator[CommitPage]:
        """Return all pages of a commit's changes, from the first page or from a page token."""
        snapshot, limits = self._handle.at(commit_id).snapshot, PageLimits(limit, max_bytes)
        return pages_of_commit(snapshot, ChangeFilterRequest(**filters), limits, page_token)

    def baseline(
        self,
        path: str | PathLike[str] | None = None,
        *,
        types: ChangeFilterNames = None,
        kinds: ChangeFilterNames = None,
        ops: ChangeFilterNames = None,
    ) -> Baseline:
        """Return the current content of the branch, and a cursor from which a feed continues.

        Iterate over the result, or pass a path to write an NDJSON file, which is compressed if the
        path ends in .gz or .zst. `.cursor` is None until everything has been read. `ops` does not affect
        the baseline; it only filters the feed that continues from the cursor.
        """
        handle = self._handle
        filter_request = ChangeFilterRequest(types, kinds, ops)
        baseline = Baseline(handle.latest_snapshot(), handle.branch_state, filter_request)
        if path is not None:
            with log_operation("baseline", handle.branch_name) as event:
                baseline.write(Path(path))
                event.rows = baseline.count
        return baseline


def check_followable(handle: Handle, poll: float) -> None:
    """Raise `UsageError` if the handle is pinned, or `InputError` if `poll` is not greater than 0."""
    if handle.pinned:
        raise UsageError(reason="a handle on a past commit cannot follow changes")
    if not poll > 0:
        raise InputError(reason=f"`poll` must be a number of seconds greater than 0, not {poll}")


def _open_feed(handle: Handle, filter_request: ChangeFilterRequest, position: FeedPosition) -> Feed:
    return open_feed(handle.latest_snapshot(), handle.branch_state, filter_request, position)


def _follow_feed(
    handle: Handle,
    feed: Feed,
    filter_request: ChangeFilterRequest,
    stopped: threading.Event,
    pause: Callable[[], object],
) -> Iterator[ChangeBlock]:
    while True:
        for block in feed:
            if handle.closed or stopped.is_set():
                return
            yield block
        if handle.closed or stopped.is_set():
            return
        pause()
        try:
            feed = _open_feed(handle, filter_request, FeedPosition(cursor=feed.cursor))
        except GraphClosed:
            return


def _wait(handle: Handle, stopped: threading.Event, seconds: float) -> None:
    remaining = seconds
    while remaining > 0 and not handle.closed:
        if stopped.wait(min(remaining, _CLOSE_CHECK_SECONDS)):
            return
        remaining -= _CLOSE_CHECK_SECONDS
