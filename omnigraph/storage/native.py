"""Exceptions that Lance raised by itself, told from those of our own code and of callers.

Decides by where an exception was raised: the first frame below the innermost one of ours must be
Lance's. A mistake in the arguments of a call, which Lance finds in Python, stays what it is.
"""

import re
from collections.abc import Iterator
from types import TracebackType

import pyarrow as pa

from omnigraph.errors import Effect, StorageError

from .failures import DamagedError, failure_reason, storage_failure

# What is raised in Rust ends with the place there; what wrappers in Python raise does not.
_PLACE = re.compile(r",? ?/[^\s,]+\.rs:\d+:\d+$")


def native_failure(error: BaseException, *, effect: Effect = "none") -> StorageError | None:
    """The typed error of an exception that Lance raised; None for any other."""
    if type(error).__name__ == "PanicException":  # Rust's; it can be imported from nowhere
        return _damaged(error, effect)
    if isinstance(error, StorageError) or not _raised_by_lance(error):
        return None
    if isinstance(error, pa.ArrowException):
        return _damaged(error, effect)
    if isinstance(error, OSError):
        return storage_failure(error, effect=effect)
    native = isinstance(error, ValueError | RuntimeError) and _PLACE.search(str(error))
    return _damaged(error, effect) if native else None


def _damaged(error: BaseException, effect: Effect) -> DamagedError:
    reason = _PLACE.sub("", failure_reason(error))
    return DamagedError(f"a table cannot be read or written: {reason}", effect=effect)


def _raised_by_lance(error: BaseException) -> bool:
    below = ""
    for package in _packages(error.__traceback__):
        # Frames of ours start anew: only what the innermost one of them called counts.
        below = "" if package == "omnigraph" else below or package
    return below == "lance"


def _packages(traceback: TracebackType | None) -> Iterator[str]:
    """The top packages of the frames of a traceback, the outermost first, without Arrow's."""
    while traceback is not None:
        name = str(traceback.tb_frame.f_globals.get("__name__", "")).partition(".")[0]
        if name != "pyarrow":
            yield name or "?"
        traceback = traceback.tb_next
