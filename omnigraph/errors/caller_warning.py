"""Issue warnings that show the line of the program that called this package.

To show that line, `warnings.warn` needs the number of stack frames between the line and the warning. The number depends
on the call path within this package, so this module counts the frames.
"""

import sys
import warnings
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from types import FrameType
from typing import Any

# Modules whose frames can appear between the caller and this package, as in `with graph.branch(..)`.
_TRANSPARENT_MODULES = ("contextlib", "functools")

WarningListener = Callable[[str, str, Mapping[str, Any]], None]
WARNING_LISTENER: ContextVar[WarningListener | None] = ContextVar("omnigraph_warnings", default=None)
"""Receives the code, message and facts of each warning in this context, for callers in another process."""


def report_warning(code: str, message: str, facts: Mapping[str, Any]) -> bool:
    """Pass a warning to the listener in the current context, and return whether there is a listener."""
    listener = WARNING_LISTENER.get()
    if listener is not None:
        listener(code, message, facts)
    return listener is not None


def warn_caller(message: str, category: type[Warning]) -> None:
    """Issue a warning that points at the innermost stack frame outside this package."""
    if report_warning(category.__name__, message, {}):
        return
    stack_level, frame = 1, sys._getframe()
    while _is_own_frame(frame) and frame.f_back is not None:
        stack_level, frame = stack_level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=stack_level)


def _is_own_frame(frame: FrameType) -> bool:
    module_name = str(frame.f_globals.get("__name__"))
    return module_name.partition(".")[0] == __name__.partition(".")[0] or module_name in _TRANSPARENT_MODULES
