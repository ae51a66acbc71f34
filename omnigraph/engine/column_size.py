"""The maximum size of a column in memory, and the error for columns that exceed it.

Arrow addresses the bytes of a text column with 32-bit offsets, so a column of 2 GiB or more cannot be built.
This module never reads or builds a column.
"""

import pyarrow as pa

from omnigraph.errors import ResourceLimitExceeded
from omnigraph.storage.batch_sizes import is_overflow

_MAX_COLUMN_BYTES = (1 << 31) - 1
COLUMN_RESOURCE = "query_column_bytes"


def check_column_bytes(byte_count: int, max_bytes: int) -> None:
    """Raise `ResourceLimitExceeded` if a column of this size is larger than allowed."""
    if byte_count > max_bytes:
        raise _column_too_large(max_bytes, byte_count)


def overflow_error(error: pa.ArrowInvalid) -> Exception:
    """Convert an Arrow error to `ResourceLimitExceeded` if a column was too large; return any other error unchanged."""
    return _column_too_large(_MAX_COLUMN_BYTES, None) if is_overflow(error) else error


def is_column_limit(error: ResourceLimitExceeded) -> bool:
    """Return whether an error means that a column is too large."""
    return error.resource == COLUMN_RESOURCE


def _column_too_large(max_bytes: int, byte_count: int | None) -> ResourceLimitExceeded:
    return ResourceLimitExceeded(
        resource=COLUMN_RESOURCE,
        limit=max_bytes,
        actual=byte_count,
        effect="none",
        hint="return fewer rows or shorter values, or read the rows in batches with graph.stream",
    )
