"""Events that this process reports about its work on branches, for metrics.

Listeners are called in the thread in which the event occurs, so they must be fast, and they must not raise exceptions.
Nothing in the engine depends on whether there are any listeners.
"""

from collections.abc import Callable
from typing import Literal

Activity = Literal["freshness_probe", "repeated_swap", "repeated_plan"]
"""A request that looks for newer commits, and a write that is published or planned again after another write."""

ActivityListener = Callable[[Activity], object]
_listeners: tuple[ActivityListener, ...] = ()


def add_activity_listener(listener: ActivityListener) -> None:
    """Call a function whenever an event occurs, until this process ends."""
    global _listeners  # noqa: PLW0603 - the listeners of the process, which are added at its start
    _listeners = (*_listeners, listener)


def report_activity(activity: Activity) -> None:
    """Tell all listeners about an event."""
    for listener in _listeners:
        listener(activity)
