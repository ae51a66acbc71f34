"""Tell exceptions raised by Lance apart from those of our own code and of callers.

Decides by where an exception was raised: the frame that our innermost one called must be of Lance.
Argument errors that Lance's Python wrappers raise are left unchanged.
"""

import re
from collections.abc import Iterator
from types import TracebackType

import pyarrow as pa

from omnigraph.errors import Effect, StorageError

from .failures import DamagedError, failure_reason, storage_failure

# Messages of exceptions raised in Rust end with a source location; those of Python wrappers do not.
_PLACE = re.compile(r",? ?/[^\s,]+\.rs:\d+:\d+$")


def native_failure(error: BaseException, *, effect: Effect = "none") -> StorageError | None:
    """Return the typed error for an exception that Lance raised; None for any other."""
    if type(error).__name__ == "PanicException":  # defined in Rust; it cannot be imported
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
        # Each frame of ours starts over: only what our innermost frame called counts.
        below = "" if package == "omnigraph" else below or package
    return below == "lance"


def _packages(traceback: TracebackType | None) -> Iterator[str]:
    """Yield the top-level packages of a traceback's frames, outermost first, without pyarrow."""
    while traceback is not None:
        name = str(traceback.tb_frame.f_globals.get("__name__", "")).partition(".")[0]
        if name != "pyarrow":
            yield name or "?"
        traceback = traceback.tb_next
