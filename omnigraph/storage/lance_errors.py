"""Distinguish exceptions raised by Lance from exceptions raised by this package or its callers.

An exception is attributed to Lance if the innermost frame of this package in the traceback called a Lance function.
Argument errors from Lance's Python wrappers are left unchanged.
"""

import re
from collections.abc import Iterator
from types import TracebackType

import pyarrow as pa

from omnigraph.errors import Effect, StorageError

from .failures import DamagedError, failure_reason, to_storage_error

# The message of an exception that was raised in Rust ends with a source location. If a Python wrapper raised the
# exception, the message does not.
_RUST_LOCATION = re.compile(r",? ?/[^\s,]+\.rs:\d+:\d+$")
_RUST_FILE = re.compile(r"/lance[^\s,]*\.rs:\d+")


def lance_storage_error(error: BaseException, *, effect: Effect = "none") -> StorageError | None:
    """Convert an exception raised by Lance to a typed error, or return None for any other exception."""
    if type(error).__name__ == "PanicException":  # defined in Rust and cannot be imported
        return _damaged_error(error, effect)
    if isinstance(error, StorageError) or not _is_raised_by_lance(error):
        return None
    if isinstance(error, pa.ArrowException):
        return _damaged_error(error, effect)
    if isinstance(error, OSError):
        return to_storage_error(error, effect=effect)
    rust_location = isinstance(error, ValueError | RuntimeError) and _RUST_LOCATION.search(str(error))
    return _damaged_error(error, effect) if rust_location else None


def _damaged_error(error: BaseException, effect: Effect) -> DamagedError:
    reason = _RUST_LOCATION.sub("", failure_reason(error))
    return DamagedError(f"a table cannot be read or written: {reason}", effect=effect)


def _is_raised_by_lance(error: BaseException) -> bool:
    called_package = ""
    for package in _frame_packages(error.__traceback__):
        # Start over at each frame of this package, because only the call made by the innermost of them matters.
        called_package = "" if package == "omnigraph" else called_package or package
    if called_package == "" and isinstance(error, pa.ArrowException | OSError):
        # A scan is read through Arrow's reader, so no frame of Lance's Python package is in the traceback.
        return _RUST_FILE.search(str(error)) is not None
    return called_package == "lance"


def _frame_packages(traceback: TracebackType | None) -> Iterator[str]:
    """Yield the top-level package of each frame in a traceback, outermost first, skipping pyarrow."""
    while traceback is not None:
        top_package = str(traceback.tb_frame.f_globals.get("__name__", "")).partition(".")[0]
        if top_package != "pyarrow":
            yield top_package or "?"
        traceback = traceback.tb_next
