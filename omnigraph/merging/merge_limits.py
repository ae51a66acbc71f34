"""Configurable memory limits for a merge. If a merge exceeds a limit, the error names the limit."""

from collections.abc import Iterable
from dataclasses import dataclass

from omnigraph.errors import ResourceLimitExceeded
from omnigraph.rules.delta import TableDelta


@dataclass(frozen=True, slots=True)
class MergeLimits:
    """Limits for a merge in one process. The limits are inclusive, and None means unlimited.

    `delta_bytes` and `rows` limit what the merge writes to all of the target's tables combined.
    """

    delta_bytes: int | None = 2 << 30
    rows: int | None = None


def check_delta_size(table_deltas: Iterable[TableDelta], limits: MergeLimits) -> None:
    """Raise `ResourceLimitExceeded` if a merge exceeds a limit, before anything is written."""
    total_bytes = total_rows = 0
    for table_delta in table_deltas:
        total_bytes += table_delta.row_versions.nbytes
        total_rows += table_delta.row_versions.num_rows
    _check_limit("branch-merge retained validation delta bytes", total_bytes, limits.delta_bytes)
    _check_limit("branch-merge delta rows", total_rows, limits.rows)


def _check_limit(resource: str, actual: int, limit: int | None) -> None:
    if limit is not None and actual > limit:
        raise ResourceLimitExceeded(resource=resource, limit=limit, actual=actual)
