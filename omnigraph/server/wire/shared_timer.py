"""Time limits that share one timer of the event loop.

Almost every limit is ended before it expires. Canceling a uvloop timer costs an extra iteration of the event loop, in
which the loop and the threads of running calls compete for the interpreter. This module therefore never cancels its
timer: it looks for expired limits twenty times per second while there are any limits.
"""

import asyncio
from collections.abc import Callable
from itertools import count
from types import TracebackType

from omnigraph.values import clock_and_ids

_TICK_SECONDS = 0.05


class SharedTimer:
    """The time limits of one event loop. A limit expires up to a twentieth of a second late."""

    def __init__(self) -> None:
        self._limits: dict[int, tuple[float, Callable[[], object]]] = {}
        self._numbers = count()
        self._is_running = False

    def start(self, seconds: float, on_expiry: Callable[[], object]) -> int:
        """Start a time limit that calls a function when it expires, and return the limit's number."""
        if not self._is_running:
            self._is_running = True
            asyncio.get_running_loop().call_later(_TICK_SECONDS, self._tick)
        number = next(self._numbers)
        self._limits[number] = (clock_and_ids.monotonic() + seconds, on_expiry)
        return number

    def end(self, number: int) -> None:
        """End a time limit before it expires."""
        self._limits.pop(number, None)

    def _tick(self) -> None:
        try:
            self._expire_limits()
        finally:  # the event loop reports the error of a function; the other limits must still expire
            self._is_running = bool(self._limits)
            if self._is_running:
                asyncio.get_running_loop().call_later(_TICK_SECONDS, self._tick)

    def _expire_limits(self) -> None:
        now = clock_and_ids.monotonic()
        for number in [number for number, (expires_at, _) in self._limits.items() if expires_at <= now]:
            _, on_expiry = self._limits.pop(number, (now, None))  # another limit's function may have ended this one
            if on_expiry is not None:
                on_expiry()


class TaskLimit:
    """A `with` block that raises `TimeoutError` if it takes too long. It corresponds to `asyncio.timeout`."""

    __slots__ = ("_cancellations", "_has_expired", "_limit", "_seconds", "_task", "_timer")

    def __init__(self, timer: SharedTimer, seconds: float) -> None:
        self._timer, self._seconds, self._has_expired = timer, seconds, False

    def __enter__(self) -> None:
        task = asyncio.current_task()
        assert task is not None  # noqa: S101 - every request runs in a task
        self._task, self._cancellations = task, task.cancelling()
        self._limit = self._timer.start(self._seconds, self._cancel_task)

    def _cancel_task(self) -> None:
        self._has_expired = True
        self._task.cancel()

    def __exit__(
        self, error_type: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._timer.end(self._limit)
        if (
            self._has_expired
            and self._task.uncancel() <= self._cancellations
            and isinstance(error, asyncio.CancelledError)
        ):
            raise TimeoutError from error
