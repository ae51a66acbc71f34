"""The budget of an optimize run: the time and the number of bytes read after which the run starts no new work.

Work that has started is always finished and published, so a run makes progress with any budget. The budget only decides
whether the next task or table is started; it never interrupts work.
"""

from dataclasses import dataclass, field

from omnigraph.errors import InputError
from omnigraph.values import clock_and_ids
from omnigraph.values.describe_value import describe
from omnigraph.values.table_key import TableKey


@dataclass(slots=True)
class OptimizeBudget:
    """The limits of a run, how many bytes it has used, and the tables on which work was postponed."""

    max_seconds: float | None = None
    max_bytes: int | None = None
    used_bytes: int = 0
    postponed: set[TableKey] = field(default_factory=set)
    started: float = field(default_factory=clock_and_ids.monotonic)

    def restart(self) -> None:
        """Start the run again, with the time that remains."""
        self.used_bytes = 0
        self.postponed.clear()

    def may_start(self, table_key: TableKey) -> bool:
        """Return whether more work on a table may start; if not, record the table as postponed."""
        in_time = self.max_seconds is None or clock_and_ids.monotonic() - self.started < self.max_seconds
        if in_time and (self.max_bytes is None or self.used_bytes < self.max_bytes):
            return True
        self.postponed.add(table_key)
        return False


def make_budget(max_seconds: float | None, max_bytes: int | None) -> OptimizeBudget | None:
    """Return a budget, or None if there is no limit. Raise `InputError` for a limit that is not positive."""
    for name, limit in (("max_seconds", max_seconds), ("max_bytes", max_bytes)):
        is_number = isinstance(limit, int | float) and not isinstance(limit, bool)
        if limit is not None and not (is_number and limit > 0):
            raise InputError(f"{name} must be a positive number, got {describe(limit)}", reason="not positive")
    return None if max_seconds is None and max_bytes is None else OptimizeBudget(max_seconds, max_bytes)
