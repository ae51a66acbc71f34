"""Expansion: from a bound variable along edges to new nodes.

Owns the semantics of a traversal: a set of targets per input row, shortest distances within hop
bounds, self-loops, and one row per edge if the edge is named. Finding neighbours is left to
`adjacency`.
"""

from collections.abc import Sequence

import numpy as np

from omnigraph.lang.query import plan

from .adjacency import Adjacency, Array, OneWay, distinct_pairs
from .context import Context
from .filter import keep
from .neighbours import adjacency
from .rows import NULL, Binding, Ids, Mask, Rows
from .scan import row_ids

_DENSE = 16  # a mask over all row ids beats sorting if the range is at most this many times larger
_MOST = 2  # if the pairs exceed this fraction (1/2) of the target nodes, filter all nodes at once
_WHOLE = 4  # restrict whole lists if a walk follows at least this fraction (1/4) of the edges
_FEW = 4  # up to this many starts are walked one by one
_PAIR = 40  # peak bytes per pair while it is built: positions, list positions, neighbours


def expand(context: Context, rows: Rows, op: plan.Expand) -> Rows:
    """Join each row with every node it reaches that passes `target_filters`."""
    source = rows[op.source]
    start = sources_of(context, source, op)
    if op.edge_variable is not None:
        found = _expand_edges(context, rows, op, start)
    else:
        positions, targets = reached(context, start, op, filtered=True)
        added = {} if op.target is None else {op.target: nodes_of(op, targets)}
        context.meter.charge(len(positions) * (rows.width + 8))
        return rows.joined(positions, added)
    return keep(context, found, op.target_filters)


def sources_of(context: Context, source: Binding, op: plan.Expand) -> Ids:
    """Return the row ids that edges start from; null where the variable has another type."""
    edge = context.catalog.edge(op.steps[0].edge_type)
    if edge is None:
        return np.full(len(source.ids), NULL, np.int64)
    key = f"node:{edge.target if op.steps[0].direction == 'in' else edge.source}"
    if source.types == (key,):
        return source.ids
    return np.where(source.of_type(key), source.ids, NULL)


def reached(
    context: Context, start: Ids, op: plan.Expand, *, filtered: bool = False
) -> tuple[Ids, Ids]:
    """Return (positions into `start_ids`, nodes): the set reached from each start within bounds.

    With `apply_filters`, only nodes that pass the target filters of the expansion.
    """
    tested = filtered and bool(op.target_filters) and op.target is not None
    ways = [adjacency(context, step.edge_type, step.direction, len(start)) for step in op.steps]
    if op.max_hops == 1 or not _chains(context, op):
        if op.min_hops > 1:
            return np.empty(0, np.int64), np.empty(0, np.int64)
        many = sum(int(one.degrees(start).sum()) for one in ways)
        passes = None
        if tested and many > context.count(f"node:{op.target_type}") // _MOST:
            tested, passes = False, _passes(context, op)
            thin = [_thin(context, one, passes, many) for one in ways]
            passes = (
                passes if any(one is two for one, two in zip(thin, ways, strict=True)) else None
            )
            ways = thin
            many = sum(int(one.degrees(start).sum()) for one in ways)
        pairs = _step(context, ways, start, many, passes)
    else:
        distinct, places = np.unique(start, return_inverse=True)
        walk = _walk_few if len(distinct) <= _FEW and _size(ways) else _walk
        found = walk(context, ways, distinct, op.min_hops, op.max_hops)
        pairs = _spread(context, *found, places, len(distinct))
    return _thinned(context, op, *pairs) if tested else pairs


def _chains(context: Context, op: plan.Expand) -> bool:
    """Return whether a second hop can follow the first: only within one node type."""
    edge = context.catalog.edge(op.steps[0].edge_type)
    return edge is not None and edge.source == edge.target


def _passes(context: Context, op: plan.Expand) -> Mask:
    """Return a mask by row id of target nodes that pass the filters; its last entry is False."""
    rows = row_ids(context, f"node:{op.target_type}", op.target_filters)
    found = np.zeros(int(rows.max()) + 2 if len(rows) else 1, np.bool_)
    found[rows] = True
    return found


def _thin(context: Context, way: Adjacency, passes: Mask, many: int) -> Adjacency:
    """Restrict the lists to accepted nodes if a walk follows most edges; cached for later walks."""
    if not isinstance(way, OneWay) or many * _WHOLE < len(way.lists.values):
        return way
    made: list[tuple[OneWay, Mask, OneWay]] = context.ways.setdefault("thinned", [])
    for whole, same, thin in made:
        if whole is way and np.array_equal(same, passes):
            return thin
    context.meter.charge(len(way.lists.values) * 9)
    thin = OneWay(way.lists.thinned(passes))
    made.append((way, passes, thin))
    return thin


def _step(
    context: Context,
    ways: Sequence[Adjacency],
    rows: Ids,
    many: int | None = None,
    passes: Mask | None = None,
) -> tuple[Ids, Ids]:
    """Return the set of neighbours of each source over all adjacencies."""
    if many is None:
        many = sum(int(one.degrees(rows).sum()) for one in ways)
    context.meter.charge(many * _PAIR)
    parts = [one.expand(rows, passes) for one in ways]
    if len(parts) == 1:
        return parts[0]
    return distinct_pairs(
        np.concatenate([one for one, _ in parts]), np.concatenate([one for _, one in parts])
    )


def _walk(
    context: Context, ways: Sequence[Adjacency], starts: Ids, low: int, high: int
) -> tuple[Ids, Ids]:
    """Walk from all starts at once; return the nodes whose shortest distance is within bounds.

    A node with a self-loop that was reached one hop before `min_hops` is emitted through its loop.
    """
    owners = np.arange(len(starts), dtype=np.int64)
    known = starts >= 0
    owners, frontier = owners[known], starts[known]
    seen = (owners, frontier)
    emitted: list[tuple[Ids, Ids]] = []
    for distance in range(1, high + 1):
        if distance == low:
            looped = _loops(ways, frontier)
            emitted.append((owners[looped], frontier[looped]))
        positions, nodes = _step(context, ways, frontier)
        owners, frontier = _without(distinct_pairs(owners[positions], nodes), seen)
        if len(frontier) == 0:
            break
        seen = _merged(seen, (owners, frontier))
        if distance >= low:
            emitted.append((owners, frontier))
        context.meter.check()
    empty = np.empty(0, np.int64)
    first = [one for one, _ in emitted] or [empty]
    second = [one for _, one in emitted] or [empty]
    return np.concatenate(first), np.concatenate(second)


def _walk_few(
    context: Context, ways: Sequence[Adjacency], starts: Ids, low: int, high: int
) -> tuple[Ids, Ids]:
    """Walk from one start after another, with a mask of the nodes seen so far."""
    found = [_walk_one(context, ways, int(start), low, high) for start in starts]
    owners = np.repeat(np.arange(len(found), dtype=np.int64), [len(one) for one in found])
    return owners, np.concatenate([np.empty(0, np.int64), *found])


def _walk_one(context: Context, ways: Sequence[Adjacency], start: int, low: int, high: int) -> Ids:
    size = _size(ways)
    if not 0 <= start < size:
        return np.empty(0, np.int64)
    seen = np.zeros(size, np.bool_)
    seen[start] = True
    frontier = np.array([start], np.int64)
    emitted = [np.empty(0, np.int64)]
    for distance in range(1, high + 1):
        if distance == low:
            emitted.append(frontier[_loops(ways, frontier)])
        many = sum(int(one.degrees(frontier).sum()) for one in ways)
        context.meter.charge(many * 16)
        near = np.concatenate([one.union(frontier) for one in ways])
        context.meter.release(many * 16)
        frontier = _unseen(near, seen)
        if len(frontier) == 0:
            break
        seen[frontier] = True
        if distance >= low:
            emitted.append(frontier)
    return np.concatenate(emitted)


def _unseen(near: Array, seen: Mask) -> Ids:
    """Return the distinct neighbours that were not seen yet, sorted."""
    if len(near) * _DENSE > len(seen):
        marked = np.zeros(len(seen), np.bool_)
        marked[near] = True
        marked &= ~seen
        return np.flatnonzero(marked)
    return np.unique(near[~seen[near]]).astype(np.int64, copy=False)


def _size(ways: Sequence[Adjacency]) -> int:
    """Return an upper bound of all reachable row ids; 0 if unknown."""
    return max(one.size for one in ways) if all(one.size for one in ways) else 0


def _loops(ways: Sequence[Adjacency], nodes: Ids) -> Ids:
    found = np.zeros(len(nodes), np.bool_)
    for one in ways:
        found |= one.contains(nodes, nodes)
    return np.flatnonzero(found)


def _without(pairs: tuple[Ids, Ids], known: tuple[Ids, Ids]) -> tuple[Ids, Ids]:
    """Return the new pairs that are not among the known pairs; both inputs are sorted."""
    mine, theirs = _keys(*pairs), _keys(*known)
    place = np.searchsorted(theirs, mine)
    place[place == len(theirs)] = 0
    fresh = theirs[place] != mine if len(theirs) else np.ones(len(mine), np.bool_)
    return pairs[0][fresh], pairs[1][fresh]


def _merged(first: tuple[Ids, Ids], second: tuple[Ids, Ids]) -> tuple[Ids, Ids]:
    return distinct_pairs(
        np.concatenate([first[0], second[0]]), np.concatenate([first[1], second[1]])
    )


def _keys(owners: Ids, nodes: Ids) -> Ids:
    return (owners << 32) | nodes


def _spread(context: Context, owners: Ids, nodes: Ids, places: Ids, count: int) -> tuple[Ids, Ids]:
    """Repeat the nodes reached from each distinct start for every position with this start."""
    from .adjacency import Lists

    order = np.lexsort((nodes, owners))
    starts = np.zeros(count + 1, np.int64)
    np.cumsum(np.bincount(owners, minlength=count), out=starts[1:])
    lists = Lists(starts, nodes[order])
    context.meter.charge(int(lists.bounds(places)[1].sum()) * _PAIR)
    return lists.of(places)


def _expand_edges(context: Context, rows: Rows, op: plan.Expand, start: Ids) -> Rows:
    """Return one row per edge; an alternation concatenates the edges of its types."""
    parts = []
    for step in op.steps:
        way = adjacency(context, step.edge_type, step.direction, len(start), edges=True)
        context.meter.charge(int(way.edge_degrees(start).sum()) * _PAIR)
        parts.append(way.expand_edges(start))
    positions = np.concatenate([one[0] for one in parts])
    targets = np.concatenate([one[1] for one in parts])
    edges = np.concatenate([one[2] for one in parts])
    types = tuple(f"edge:{step.edge_type}" for step in op.steps)
    kinds = np.repeat(np.arange(len(parts), dtype=np.int16), [len(one[0]) for one in parts])
    added = {str(op.edge_variable): Binding(types, edges, kinds if len(types) > 1 else None)}
    if op.target is not None:
        added[op.target] = nodes_of(op, targets)
    context.meter.charge(len(positions) * (rows.width + 8 * len(added)))
    return rows.joined(positions, added)


def nodes_of(op: plan.Expand, targets: Ids) -> Binding:
    """Return the nodes emitted by an expansion as a variable binding."""
    return Binding((f"node:{op.target_type}",), targets)


def _thinned(context: Context, op: plan.Expand, positions: Ids, targets: Ids) -> tuple[Ids, Ids]:
    """Return the pairs whose target passes the filters; each node is tested once."""
    if len(targets) == 0:
        return positions, targets
    size = int(targets.max()) + 1
    if size > _DENSE * len(targets):
        distinct = np.unique(targets)
    else:
        seen = np.zeros(size, np.bool_)
        seen[targets] = True
        distinct = np.flatnonzero(seen)
    name = str(op.target)
    kept = keep(context, Rows.of({name: nodes_of(op, distinct)}), op.target_filters)[name].ids
    if len(kept) == len(distinct):
        return positions, targets
    passes = np.zeros(size, np.bool_)
    passes[kept] = True
    chosen = passes[targets]
    return positions[chosen], targets[chosen]
