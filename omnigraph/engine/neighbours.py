"""Which way to neighbours is taken: lists that are there, a few probes of an index, or new lists.

Owns the choice and the keys of the caches. Every way gives the same answers; lists are keyed by the
exact versions of the edge table and of both endpoint tables.
"""

import os
from dataclasses import dataclass
from typing import Any

from omnigraph.errors import ConfigError, InternalError
from omnigraph.lang.query.plan import Direction

from .adjacency import BothWays, Lists, OneWay
from .cache import Caches, shared_caches
from .context import Context
from .topology import Tables, Topology, build

_DIRECT = 100_000  # edges of a table that is read at once rather than probed
_KEYS = 1024  # keys in total up to which probes cost less than lists


@dataclass(frozen=True, slots=True)
class Way:
    """An edge type and the tables it joins, at the versions of one snapshot."""

    tables: Tables
    root: str

    def key(self, *, edges: bool) -> tuple[Any, ...]:
        """What the lists depend on, and nothing else."""
        parts = (self.tables.edge, self.tables.source, self.tables.target)
        versions = tuple((one.location, one.version) for one in parts)
        return ("bags" if edges else "sets", self.root, versions)


def adjacency(
    context: Context,
    edge_type: str,
    direction: Direction,
    expected_sources: int,
    *,
    edges: bool = False,
) -> OneWay | BothWays:
    """Neighbours along an edge type; with `edges` the edges themselves as well."""
    found = _topology(context, edge_type, edges=False)
    bags = _topology(context, edge_type, edges=True) if edges else None
    out = OneWay(found.out, bags.out if bags else None)
    back = OneWay(found.back, bags.back if bags else None)
    if direction == "both":
        return BothWays(out, back)
    return out if direction == "out" else back


def caches_of(context: Context) -> Caches:
    """The caches of an execution: its own, else those of the process."""
    return context.caches if isinstance(context.caches, Caches) else shared_caches()


def way_of(context: Context, edge_type: str) -> Way:
    """The tables of an edge type in the snapshot of an execution."""
    edge = context.catalog.edge(edge_type)
    if edge is None:
        raise InternalError(reason=f"the schema does not know edge type {edge_type}")
    tables = Tables(
        context.table(f"edge:{edge.name}"),
        context.table(f"node:{edge.source}"),
        context.table(f"node:{edge.target}"),
    )
    return Way(tables, context.snapshot.store.root.uri)


def _topology(context: Context, edge_type: str, *, edges: bool) -> Topology:
    way = way_of(context, edge_type)
    memory = caches_of(context).memory
    key = way.key(edges=edges)
    found: Topology | None = memory.get(key)
    if found is not None:
        return found
    context.meter.enter()
    return memory.make(key, lambda: build(way.tables, edges=edges), lambda one: one.nbytes)


def mode() -> str | None:
    """`OMNIGRAPH_TRAVERSAL_MODE`: `indexed` forbids lists, `csr` forbids probes."""
    given = os.environ.get("OMNIGRAPH_TRAVERSAL_MODE") or None
    if given not in (None, "indexed", "csr"):
        raise ConfigError(f"OMNIGRAPH_TRAVERSAL_MODE must be indexed or csr, not '{given}'")
    return given


__all__ = ["Lists", "Way", "adjacency", "caches_of", "way_of"]
