"""A snapshot of a graph in Spark: its node and edge types as DataFrames."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from omnigraph.errors import EntityNotFound
from omnigraph.history.line import Line
from omnigraph.history.snapshot import Snapshot
from omnigraph.naming import shorten_name

from .export import Exported, Form, export_on_spark
from .held import hold_of
from .scan import scan

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@dataclass(frozen=True, slots=True)
class SparkGraph:
    """One snapshot bound to a Spark session; every DataFrame of it shows that snapshot."""

    session: "SparkSession"
    snapshot: Snapshot
    line: Line | None = None

    def nodes(
        self, name: str, columns: Sequence[str] | None = None, where: Any = None
    ) -> "DataFrame":
        """The nodes of a type: id and properties."""
        return self._scan(f"node:{name}", columns, where)

    def edges(
        self, name: str, columns: Sequence[str] | None = None, where: Any = None
    ) -> "DataFrame":
        """The edges of a type: id, src, dst and properties."""
        return self._scan(f"edge:{name}", columns, where)

    def table(
        self, name: str, columns: Sequence[str] | None = None, where: Any = None
    ) -> "DataFrame":
        """The table of a node or edge type; the node wins when both exist.

        `where` is an Arrow expression, which Lance applies before anything reaches Spark.
        """
        kind = "node" if f"node:{name}" in self.snapshot.tables else "edge"
        return self._scan(f"{kind}:{name}", columns, where)

    def export(
        self,
        folder: str | os.PathLike[str],
        format: Form = "ndjson",
        *,
        types: Sequence[str] | None = None,
        ordered: bool = False,
        progress: Any = None,
    ) -> Exported:
        """Write the snapshot to an empty folder: NDJSON, Parquet or plain Lance, in parallel.

        `ordered` puts each type in the order of its ids. `progress` is called with tasks done and
        known of; if it has a method `step`, that is called with a `Step` instead.
        """
        return export_on_spark(
            self.session,
            self.snapshot,
            folder,
            format,
            types=types,
            ordered=ordered,
            line=self.line,
            progress=progress,
        )

    def _scan(self, key: str, columns: Sequence[str] | None, where: Any) -> "DataFrame":
        if key not in self.snapshot.tables:
            raise EntityNotFound(f"there is no {shorten_name(key).replace(':', ' type ')} here")
        hold = hold_of(self.line, self.snapshot, key) if self.line is not None else None
        return scan(self.session, self.snapshot, key, columns, where, hold=hold)
