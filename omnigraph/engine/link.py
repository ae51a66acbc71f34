"""Expansions of which only the existence or the number of results matters.

Owns the tests for edges between bound variables and the weights of rows. Nothing is spelled out
here: lists are probed, and degrees multiplied.
"""

import numpy as np

from .context import Context
from .expand import expand, reached, sources_of
from .neighbours import adjacency
from .physical import Alone, Linked, Weigh
from .rows import NULL, Ids, Mask, Rows

_LARGEST = 1 << 62


def linked(context: Context, rows: Rows, op: Linked) -> Rows:
    """The rows whose two variables an edge joins (or, negated, the others)."""
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
    """The rows that have no neighbour at all."""
    return rows.filter(_degrees(context, rows, op.walk.source, op) == 0)


def weigh(context: Context, rows: Rows, op: Weigh) -> Rows:
    """The rows that have neighbours, each as often as it has some."""
    degrees = _degrees(context, rows, op.walk.source, op)
    kept: Mask = degrees > 0
    few = rows.filter(kept)
    degrees = degrees[kept] if few.count < rows.count else degrees
    if few.weights is not None and few.count and _too_many(few.weights, degrees):
        return expand(context, rows, op.walk)  # what no number can tell, memory cannot hold
    return few.weighted(degrees)


def _too_many(weights: Ids, degrees: Ids) -> bool:
    return int(weights.max()) * int(degrees.max()) > _LARGEST


def _degrees(context: Context, rows: Rows, source: str, op: Alone | Weigh) -> Ids:
    start = sources_of(context, rows[source], op.walk)
    ways = [adjacency(context, one.edge_type, one.direction, len(start)) for one in op.walk.steps]
    if len(ways) == 1:
        return ways[0].degrees(start)
    if isinstance(op, Alone):
        found: Ids = np.sum([one.degrees(start) for one in ways], axis=0, dtype=np.int64)
        return found
    positions, _ = reached(context, start, op.walk)
    return np.bincount(positions, minlength=len(start)).astype(np.int64)
