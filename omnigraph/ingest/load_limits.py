"""Configurable limits on the input of a load; errors name the exceeded limit and the option that changes it."""

import os
from dataclasses import dataclass

from omnigraph.errors import ConfigError, ResourceLimitExceeded, UsageError

LARGE_BLOB_HINT = "pass the blob as a pathlib.Path or as a file opened in binary mode, or use `blob put`"
ROW_LIMIT_HINT = "pass a larger max_row_bytes to `load` (--max-row-bytes), or set OMNIGRAPH_MAX_ROW_BYTES"
_ROW_BYTES = 32 << 20
_BYTES_PER_SLOT = 256
_VARIABLE = "OMNIGRAPH_MAX_ROW_BYTES"


@dataclass(frozen=True, slots=True)
class LoadLimits:
    """Inclusive limits for a load; None means unlimited.

    `line_bytes` limits the size of a line, `value_bytes` the size of a string or blob, `slots` the number of structural
    characters in a JSON line, and `rows` the number of records per type. Large base64 blobs are streamed. They do not
    count toward `line_bytes` and `value_bytes`, and `blob_bytes` limits their size.
    """

    line_bytes: int = _ROW_BYTES
    value_bytes: int = _ROW_BYTES
    slots: int = _ROW_BYTES // _BYTES_PER_SLOT
    rows: int | None = None
    blob_bytes: int | None = None


def load_limits(max_row_bytes: int | None = None) -> LoadLimits:
    """Return the limits for a maximum row size.

    If no size is given, `OMNIGRAPH_MAX_ROW_BYTES` determines it. If this variable is not set either, return the default
    limits.

    >>> load_limits(1 << 20)
    LoadLimits(line_bytes=1048576, value_bytes=1048576, slots=131072, rows=None, blob_bytes=1048576)
    """
    if max_row_bytes is None:
        variable_text = os.environ.get(_VARIABLE)
        if not variable_text:
            return LoadLimits()
        max_row_bytes = _parse_size(variable_text)
    elif type(max_row_bytes) is not int or max_row_bytes < 1:
        raise UsageError(reason=f"max_row_bytes must be a positive integer, not {max_row_bytes!r}")
    slots = max(max_row_bytes, _ROW_BYTES) // _BYTES_PER_SLOT
    return LoadLimits(max_row_bytes, max_row_bytes, slots, blob_bytes=max_row_bytes)


def _parse_size(variable_text: str) -> int:
    if not (variable_text.isascii() and variable_text.isdecimal()) or int(variable_text) < 1:
        raise ConfigError(f"{_VARIABLE} must be a positive integer, not '{variable_text}'")
    return int(variable_text)


def check_limit(resource: str, actual: int, limit: int | None, hint: str | None = None) -> None:
    """Raise `ResourceLimitExceeded` if a value exceeds its limit.

    >>> check_limit("graph_batch_line_bytes", 5, 5)
    """
    if limit is not None and actual > limit:
        raise ResourceLimitExceeded(resource=resource, limit=limit, actual=actual, hint=hint)
