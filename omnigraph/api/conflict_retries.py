"""Repeat a call that failed with a conflict, for the `retry` methods of embedded and remote graphs.

This module decides when another attempt makes sense. The caller decides how long to wait and how to refresh the graph.
"""

from collections.abc import Callable
from typing import TypeVar

from omnigraph.errors import OmnigraphError, UsageError

Answer = TypeVar("Answer")


def retry_call(call: Callable[[], Answer], pause: Callable[[int], None], attempts: int) -> Answer:
    """Call a function again after each conflict that a newer state may resolve.

    Before each new attempt, `pause` is called with the number of the attempt that failed.
    """
    for attempt in range(1, attempts + 1):
        try:
            return call()
        except OmnigraphError as error:
            if error.retryable != "fresh" or attempt == attempts:
                raise
            pause(attempt)
    raise UsageError(reason="attempts must be at least 1")
