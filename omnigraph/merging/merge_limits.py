"""Memory limits for a merge: those that can be configured, and those of Arrow and the machine.

If a merge exceeds a limit, the error names the limit. This module never reads rows.
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import pyarrow as pa

from omnigraph.errors import ResourceLimitExceeded
from omnigraph.rules.delta import TableDelta
from omnigraph.storage.batch_sizes import is_overflow

_MAX_COLUMN_BYTES = (1 << 31) - 1  # Arrow addresses the bytes of a text column with 32-bit offsets
_TOO_LARGE_HINT = (
    'nothing was merged, and both branches are unchanged; merge with engine="spark", merge earlier commits of the'
    " source first, or use a machine with more memory"
)


@dataclass(frozen=True, slots=True)
class MergeLimits:
    """Limits for a merge in one process. The limits are inclusive, and None means unlimited.

    `delta_bytes` and `rows` limit what the merge writes to all of the target's tables combined.
    """

    delta_bytes: int | None = 2 << 30
    rows: int | None = None


def check_delta_size(table_deltas: Iterable[TableDelta], limits: MergeLimits) -> None:
    """Raise `ResourceLimitExceeded` if a merge exceeds a limit. Call this before anything is written."""
    total_bytes = total_rows = 0
    for table_delta in table_deltas:
        total_bytes += table_delta.row_versions.nbytes
        total_rows += table_delta.row_versions.num_rows
    _check_limit("branch-merge retained validation delta bytes", total_bytes, limits.delta_bytes)
    _check_limit("branch-merge delta rows", total_rows, limits.rows)


@contextmanager
def too_large_changes() -> Iterator[None]:
    """Raise `ResourceLimitExceeded` if the compared rows do not fit into an array or into memory.

    Use this only for code that runs before anything is written.
    """
    try:
        yield
    except (pa.ArrowInvalid, pa.ArrowCapacityError) as error:
        if not (isinstance(error, pa.ArrowCapacityError) or is_overflow(error)):
            raise
        raise _too_large("branch-merge column bytes", _MAX_COLUMN_BYTES) from error
    except MemoryError as error:
        raise _too_large("branch-merge memory", None) from error


def _too_large(resource: str, limit: int | None) -> ResourceLimitExceeded:
    return ResourceLimitExceeded(resource=resource, limit=limit, effect="none", hint=_TOO_LARGE_HINT)


def _check_limit(resource: str, actual: int, limit: int | None) -> None:
    if limit is not None and actual > limit:
        raise ResourceLimitExceeded(resource=resource, limit=limit, actual=actual)
