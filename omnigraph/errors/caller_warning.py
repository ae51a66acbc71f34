"""Issue warnings that show the line of the program that called this package.

To show that line, `warnings.warn` needs the number of stack frames between the line and the warning. The number depends
on the call path within this package, so this module counts the frames.
"""

import sys
import warnings
from types import FrameType

# Modules whose frames can appear between the caller and this package, as in `with graph.branch(..)`.
_TRANSPARENT_MODULES = ("contextlib", "functools")


def warn_caller(message: str, category: type[Warning]) -> None:
    """Issue a warning that points at the innermost stack frame outside this package."""
    stack_level, frame = 1, sys._getframe()
    while _is_own_frame(frame) and frame.f_back is not None:
        stack_level, frame = stack_level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=stack_level)


def _is_own_frame(frame: FrameType) -> bool:
    module_name = str(frame.f_globals.get("__name__"))
    return module_name.partition(".")[0] == __name__.partition(".")[0] or module_name in _TRANSPARENT_MODULES
