"""State of one execution that every operator needs: snapshot, schema, parameters, limits.

One context per execution; never share it between threads. The caches it refers to are shared and
thread-safe.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any

import numpy as np
import pyarrow as pa

from omnigraph.errors import InternalError
from omnigraph.history.snapshot import Snapshot
from omnigraph.lang.query import plan
from omnigraph.lang.schema.catalog import Catalog, Edge, Node
from omnigraph.storage.table import Table

from .cache import root_name
from .limits import Meter
from .rows import NULL, Ids


@dataclass(slots=True, eq=False)
class Measured:
    """Measurements of an operator: rows produced, milliseconds, runs."""

    rows: int = 0
    milliseconds: float = 0.0
    runs: int = 0
    note: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class Known:
    """Rows that a scan has read in full, so that they need not be fetched again."""

    ids: Ids
    table: pa.Table

    def covers(self, ids: Ids, names: Sequence[str]) -> bool:
        """Return whether all of these columns are available for all of these rows."""
        if any(name not in self.table.column_names for name in names):
            return False
        if ids is self.ids or (len(ids) == 1 and len(self.ids) == 1 and ids[0] == self.ids[0]):
            return True
        return bool(np.isin(ids[ids != NULL], self.ids).all())


@dataclass(slots=True, eq=False)
class Context:
    """One execution of a query."""

    snapshot: Snapshot
    catalog: Catalog
    params: Mapping[str, Any]
    meter: Meter = field(default_factory=Meter)
    caches: Any = None
    embed: Callable[[str, int, str | None], Sequence[float]] | None = None
    trace: dict[int, Measured] | None = None
    known: dict[str, Known] = field(default_factory=dict)
    ways: dict[Any, Any] = field(default_factory=dict)
    _tables: dict[str, Table] = field(default_factory=dict)
    _places: dict[str, tuple[str, str, int]] = field(default_factory=dict)

    def table(self, key: str) -> Table:
        """Return the table for a key such as `node:Person`, at the snapshot's version."""
        found = self._tables.get(key)
        if found is None:
            found = self._tables[key] = self.snapshot.table(key)
        return found

    def place(self, key: str) -> tuple[str, str, int]:
        """Return what identifies a table version uniquely across all roots."""
        found = self._places.get(key)
        if found is None:
            table = self.table(key)
            name = root_name(self.snapshot.store)
            found = self._places[key] = (name, table.location, table.version)
        return found

    def count(self, key: str) -> int:
        """Return the row count of a table from the manifest, without opening the table."""
        return self.snapshot.tables[key].rows

    def declared(self, key: str) -> Node | Edge:
        """Return the declaration for a table key."""
        kind, _, name = key.partition(":")
        found = self.catalog.node(name) if kind == "node" else self.catalog.edge(name)
        if found is None:
            raise InternalError(reason=f"the schema has no type for table {key}")
        return found

    def constant(self, value: plan.Value) -> Any:
        """Return the stored form of a constant or parameter."""
        if isinstance(value, plan.Constant):
            return value.value
        if isinstance(value, plan.Parameter):
            return self.params[value.name]
        raise InternalError(reason=f"{type(value).__name__} is not constant")

    def measure(self, operator: object, rows: int, began: float, note: str = "") -> None:
        """Record the measurements of an operator if tracing is enabled."""
        if self.trace is None:
            return
        seen = self.trace.setdefault(id(operator), Measured())
        seen.rows += rows
        seen.milliseconds += (perf_counter() - began) * 1000
        seen.runs += 1
        seen.note = note or seen.note
