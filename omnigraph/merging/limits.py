"""Memory limits of one merge; every limit is configurable and named in the error it raises."""

from collections.abc import Iterable
from dataclasses import dataclass

from omnigraph.errors import ResourceLimitExceeded
from omnigraph.rules.delta import TableDelta


@dataclass(frozen=True, slots=True)
class MergeLimits:
    """Limits of a merge in one process; they are inclusive, and None means unlimited.

    `delta_bytes` and `rows` limit what the merge writes to the target, over all tables.
    """

    delta_bytes: int | None = 2 << 30
    rows: int | None = None


def check_delta(tables: Iterable[TableDelta], limits: MergeLimits) -> None:
    """Raise `ResourceLimitExceeded` for a merge over a limit, before anything is written."""
    size = rows = 0
    for one in tables:
        size += one.versions.nbytes
        rows += one.versions.num_rows
    _within("branch-merge retained validation delta bytes", size, limits.delta_bytes)
    _within("branch-merge delta rows", rows, limits.rows)


def _within(resource: str, actual: int, limit: int | None) -> None:
    if limit is not None and actual > limit:
        raise ResourceLimitExceeded(resource=resource, limit=limit, actual=actual)
