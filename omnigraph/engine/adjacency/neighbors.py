"""Choose how to find neighbors: use existing lists, probe an index, or build new lists.

This module also defines the key that identifies an edge type's lists: the exact versions of the edge table and of both
endpoint tables. The choice must never affect which neighbors are returned.
"""

import os
from collections.abc import Callable

from omnigraph.engine.environment import Variables
from omnigraph.engine.execution_context import ExecutionContext
from omnigraph.engine.query_caches import caches_of
from omnigraph.errors import ConfigError, InternalError
from omnigraph.lang.query.plan import Direction
from omnigraph.values.table_key import TableKey

from .adjacency import Adjacency, DirectedAdjacency, UndirectedAdjacency
from .edge_probe import BudgetedProbe, EdgeTableProbe
from .probe_cost import choose_budget
from .topology import EdgeTables, Topology, build_topology
from .topology_cache import MIN_CACHED_EDGES, TopologyKey, get_or_build, load_or_derive, save_topology

_MODE_VARIABLE = Variables("OMNIGRAPH_TRAVERSAL_MODE")


def choose_adjacency(
    context: ExecutionContext, edge_type: str, direction: Direction, expected_sources: int, *, with_edges: bool = False
) -> Adjacency:
    """Return an adjacency for an edge type.

    With `with_edges`, the adjacency also provides the edges themselves. The adjacency is chosen once per execution, and
    later calls reuse it.
    """
    cache_key = (edge_type, direction, with_edges)
    if cache_key not in context.adjacency_cache:
        context.adjacency_cache[cache_key] = _build_adjacency(
            context, edge_type, direction, expected_sources, with_edges=with_edges
        )
    adjacency: Adjacency = context.adjacency_cache[cache_key]
    return adjacency


def _build_adjacency(
    context: ExecutionContext, edge_type: str, direction: Direction, expected_sources: int, *, with_edges: bool
) -> Adjacency:
    def load_lists() -> Adjacency:
        return _list_adjacency(context, edge_type, direction, with_edges=with_edges)

    forced_mode = traversal_mode()
    if forced_mode != "indexed":
        cached_adjacency = _adjacency_in_memory(context, edge_type, direction, with_edges=with_edges)
        if cached_adjacency is not None:
            return cached_adjacency
    if forced_mode == "csr" or (forced_mode is None and _has_cheap_lists(context, edge_type, with_edges=with_edges)):
        return load_lists()
    topology_key = topology_key_of(context, edge_type)
    probes = _directed_probes(topology_key.tables, direction)
    probe_adjacency = UndirectedAdjacency(*probes) if len(probes) == 2 else probes[0]
    if forced_mode == "indexed":
        return probe_adjacency
    probe_cost_key, family = ("probes", *topology_key.memory_key), ("probes", *topology_key.table_family)
    caches = caches_of(context)
    budget = choose_budget(probes, topology_key.tables, with_bags=with_edges)

    def has_budget_left(total_cost: float) -> bool:
        return total_cost <= budget.limit

    if not has_budget_left((caches.miss_costs.get(probe_cost_key) or 0) + budget.cost_of_keys(expected_sources)):
        return load_lists()
    return BudgetedProbe(
        probe_adjacency,
        load_lists,
        lambda count: has_budget_left(caches.add_miss_cost(probe_cost_key, budget.cost_of_keys(count), family)),
    )


def may_probe(context: ExecutionContext, edge_type: str) -> bool:
    """Return whether a traversal from a few rows would probe the endpoint index because no lists are in memory."""
    forced_mode = traversal_mode()
    if forced_mode is not None:
        return forced_mode == "indexed"
    cached_topology = caches_of(context).memory.get(topology_key_of(context, edge_type).memory_key)
    return cached_topology is None and context.row_count(TableKey.edge(edge_type)) > MIN_CACHED_EDGES


def topology_key_of(context: ExecutionContext, edge_type: str, *, bags: bool = False) -> TopologyKey:
    """Return the key that identifies an edge type's lists in the execution's snapshot."""
    edge = context.catalog.edge(edge_type)
    if edge is None:
        raise InternalError(reason=f"the schema has no edge type {edge_type}")
    tables = EdgeTables(
        context.table(TableKey.edge(edge.name)),
        context.table(TableKey.node(edge.source)),
        context.table(TableKey.node(edge.target)),
    )
    return TopologyKey(context.snapshot.store, tables, bags)


def _list_adjacency(
    context: ExecutionContext, edge_type: str, direction: Direction, *, with_edges: bool
) -> DirectedAdjacency | UndirectedAdjacency:
    sets = load_topology(context, edge_type)
    return _make_adjacency(sets, load_topology(context, edge_type, bags=True) if with_edges else None, direction)


def _adjacency_in_memory(
    context: ExecutionContext, edge_type: str, direction: Direction, *, with_edges: bool
) -> Adjacency | None:
    """Return an adjacency for the lists in memory, or None if there are none. No table is opened."""
    edge = context.catalog.edge(edge_type)
    if edge is None:
        return None
    table_keys = (TableKey.edge(edge_type), TableKey.node(edge.source), TableKey.node(edge.target))
    (root, edge_location, edge_version), source, target = map(context.table_identity, table_keys)
    versions = ((edge_location, edge_version), source[1:], target[1:])
    kinds = ("sets", "bags") if with_edges else ("sets",)
    topologies: list[Topology | None] = caches_of(context).memory.get_all(
        [(kind, root, edge_location, versions) for kind in kinds]
    )
    if topologies[0] is None or topologies[-1] is None:
        return None
    return _make_adjacency(topologies[0], topologies[1] if with_edges else None, direction)


def _make_adjacency(
    sets: Topology, edge_bags: Topology | None, direction: Direction
) -> DirectedAdjacency | UndirectedAdjacency:
    outgoing = DirectedAdjacency(sets.by_source, edge_bags.by_source if edge_bags else None)
    incoming = DirectedAdjacency(sets.by_target, edge_bags.by_target if edge_bags else None)
    if direction == "both":
        return UndirectedAdjacency(outgoing, incoming)
    return outgoing if direction == "out" else incoming


def _directed_probes(tables: EdgeTables, direction: Direction) -> list[EdgeTableProbe]:
    """Return the probes that find the neighbors of a row: one probe for each direction in which edges are followed."""
    outgoing = EdgeTableProbe(tables.edge, tables.source, tables.target, "src", "dst")
    incoming = EdgeTableProbe(tables.edge, tables.target, tables.source, "dst", "src")
    if direction == "both":
        return [outgoing, incoming]
    return [outgoing if direction == "out" else incoming]


def _has_cheap_lists(context: ExecutionContext, edge_type: str, *, with_edges: bool) -> bool:
    """Return whether to use lists, because they already exist or cost no more to build than a few probes."""
    if context.row_count(TableKey.edge(edge_type)) <= MIN_CACHED_EDGES:
        return True
    bag_choices = (False, True) if with_edges else (False,)
    return all(_recall_topology(context, topology_key_of(context, edge_type, bags=bags)) for bags in bag_choices)


def load_topology(context: ExecutionContext, edge_type: str, *, bags: bool = False) -> Topology:
    """Return an edge type's lists, building them if they do not exist."""
    topology_key = topology_key_of(context, edge_type, bags=bags)
    caches = caches_of(context)

    def load_or_build() -> Topology:
        recalled = load_or_derive(caches, topology_key)
        return (
            recalled
            if recalled is not None
            else save_topology(caches, topology_key, build_topology(topology_key.tables, with_edge_ids=bags))
        )

    return _remember_behind_gate(context, topology_key, load_or_build) or load_or_build()


def _recall_topology(context: ExecutionContext, topology_key: TopologyKey) -> Topology | None:
    caches = caches_of(context)
    return _remember_behind_gate(context, topology_key, lambda: load_or_derive(caches, topology_key))


def _remember_behind_gate(
    context: ExecutionContext, topology_key: TopologyKey, build_lists: Callable[[], Topology | None]
) -> Topology | None:
    caches = caches_of(context)
    cached_topology: Topology | None = caches.memory.get(topology_key.memory_key)
    if cached_topology is not None:
        return cached_topology
    # Enter the gate before taking the lock. A thread that waited for the gate while holding the lock would block
    # queries that have already been admitted.
    context.meter.enter_gate()
    return get_or_build(caches, topology_key, build_lists)


def traversal_mode() -> str | None:
    """Return the traversal mode: `indexed` disables lists, `csr` disables probes, and None allows both."""
    if _MODE_VARIABLE.current() == (None,):
        return None
    setting = os.environ.get("OMNIGRAPH_TRAVERSAL_MODE") or None
    if setting not in (None, "indexed", "csr"):
        raise ConfigError(f"OMNIGRAPH_TRAVERSAL_MODE must be 'indexed' or 'csr', not '{setting}'")
    return setting
