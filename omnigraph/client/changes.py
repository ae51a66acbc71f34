"""`graph.changes` on a server: the change feed as blocks, pages and baselines.

A feed requests one commit at a time, because its cursor must point past the last commit that was read. To follow a
feed, the client sends requests that the server holds until there is a new commit or a short time has passed.
"""

import threading
from collections.abc import Callable, Iterator, Mapping
from os import PathLike
from typing import TYPE_CHECKING, Any

from omnigraph.errors import GraphClosed, InputError, UsageError
from omnigraph.history.commit import Commit
from omnigraph.history.revisions import Revision

from .baselines import RemoteBaseline
from .change_blocks import RemoteBlock, RemoteBlockChanges, RemoteChangePage, RemoteCommitPage
from .diffs import filter_parameters
from .facet import RemoteFacet
from .handle import RemoteHandle

if TYPE_CHECKING:
    import pyarrow as pa

Names = Any
_PAGE_CHANGES, _PAGE_BYTES, _POLL_COMMITS = 1_000, 4 << 20, 128
_MAX_PAGE_CHANGES, _MAX_PAGE_BYTES = 8_192, 32 << 20
_WAIT_SECONDS = 1.0  # after this wait for a commit, the reader checks whether it must stop


class RemoteFeed(Iterator[RemoteBlock]):
    """The blocks after a position, up to the commit that was the branch head when the feed was opened.

    `cursor` points past the last block that was read. If the feed starts at the beginning or after a revision, `cursor`
    is None until a block has been read.
    """

    def __init__(self, handle: RemoteHandle, position: Mapping[str, Any], filters: Mapping[str, Any]) -> None:
        self._handle, self._filters = handle, filters
        self._last_commit_id = handle.head().id
        self.cursor: str | None = position["cursor"]
        self.caught_up, self.at_start = False, True
        self._next_block = self._read_block(position)

    def __iter__(self) -> "RemoteFeed":
        return self

    def __next__(self) -> RemoteBlock:
        block = self._next_block
        if block is None and not self.caught_up:
            block = self._read_block({"cursor": self.cursor})
        if block is None:
            raise StopIteration
        self._next_block, self.cursor, self.at_start = None, block.cursor, False
        self.caught_up = block.to_json()["cause"]["graph_commit_id"] == self._last_commit_id or self._is_last
        return block

    def to_arrow_batches(self) -> "Iterator[pa.RecordBatch]":
        """Yield one Arrow batch per commit."""
        return (block.to_arrow() for block in self)

    def _read_block(self, position: Mapping[str, Any]) -> RemoteBlock | None:
        """Request the next commit, whose changes may span several pages."""
        joined: dict[str, Any] | None = None
        while True:
            page = read_page(self._handle, position, self._filters, (_MAX_PAGE_CHANGES, _MAX_PAGE_BYTES, 1))
            for block in page["blocks"]:
                joined = dict(block) if joined is None else joined | {"changes": joined["changes"] + block["changes"]}
            if "next_page_token" not in page:
                break
            position = {"page_token": page["next_page_token"]}
        self._is_last = bool(page["caught_up"])
        if joined is None:
            self.cursor, self.caught_up = page["cursor"], True
            return None
        return RemoteBlock(self._handle, joined, page["cursor"])


def read_page(
    handle: RemoteHandle,
    position: Mapping[str, Any],
    filters: Mapping[str, Any],
    limits: tuple[int, int, int],
    *,
    wait: float | None = None,
) -> Any:
    """Request one page of the change feed for the handle's branch."""
    handle.require_open()
    limit, max_bytes, max_commits = limits
    parameters = {"limit": limit, "max_bytes": max_bytes, "max_commits": max_commits, "wait": wait}
    return handle.exchange.get("changes", branch=handle.branch_name, **position, **parameters, **filters)


class RemoteChanges(RemoteFacet):
    """A branch's change feed on a server, which you can read, follow, or page through."""

    __slots__ = ()

    def feed(
        self,
        start: str | None = None,
        *,
        cursor: str | None = None,
        types: Names = None,
        kinds: Names = None,
        ops: Names = None,
    ) -> Any:
        """Return the commits after a position, up to the newest, as blocks of changes; see `Changes.feed`."""
        filters = filter_parameters({"types": types, "kinds": kinds, "ops": ops})
        return RemoteFeed(self._handle, _check_position(start, cursor), filters)

    def follow(  # noqa: PLR0913 - all but one are keywords
        self,
        start: str | None = None,
        *,
        cursor: str | None = None,
        poll: float = 2.0,
        stop: threading.Event | None = None,
        wait: Callable[[float], object] | None = None,
        types: Names = None,
        kinds: Names = None,
        ops: Names = None,
    ) -> Iterator[Any]:
        """Follow the feed indefinitely; see `Changes.follow`.

        The server responds as soon as there is a new commit. If `wait` is given, the client calls `wait(poll)` between
        requests, and the server does not wait.
        """
        if self._handle.pinned:
            raise UsageError(reason="a handle on a past commit cannot follow changes")
        if not poll > 0:
            raise InputError(reason=f"`poll` must be a number of seconds greater than 0, not {poll}")
        filters = filter_parameters({"types": types, "kinds": kinds, "ops": ops})
        feed = RemoteFeed(self._handle, _check_position(start, cursor), filters)
        stopped = stop or threading.Event()
        pause = (lambda _: wait(poll)) if wait is not None else (lambda at: self._wait_for_commit(at, filters, stopped))
        return self._follow_feed(feed, filters, stopped, pause)

    def _follow_feed(
        self,
        feed: RemoteFeed,
        filters: Mapping[str, Any],
        stopped: threading.Event,
        pause: Callable[[str | None], object],
    ) -> Iterator[RemoteBlock]:
        while True:
            for block in feed:
                if self._handle.closed or stopped.is_set():
                    return
                yield block
            if self._handle.closed or stopped.is_set():
                return
            try:
                pause(feed.cursor)
                feed = RemoteFeed(self._handle, {"cursor": feed.cursor}, filters)
            except GraphClosed:
                return

    def _wait_for_commit(self, cursor: str | None, filters: Mapping[str, Any], stopped: threading.Event) -> None:
        """Wait until the branch has a commit after a cursor, the graph is closed, or `stopped` is set."""
        while not self._handle.closed and not stopped.is_set():
            page = read_page(self._handle, {"cursor": cursor}, filters, (1, _PAGE_BYTES, 1), wait=_WAIT_SECONDS)
            if page["blocks"]:
                return

    def poll(  # noqa: PLR0913 - all but one are keywords
        self,
        start: str | None = None,
        *,
        cursor: str | None = None,
        page_token: str | None = None,
        limit: int = _PAGE_CHANGES,
        max_bytes: int = _PAGE_BYTES,
        max_commits: int = _POLL_COMMITS,
        types: Names = None,
        kinds: Names = None,
        ops: Names = None,
    ) -> Any:
        """Return one page of the feed; see `Changes.poll`."""
        filters = filter_parameters({"types": types, "kinds": kinds, "ops": ops})
        position = _check_position(start, cursor, page_token)
        return RemoteChangePage(
            self._handle, read_page(self._handle, position, filters, (limit, max_bytes, max_commits))
        )

    def of_commit(
        self, commit: Commit | Revision, *, types: Names = None, kinds: Names = None, ops: Names = None
    ) -> Any:
        """Iterate over all changes that a commit made relative to its first parent."""
        commit_id = commit.id if isinstance(commit, Commit) else self._handle.resolve(commit)
        limits: Any = {"limit": _MAX_PAGE_CHANGES, "max_bytes": _MAX_PAGE_BYTES}
        filters: Any = {"types": types, "kinds": kinds, "ops": ops}
        pages = [page.to_json() for page in self.commit_pages(commit_id, **limits, **filters)]
        changes = [change for page in pages for change in page["changes"]]
        return RemoteBlockChanges(self._handle, {**pages[0], "changes": changes})

    def commit_page(  # noqa: PLR0913 - all but one are keywords
        self,
        commit_id: str,
        *,
        page_token: str | None = None,
        limit: int = _PAGE_CHANGES,
        max_bytes: int = _PAGE_BYTES,
        types: Names = None,
        kinds: Names = None,
        ops: Names = None,
    ) -> Any:
        """Return one page of the changes that a commit made relative to its first parent."""
        filters = filter_parameters({"types": types, "kinds": kinds, "ops": ops})
        return self._read_commit_page(
            self._handle.resolve(commit_id), {"page_token": page_token, "limit": limit, "max_bytes": max_bytes}, filters
        )

    def commit_pages(
        self,
        commit_id: str,
        *,
        page_token: str | None = None,
        limit: int = _PAGE_CHANGES,
        max_bytes: int = _PAGE_BYTES,
        **filters: Names,
    ) -> Iterator[Any]:
        """Yield the pages of a commit's changes, from the first page or from a page token."""
        parameters = filter_parameters(filters)
        resolved_id = self._handle.resolve(commit_id)
        while True:
            position = {"page_token": page_token, "limit": limit, "max_bytes": max_bytes}
            page = self._read_commit_page(resolved_id, position, parameters)
            yield page
            page_token = page.next_page_token
            if page_token is None:
                return

    def _read_commit_page(
        self, commit_id: str, position: Mapping[str, Any], filters: Mapping[str, Any]
    ) -> RemoteCommitPage:
        exchange = self._handle.exchange
        return RemoteCommitPage(self._handle, exchange.get("commits", commit_id, "changes", **position, **filters))

    def baseline(
        self,
        path: str | PathLike[str] | None = None,
        *,
        types: Names = None,
        kinds: Names = None,
        ops: Names = None,
    ) -> Any:
        """Return the current content of the branch, and a cursor from which a feed continues."""
        self._handle.require_open()
        filters = filter_parameters({"types": types, "kinds": kinds, "ops": ops})
        baseline = RemoteBaseline(self._handle.exchange, self._handle.branch_name, filters)
        if path is not None:
            baseline.write(path)
        return baseline


def _check_position(start: str | None, cursor: str | None, page_token: str | None = None) -> dict[str, str | None]:
    position = {"start": start, "cursor": cursor, "page_token": page_token}
    names = [name for name, value in position.items() if value is not None]
    if len(names) > 1:
        raise UsageError(
            reason=f"{' and '.join(names)} are mutually exclusive: pass only one of them",
            hint="a cursor or page token already contains the start position",
        )
    return position
