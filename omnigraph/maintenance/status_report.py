"""The report on the status of a graph: its tables, its size, and the limits that it exceeds.

This module only defines how the report is worded and converted to JSON. It must load quickly, because commands on a
server import it.
"""

from dataclasses import dataclass, field
from typing import Any

from omnigraph.errors.counts import format_count
from omnigraph.values.table_key import TableKey

from .health_thresholds import LimitWarning


@dataclass(frozen=True, slots=True)
class DatasetStatus:
    """A table's status on a branch. `versions` and `bytes` include the table's retained history.

    `error` explains why a damaged table could not be examined. In this case, `rows` is the row count that the branch
    records.
    """

    type_key: TableKey
    rows: int
    deleted_rows: int
    fragments: int
    unindexed_rows: int
    versions: int
    bytes: int
    error: str | None = None

    def to_json(self) -> dict[str, Any]:
        """Return the table status as JSON-compatible data."""
        return {field_name: getattr(self, field_name) for field_name in self.__slots__}


@dataclass(frozen=True, slots=True)
class Status:
    """The size and condition of a graph, as seen from one branch."""

    branch: str
    commit_id: str
    datasets: tuple[DatasetStatus, ...]
    branches: int
    tags: int
    commits: int
    manifest_versions: int
    intents: int
    set_aside: int
    bytes: int
    unreclaimed_bytes: int
    cache_bytes: int
    cache_directory: str | None
    warnings: tuple[LimitWarning, ...] = field(default=())

    def __repr__(self) -> str:
        tables = f"{format_count(len(self.datasets), 'table')}, {self.bytes:,} bytes"
        return f"<Status of {self.branch}: {tables}, {format_count(len(self.warnings), 'warning')}>"

    def to_json(self) -> dict[str, Any]:
        """Return the status as JSON-compatible data."""
        field_names = [field_name for field_name in self.__slots__ if field_name not in ("datasets", "warnings")]
        members = {field_name: getattr(self, field_name) for field_name in field_names}
        members["graph_commit_id"] = members.pop("commit_id")
        members["datasets"] = [row.to_json() for row in self.datasets]
        members["warnings"] = [row.to_json() for row in self.warnings]
        return members
