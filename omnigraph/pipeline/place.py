"""A graph as executors open it: the root with its settings, and the tables at pinned versions.

Travels inside the functions that Spark ships, because plans and logs must not show it; secrets in
it must never appear in its `repr`. Each worker process opens a root once.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache

from omnigraph.lang.schema.catalog import Edge, Node
from omnigraph.lang.schema.ir import SchemaIR
from omnigraph.storage.store import Durability, Store, open_store
from omnigraph.storage.table import Table, open_table

Pinned = tuple[str, int]  # location and Lance version


@dataclass(frozen=True, slots=True)
class Place:
    """A graph at one version, with what an executor needs to open it."""

    uri: str
    tables: Mapping[str, Pinned]
    durability: Durability = "fsync"
    options: tuple[tuple[str, str], ...] = field(default=(), repr=False)

    def store(self) -> Store:
        """Open the root, or return the cached store."""
        return _store(self.uri, self.durability, self.options)

    def table(self, key: str) -> Table:
        """Open a table at its pinned version."""
        return open_table(self.store(), *self.tables[key])


def place_of(store: Store, tables: Mapping[str, Pinned]) -> Place:
    """Describe a store and pinned table versions so that they can be shipped to executors."""
    options = () if store.root.local else tuple(sorted(store.root.options.items()))
    return Place(store.root.uri, dict(tables), store.durability, options)


def type_of(ir: SchemaIR, key: str) -> Node | Edge:
    """Return the type of a table key."""
    kind, _, name = key.partition(":")
    found: Node | Edge | None = ir.catalog.node(name) if kind == "node" else ir.catalog.edge(name)
    assert found is not None  # noqa: S101 - keys come from a manifest with the same schema
    return found


@lru_cache(maxsize=8)
def _store(uri: str, durability: Durability, options: tuple[tuple[str, str], ...]) -> Store:
    return open_store(uri, durability=durability, options=dict(options) or None)
