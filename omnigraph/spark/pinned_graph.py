"""A graph in a form that executors can open: the root with its settings, and tables at pinned versions.

A pinned graph is captured in the functions that Spark sends to executors, so that it never appears in query plans or
logs. Its secrets must never appear in its `repr`. Each worker process opens a root once.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import pyarrow as pa

from omnigraph.storage.find_rows import find, read_rows
from omnigraph.storage.store import Durability, Store, open_store
from omnigraph.storage.table import Table, open_table

PinnedVersion = tuple[str, int]  # (location, Lance version)


@dataclass(frozen=True, slots=True)
class PinnedGraph:
    """A graph at one version, with everything that an executor needs to open it."""

    uri: str
    tables: Mapping[str, PinnedVersion]
    durability: Durability = "fsync"
    options: tuple[tuple[str, str], ...] = field(default=(), repr=False)

    def store(self) -> Store:
        """Open the root, or return the store that this process has already opened."""
        return _open_cached_store(self.uri, self.durability, self.options)

    def table(self, name: str) -> Table:
        """Open a table at its pinned version; `name` is one of the names in `tables`, usually a table key."""
        return open_table(self.store(), *self.tables[name])


@dataclass(frozen=True, slots=True)
class PinnedRowLookup:
    """Looks up stored rows at the pinned version."""

    pinned_graph: PinnedGraph

    def find(
        self,
        table_key: str,
        values_by_column: Mapping[str, pa.Array],
        columns: Sequence[str],
        *,
        with_row_ids: bool = False,
    ) -> pa.Table:
        """Find rows by column values."""
        return find(self.pinned_graph.table(table_key), values_by_column, columns, with_row_ids=with_row_ids)

    def scan(self, table_key: str, columns: Sequence[str]) -> Any:
        """Read all rows."""
        return read_rows(self.pinned_graph.table(table_key), columns)


def pin_graph(store: Store, tables: Mapping[str, PinnedVersion]) -> PinnedGraph:
    """Build a description of a store and its pinned tables that can be sent to executors."""
    options = () if store.root.is_local else tuple(sorted(store.root.options.items()))
    return PinnedGraph(store.root.uri, dict(tables), store.durability, options)


@lru_cache(maxsize=8)
def _open_cached_store(uri: str, durability: Durability, options: tuple[tuple[str, str], ...]) -> Store:
    return open_store(uri, durability=durability, storage_options=dict(options) or None)
