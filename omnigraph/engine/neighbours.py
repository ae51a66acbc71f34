"""Choice of the adjacency: existing lists, a few index probes, or newly built lists.

Owns the choice and the cache keys. Every choice must return the same neighbours; lists are keyed by
the exact versions of the edge table and of both endpoint tables.
"""

import os
from collections.abc import Callable

from omnigraph.errors import ConfigError, InternalError
from omnigraph.lang.query.plan import Direction

from .adjacency import Adjacency, BothWays, OneWay
from .cache import Caches, shared_caches
from .context import Context
from .probe import Probed, Sparing
from .recall import LEAST, Way, recall, remember, write
from .topology import Tables, Topology, build

_KEYS = 1024  # total probed keys up to which probes cost less than lists
_LEAST = 8  # minimum cost of a probe, in keys


def adjacency(
    context: Context,
    edge_type: str,
    direction: Direction,
    expected_sources: int,
    *,
    edges: bool = False,
) -> Adjacency:
    """Return the neighbours along an edge type; `with_edges` includes the edges themselves.

    Chosen once per execution: later requests reuse the same adjacency.
    """
    key = (edge_type, direction, edges)
    if key not in context.ways:
        context.ways[key] = _chosen(context, edge_type, direction, expected_sources, edges=edges)
    found: Adjacency = context.ways[key]
    return found


def _chosen(
    context: Context,
    edge_type: str,
    direction: Direction,
    expected_sources: int,
    *,
    edges: bool,
) -> Adjacency:
    def lists() -> Adjacency:
        return _by_lists(context, edge_type, direction, edges=edges)

    wanted = mode()
    if wanted == "csr" or (wanted is None and _is_at_hand(context, edge_type, edges=edges)):
        return lists()
    probed = _by_probes(context, edge_type, direction)
    if wanted == "indexed":
        return probed
    key = ("probes", *way_of(context, edge_type).key)
    caches = caches_of(context)
    if (caches.spent.get(key) or 0) + expected_sources > _frontier():
        return lists()
    return Sparing(
        probed, lists, lambda count: caches.spend(key, max(count, _LEAST)) <= _frontier()
    )


def may_probe(context: Context, edge_type: str) -> bool:
    """Return whether a walk from a few rows uses the endpoint index, as no lists are in memory."""
    wanted = mode()
    if wanted is not None:
        return wanted == "indexed"
    held = caches_of(context).memory.get(way_of(context, edge_type).key)
    return held is None and context.count(f"edge:{edge_type}") > LEAST


def way_of(context: Context, edge_type: str, *, bags: bool = False) -> Way:
    """Return the tables of an edge type in the snapshot of an execution."""
    edge = context.catalog.edge(edge_type)
    if edge is None:
        raise InternalError(reason=f"the schema has no edge type {edge_type}")
    tables = Tables(
        context.table(f"edge:{edge.name}"),
        context.table(f"node:{edge.source}"),
        context.table(f"node:{edge.target}"),
    )
    return Way(context.snapshot.store, tables, bags)


def _by_lists(
    context: Context, edge_type: str, direction: Direction, *, edges: bool
) -> OneWay | BothWays:
    found = topology(context, edge_type)
    bags = topology(context, edge_type, bags=True) if edges else None
    out = OneWay(found.out, bags.out if bags else None)
    back = OneWay(found.back, bags.back if bags else None)
    if direction == "both":
        return BothWays(out, back)
    return out if direction == "out" else back


def _by_probes(context: Context, edge_type: str, direction: Direction) -> Adjacency:
    tables = way_of(context, edge_type).tables
    out = Probed(tables.edge, tables.source, tables.target, "src", "dst")
    back = Probed(tables.edge, tables.target, tables.source, "dst", "src")
    if direction == "both":
        return BothWays(out, back)
    return out if direction == "out" else back


def _is_at_hand(context: Context, edge_type: str, *, edges: bool) -> bool:
    """Return whether lists are available, or cost no more than a few probes."""
    if context.count(f"edge:{edge_type}") <= LEAST:
        return True
    kinds = (False, True) if edges else (False,)
    return all(_recalled(context, way_of(context, edge_type, bags=one)) for one in kinds)


def topology(context: Context, edge_type: str, *, bags: bool = False) -> Topology:
    """Return the lists of an edge type: existing ones, or new ones."""
    way = way_of(context, edge_type, bags=bags)
    caches = caches_of(context)

    def make() -> Topology:
        found = recall(caches, way)
        return found if found is not None else write(caches, way, build(way.tables, edges=bags))

    return _gated(context, way, make) or make()


def _recalled(context: Context, way: Way) -> Topology | None:
    caches = caches_of(context)
    return _gated(context, way, lambda: recall(caches, way))


def _gated(context: Context, way: Way, make: Callable[[], Topology | None]) -> Topology | None:
    caches = caches_of(context)
    held: Topology | None = caches.memory.get(way.key)
    if held is not None:
        return held
    # Enter the gate before taking the lock: a lock holder that waits for the gate would block
    # queries that are already inside it.
    context.meter.enter()
    return remember(caches, way, make)


def caches_of(context: Context) -> Caches:
    """Return the caches of an execution: its own, or those of the process."""
    return context.caches if isinstance(context.caches, Caches) else shared_caches()


def mode() -> str | None:
    """Read `OMNIGRAPH_TRAVERSAL_MODE`: `indexed` forbids lists, `csr` forbids probes."""
    given = os.environ.get("OMNIGRAPH_TRAVERSAL_MODE") or None
    if given not in (None, "indexed", "csr"):
        raise ConfigError(f"OMNIGRAPH_TRAVERSAL_MODE must be indexed or csr, not '{given}'")
    return given


def _frontier() -> int:
    given = os.environ.get("OMNIGRAPH_EXPAND_INDEXED_MAX_FRONTIER", "")
    return int(given) if given.isdecimal() else _KEYS
