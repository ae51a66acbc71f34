"""Run blocking calls in asynchronous programs, using a bounded thread pool with support for cancellation.

A cancelled read stops at the next chunk. A write that is cancelled before it is published has no effect; once
publishing has begun, the caller waits for the outcome. This module never runs its own event loop.
"""

import asyncio
import os
import sys
import threading
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import AbstractContextManager, asynccontextmanager
from contextvars import copy_context
from functools import wraps
from itertools import islice
from typing import Any, Concatenate, Generic, ParamSpec, TypeVar

from omnigraph.values.cancellation import STOP_EVENT

Answer = TypeVar("Answer")
Item = TypeVar("Item")
Sync = TypeVar("Sync")
Params = ParamSpec("Params")
WORKERS = min(32, (os.cpu_count() or 1) + 4)
_pool: ThreadPoolExecutor | None = None
_pool_lock = threading.Lock()


def _workers() -> ThreadPoolExecutor:
    global _pool  # noqa: PLW0603 - one pool per process
    with _pool_lock:
        if _pool is None:
            _pool = ThreadPoolExecutor(WORKERS, thread_name_prefix="omnigraph")
        return _pool


def _reset_after_fork() -> None:
    global _pool, _pool_lock
    _pool, _pool_lock = None, threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_reset_after_fork)


async def run(call: Callable[..., Answer], /, *args: Any, **options: Any) -> Answer:
    """Run a call in the thread pool.

    >>> asyncio.run(run(sum, [1, 2, 3]))
    6
    """
    return await run_in(_workers(), call, *args, **options)


@asynccontextmanager
async def enter_in_thread(block: AbstractContextManager[Any], wrap: Callable[[Any], Item]) -> AsyncIterator[Item]:
    """Enter and leave a blocking context manager in the thread pool, and yield its wrapped value."""
    value = await run(block.__enter__)
    try:
        yield wrap(value)
    except BaseException:
        await run(block.__exit__, *sys.exc_info())
        raise
    await run(block.__exit__, None, None, None)


async def run_in(executor: Executor, call: Callable[..., Answer], /, *args: Any, **options: Any) -> Answer:
    """Run a call in an executor. On cancellation, signal the call to stop and wait for it to finish."""
    stop = threading.Event()
    context = copy_context()
    context.run(STOP_EVENT.set, stop)
    future = executor.submit(context.run, lambda: call(*args, **options))
    waiting = asyncio.wrap_future(future)
    try:
        return await asyncio.shield(waiting)
    except asyncio.CancelledError:
        stop.set()
        if not future.cancel():
            # The call is already running, so wait until it either stops before publishing or completes.
            await asyncio.wait([waiting])
            if not waiting.cancelled():
                waiting.exception()
        raise


async def iterate(items: Iterator[Item]) -> AsyncIterator[Item]:
    """Yield the items of a blocking iterator, reading each item in the thread pool."""
    try:
        while batch := await run(lambda: list(islice(items, 1))):
            yield batch[0]
    finally:
        close = getattr(items, "close", None)
        if close is not None:
            close()


class AsyncFacet(Generic[Sync]):
    """A facet whose methods are coroutines. `sync` is the blocking facet that they call."""

    def __init__(self, sync: Sync) -> None:
        self.sync = sync

    def __repr__(self) -> str:
        return f"Async{self.sync!r}"

    async def _call(self, name: str, /, *args: Any, **options: Any) -> Any:
        return await run(lambda: getattr(self.sync, name)(*args, **options))


def in_thread(
    method: Callable[Concatenate[Any, Params], Answer],
) -> Callable[Concatenate[Any, Params], Coroutine[Any, Any, Answer]]:
    """Turn a blocking method into a coroutine with the same parameters and docstring.

    Use this function in the body of an `AsyncFacet`, as in `cleanup =
    in_thread(Maintenance.cleanup)`.
    """

    @wraps(method)
    async def coroutine(self: Any, /, *args: Params.args, **options: Params.kwargs) -> Answer:
        answer: Answer = await self._call(method.__name__, *args, **options)
        return answer

    return coroutine
