"""Limit how many bytes of request bodies a worker holds in memory at once.

Bytes are counted when they arrive, not when a client announces them, so a client that sends nothing uses no memory.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from omnigraph.errors import ServerBusy


class BodyMemory:
    """The memory for request bodies of one worker. It is used only on the event loop. A limit of 0 means unlimited."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self.used_bytes = 0

    @contextmanager
    def open_account(self) -> Iterator["BodyAccount"]:
        """Count the bytes of one request for the duration of the block."""
        account = BodyAccount(self)
        try:
            yield account
        finally:
            self.used_bytes -= account.size

    def take(self, size: int) -> None:
        """Count bytes; raise `ServerBusy` if they exceed the limit."""
        if self._limit and self.used_bytes + size > self._limit:
            raise ServerBusy("the server is receiving too many large requests at once")
        self.used_bytes += size


class BodyAccount:
    """The body bytes of one request that count toward a worker's memory limit.

    >>> memory = BodyMemory(10)
    >>> with memory.open_account() as account:
    ...     account.add(8)
    ...     print(memory.used_bytes)
    8
    >>> memory.used_bytes
    0
    """

    def __init__(self, memory: BodyMemory) -> None:
        self._memory = memory
        self.size = 0

    def add(self, size: int) -> None:
        """Count bytes that have arrived; raise `ServerBusy` if the worker holds too many."""
        self._memory.take(size)
        self.size += size
