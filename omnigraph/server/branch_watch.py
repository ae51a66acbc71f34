"""Detect new commits on branches for all requests that wait for them.

A worker checks each watched branch once per interval, no matter how many clients follow it. The watch ends when its
last subscriber leaves. This module reads only the head of a branch: subscribers read the changes themselves.
"""

import asyncio
from collections.abc import Awaitable, Callable, Hashable, Iterator
from contextlib import contextmanager, suppress
from threading import Event

_POLL_SECONDS = 0.25
ReadHead = Callable[[], Awaitable[str]]


class BranchWatch:
    """Counts how often a branch's head has changed. It is used only on the event loop."""

    def __init__(self, read_head: ReadHead, stopping: Event) -> None:
        self.change_count = 0
        self.subscriber_count = 0
        self._read_head, self._stopping = read_head, stopping
        self._next_change = asyncio.Event()
        self._task = asyncio.ensure_future(self._poll())

    async def wait_for_change(self, seen_count: int, seconds: float) -> None:
        """Return as soon as `change_count` differs from `seen_count`, or after the given number of seconds.

        To avoid missing a commit, read `change_count` before you read the branch. The caller must check the branch,
        because this method also returns if the head cannot be read or the worker stops.
        """
        if self.change_count == seen_count:
            with suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    await self._next_change.wait()

    def stop(self) -> None:
        """Stop polling."""
        self._task.cancel()

    async def _poll(self) -> None:
        head = None
        while True:
            newest_head = await self._try_read_head()
            if newest_head is None or newest_head != head or self._stopping.is_set():
                self._announce_change()
            head = newest_head
            await asyncio.sleep(_POLL_SECONDS)

    async def _try_read_head(self) -> str | None:
        """Return the head, or None if it cannot be read. Subscribers then read the branch and report the reason."""
        try:
            return await self._read_head()
        except Exception:
            return None

    def _announce_change(self) -> None:
        self.change_count += 1
        self._next_change.set()
        self._next_change = asyncio.Event()


class BranchWatches:
    """The watches of one worker."""

    def __init__(self, stopping: Event) -> None:
        self._stopping = stopping
        self._watches: dict[Hashable, BranchWatch] = {}

    @contextmanager
    def subscribe(self, branch_key: Hashable, read_head: ReadHead) -> Iterator[BranchWatch]:
        """Watch a branch for the duration of the block. All subscribers of a branch share one watch."""
        watch = self._watches.get(branch_key)
        if watch is None:
            watch = self._watches[branch_key] = BranchWatch(read_head, self._stopping)
        watch.subscriber_count += 1
        try:
            yield watch
        finally:
            watch.subscriber_count -= 1
            if not watch.subscriber_count:
                watch.stop()
                del self._watches[branch_key]
