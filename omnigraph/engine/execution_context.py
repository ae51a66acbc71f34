"""The state shared by all operators in a query execution: snapshot, schema, parameters and limits.

Each execution has its own context, which must not be shared between threads. Contexts may share caches, which are
thread-safe.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any

import numpy as np
import pyarrow as pa

from omnigraph.history.snapshot import Snapshot
from omnigraph.lang.query import plan
from omnigraph.lang.schema.catalog import Catalog, EdgeType, NodeType
from omnigraph.lang.schema.type_names import type_for_key
from omnigraph.records.frozen import record
from omnigraph.storage.table import Table
from omnigraph.values.table_key import TableKey

from .operators.rows import NULL_ROW, IntArray
from .query_caches import root_identity
from .query_limits import QueryMeter


@dataclass(slots=True, eq=False)
class OperatorStats:
    """Measurements for one operator: rows produced, elapsed milliseconds, and number of runs."""

    rows: int = 0
    milliseconds: float = 0.0
    runs: int = 0
    remark: str = ""


@record(eq=False)
class ScannedRows:
    """Columns that a scan has already read for some rows, so that later operators do not fetch them again."""

    row_ids: IntArray
    table: pa.Table

    def covers(self, wanted_ids: IntArray, column_names: Sequence[str]) -> bool:
        """Return whether all of the given columns are available for all of the given rows."""
        if not set(column_names).issubset(self.table.column_names):
            return False
        if wanted_ids is self.row_ids or (
            len(wanted_ids) == 1 and len(self.row_ids) == 1 and wanted_ids[0] == self.row_ids[0]
        ):
            return True
        return bool(np.isin(wanted_ids[wanted_ids != NULL_ROW], self.row_ids).all())


@dataclass(slots=True, eq=False)
class ExecutionContext:
    """The context of a single query execution."""

    snapshot: Snapshot
    catalog: Catalog
    params: Mapping[str, Any]
    meter: QueryMeter = field(default_factory=QueryMeter)
    caches: Any = None
    embed: Callable[[str, int, str | None], Sequence[float]] | None = None
    trace: dict[int, OperatorStats] | None = None
    scanned_rows: dict[str, ScannedRows] = field(default_factory=dict)
    adjacency_cache: dict[Any, Any] = field(default_factory=dict)
    _tables: dict[TableKey, Table] = field(default_factory=dict)
    _table_identities: dict[str, tuple[str, str, int]] = field(default_factory=dict)

    def table(self, table_key: TableKey) -> Table:
        """Return the table for a key such as `node:Person`, at the version in the snapshot."""
        opened_table = self._tables.get(table_key)
        if opened_table is None:
            opened_table = self._tables[table_key] = self.snapshot.table(table_key)
        return opened_table

    def table_identity(self, table_key: TableKey) -> tuple[str, str, int]:
        """Return a tuple that identifies a table version uniquely across all roots."""
        identity = self._table_identities.get(table_key)
        if identity is None:
            location, version = self.snapshot.checked_version(table_key)
            root_key = root_identity(self.snapshot.store)
            identity = self._table_identities[table_key] = (root_key, location, version)
        return identity

    def row_count(self, table_key: TableKey) -> int:
        """Return a table's row count from the manifest, without opening the table."""
        return self.snapshot.tables[table_key].row_count

    def declared_type(self, table_key: TableKey) -> NodeType | EdgeType:
        """Return the type declaration for a table key."""
        return type_for_key(self.catalog, table_key)

    def constant(self, value: plan.Value) -> Any:
        """Return the stored form of a constant, a parameter or a constant expression."""
        if isinstance(value, plan.Parameter):
            return self.params[value.name]
        if isinstance(value, plan.Constant):
            return value.value
        from .expressions.evaluate import resolve_constant  # imported here to avoid a circular import

        return resolve_constant(value, self.params)

    def record_stats(self, operator: object, row_count: int, started_at: float, remark: str = "") -> None:
        """Record an operator's measurements if tracing is enabled."""
        if self.trace is None:
            return
        operator_stats = self.trace.setdefault(id(operator), OperatorStats())
        operator_stats.rows += row_count
        operator_stats.milliseconds += (perf_counter() - started_at) * 1000
        operator_stats.runs += 1
        operator_stats.remark = remark or operator_stats.remark
