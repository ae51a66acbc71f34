"""Run the pieces of a load in threads, and return their results in input order.

Parsing, hashing and writing release the interpreter lock most of the time. Each thread inherits the caller's context
variables, which contain the settings of the current call.
"""

import os
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import copy_context
from threading import Event
from typing import TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")
MAX_THREADS = 16  # limits memory use, because each thread keeps the rows of one fragment in memory


def thread_count() -> int:
    """Return the number of threads that a load uses."""
    return min(MAX_THREADS, len(os.sched_getaffinity(0)))


def run_in_threads(
    work: Callable[[Item], Result],
    items: Sequence[Item],
    threads: int,
    stop: Event,
    is_last: Callable[[Result], bool] = lambda _: False,
    on_result: Callable[[Item], object] = lambda _: None,
) -> list[Result | None]:
    """Apply a function to all items, and return the results in the order of the items.

    The error of the first failed item is raised. If `is_last` is true for a result, the items after it are not needed,
    and their results are None. `stop` is set when no further results are needed, so that `work` can end early.
    """
    results: list[Result | None] = [None] * len(items)
    with ThreadPoolExecutor(max(1, threads), "omnigraph-load") as pool:
        futures: list[Future[Result]] = [pool.submit(copy_context().run, work, item) for item in items]
        try:
            for index, future in enumerate(futures):
                result = results[index] = future.result()
                on_result(items[index])
                if is_last(result):
                    break
        finally:
            if not all(future.done() for future in futures):
                stop.set()
            for future in futures:
                future.cancel()
    return results
