"""Read the node and edge types in a snapshot as Spark DataFrames."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from omnigraph.history.branch_state import BranchState
from omnigraph.history.snapshot import Snapshot
from omnigraph.values.table_key import TableKey

from .export import Exported, ExportFormat, export_on_spark
from .read_leases import lease_for_table
from .table_scan import scan

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@dataclass(frozen=True, slots=True)
class SparkGraph:
    """A snapshot bound to a Spark session; all of its DataFrames read that snapshot."""

    session: "SparkSession"
    snapshot: Snapshot
    branch_state: BranchState | None = None

    def nodes(self, name: str, columns: Sequence[str] | None = None, where: Any = None) -> "DataFrame":
        """Return the nodes of a type as a DataFrame with the id and the properties."""
        return self._scan_table(TableKey.node(name), columns, where)

    def edges(self, name: str, columns: Sequence[str] | None = None, where: Any = None) -> "DataFrame":
        """Return the edges of a type as a DataFrame with id, src, dst and the properties."""
        return self._scan_table(TableKey.edge(name), columns, where)

    def table(self, name: str, columns: Sequence[str] | None = None, where: Any = None) -> "DataFrame":
        """Return a DataFrame for a node or edge type.

        If a node type and an edge type have this name, the node type takes precedence. `where` is an Arrow expression,
        which Lance applies before rows reach Spark.
        """
        kind = "node" if TableKey.node(name) in self.snapshot.tables else "edge"
        return self._scan_table(TableKey.of(kind, name), columns, where)

    def export(
        self,
        folder: str | os.PathLike[str],
        format: ExportFormat = "ndjson",
        *,
        types: Sequence[str] | None = None,
        ordered: bool = False,
        progress: Any = None,
    ) -> Exported:
        """Write the snapshot to an empty folder in parallel, as NDJSON, Parquet or plain Lance.

        If `ordered` is true, each type is sorted by id. `progress` is called with the number of finished tasks and the
        total number of tasks. If `progress` has a `step` method, that method is called with a `StepProgress` instead.
        """
        return export_on_spark(
            self.session,
            self.snapshot,
            folder,
            format,
            types=types,
            ordered=ordered,
            branch_state=self.branch_state,
            progress=progress,
        )

    def _scan_table(self, table_key: TableKey, columns: Sequence[str] | None, row_filter: Any) -> "DataFrame":
        self.snapshot.table_entry(table_key)
        lease = lease_for_table(self.branch_state, self.snapshot, table_key) if self.branch_state is not None else None
        return scan(self.session, self.snapshot, table_key, columns, row_filter, lease=lease)
