"""The report for an optimize run: one entry per table, and the commits that the run created.

This module only defines the report. It must load quickly, because commands on a server import it.
"""

from dataclasses import dataclass
from typing import Any

from omnigraph.history.commit import Commit
from omnigraph.values.table_key import TableKey


@dataclass(frozen=True, slots=True)
class TableMaintenance:
    """The result for one table. `skipped` or `error` explains why the table was not maintained.

    `version_after` is the last published version. The byte counts cover the table's data files. `remaining_bytes` is
    the size of the files that a later run has to read, because this run used up its budget.
    """

    type_key: TableKey
    fragments_removed: int = 0
    fragments_added: int = 0
    committed: bool = False
    skipped: str | None = None
    manifest_version: int | None = None
    lance_head_version: int | None = None
    pending_indexes: tuple[tuple[str, str], ...] = ()
    bytes_before: int = 0
    bytes_after: int = 0
    version_before: int = 0
    version_after: int = 0
    error: str | None = None
    remaining_bytes: int = 0

    def to_json(self) -> dict[str, Any]:
        """Return the report as JSON-compatible data."""
        return {
            "type_key": self.type_key,
            "fragments_removed": self.fragments_removed,
            "fragments_added": self.fragments_added,
            "committed": self.committed,
            "skipped": self.skipped,
            "manifest_version": self.manifest_version,
            "lance_head_version": self.lance_head_version,
            "pending_indexes": [
                {"type_key": self.type_key, "property": property_name, "reason": reason}
                for property_name, reason in self.pending_indexes
            ],
            "bytes_before": self.bytes_before,
            "bytes_after": self.bytes_after,
            "error": self.error,
            "remaining_bytes": self.remaining_bytes,
        }


@dataclass(frozen=True, slots=True, repr=False)
class OptimizeReport:
    """The report for a run: one entry per table, and the commits that the run created (usually one or none).

    `retries` is the number of times that another writer published first.
    """

    datasets: tuple[TableMaintenance, ...] = ()
    commits: tuple[Commit, ...] = ()
    engine: str = "local"
    retries: int = 0

    def __bool__(self) -> bool:
        return bool(self.commits)

    def __repr__(self) -> str:
        committed_keys = [dataset.type_key for dataset in self.datasets if dataset.committed]
        committed = ", ".join(committed_keys) or "nothing"
        damage_note = f", {len(self.damaged)} damaged" if self.damaged else ""
        remaining_note = f", {len(self.remaining)} remaining" if self.remaining else ""
        return f"<Optimized {committed} of {len(self.datasets)} tables{damage_note}{remaining_note}>"

    @property
    def damaged(self) -> tuple[TableMaintenance, ...]:
        """The tables that could not be maintained. `error` explains why."""
        return tuple(dataset for dataset in self.datasets if dataset.error is not None)

    @property
    def remaining(self) -> dict[TableKey, int]:
        """The tables that the budget of this run did not cover completely, with the number of bytes left to read."""
        return {dataset.type_key: dataset.remaining_bytes for dataset in self.datasets if dataset.remaining_bytes}
