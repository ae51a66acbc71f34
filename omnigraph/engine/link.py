"""Shortcuts for expansions of which only the existence, number or set of results matters.

Owns edge tests between bound variables, row weights and node sets. Never materializes a row per
neighbour: lists are probed or concatenated, and degrees multiplied.
"""

import numpy as np

from omnigraph.lang.query import plan

from .adjacency import Array
from .context import Context
from .expand import expand, nodes_of, reached, sources_of
from .neighbours import adjacency
from .physical import Alone, Linked, Reach, Weigh
from .rows import NULL, Ids, Mask, Rows

_LARGEST = 1 << 62
_NODE = 16  # peak bytes per node while it is built


def linked(context: Context, rows: Rows, op: Linked) -> Rows:
    """Return the rows whose two variables are joined by an edge (negated: those that are not)."""
    source = sources_of(context, rows[op.walk.source], op.walk)
    other = rows[op.right]
    key = f"node:{op.walk.target_type}"
    target = other.ids if other.types == (key,) else np.where(other.of_type(key), other.ids, NULL)
    found = np.zeros(rows.count, np.bool_)
    for step in op.walk.steps:
        way = adjacency(context, step.edge_type, step.direction, rows.count)
        found |= way.contains(source, target)
    return rows.filter(~found if op.negated else found)


def alone(context: Context, rows: Rows, op: Alone) -> Rows:
    """Return the rows that have no neighbours."""
    return rows.filter(_degrees(context, rows, op.walk.source, op) == 0)


def weigh(context: Context, rows: Rows, op: Weigh) -> Rows:
    """Return the rows that have neighbours, each weighted by its number of neighbours."""
    degrees = _degrees(context, rows, op.walk.source, op)
    kept: Mask = degrees > 0
    few = rows.filter(kept)
    degrees = degrees[kept] if few.count < rows.count else degrees
    if few.weights is not None and few.count and _too_many(few.weights, degrees):
        return expand(context, rows, op.walk)  # the weights overflow: let the memory limit decide
    return few.weighted(degrees)


def reach(context: Context, rows: Rows, op: Reach) -> Rows:
    """Return only the nodes that an expansion reaches; a few may be repeated."""
    walk = op.walk
    start = sources_of(context, rows[walk.source], walk)
    if walk.max_hops == 1 and walk.min_hops <= 1 and not walk.target_filters:
        near = _near(context, start, walk)
    else:
        near = reached(context, start, walk, filtered=True)[1]
    if len(near) > context.count(f"node:{walk.target_type}"):
        near = _distinct(near)  # with few repetitions a set costs more than it saves
    return Rows.of({str(walk.target): nodes_of(walk, near.astype(np.int64, copy=False))})


def _near(context: Context, start: Ids, walk: plan.Expand) -> Array:
    """Return the neighbours of all starts, list after list."""
    parts = []
    for step in walk.steps:
        way = adjacency(context, step.edge_type, step.direction, len(start))
        context.meter.charge(int(way.degrees(start).sum()) * _NODE)
        parts.append(way.union(start))
    return parts[0] if len(parts) == 1 else np.concatenate(parts)


def _distinct(near: Array) -> Ids:
    """Return each node once, in order."""
    seen = np.zeros(int(near.max()) + 1, np.bool_)
    seen[near] = True
    return np.flatnonzero(seen)


def _too_many(weights: Ids, degrees: Ids) -> bool:
    return int(weights.max()) * int(degrees.max()) > _LARGEST


def _degrees(context: Context, rows: Rows, source: str, op: Alone | Weigh) -> Ids:
    start = sources_of(context, rows[source], op.walk)
    ways = [
        adjacency(context, step.edge_type, step.direction, len(start)) for step in op.walk.steps
    ]
    if len(ways) == 1:
        return ways[0].degrees(start)
    if isinstance(op, Alone):
        found: Ids = np.sum([one.degrees(start) for one in ways], axis=0, dtype=np.int64)
        return found
    positions, _ = reached(context, start, op.walk)
    return np.bincount(positions, minlength=len(start)).astype(np.int64)
