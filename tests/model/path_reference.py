"""Reference paths: every walk is tried, and those that a mode allows are kept.

Part of the oracle of the engine: it enumerates where the engine searches, and compares whole paths.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from .dictionary_graph import Entity, Value

Neighbors = Callable[[Entity], list[tuple[Entity, Entity]]]
Cost = Callable[[Entity], Value]


@dataclass(frozen=True)
class FoundPath:
    """A path from its first node to its last, with the sum of the costs of its edges."""

    nodes: tuple[Entity, ...]
    edges: tuple[Entity, ...] = ()
    cost: float = 0.0

    @property
    def place(self) -> tuple[object, ...]:
        """Where the path stands in an order: by its length, then by ids."""
        nodes = [own for _, own in self.nodes]
        return (len(self.edges), nodes, [(own, kind) for kind, own in self.edges])

    def turned(self) -> "FoundPath":
        return FoundPath(self.nodes[::-1], self.edges[::-1], self.cost)


def found_paths(
    start: Entity, mode: str, hops: tuple[int, int], neighbors: Neighbors, cost: Cost | None, *, backward: bool
) -> list[FoundPath]:
    """The paths of a mode from a node, each as it is written, from its source to its target."""
    walks = [one.turned() if backward else one for one in _walks(start, hops[1], neighbors, cost)]

    def end(one: FoundPath) -> Entity:
        return one.nodes[0 if backward else -1]

    if mode in ("any shortest", "all shortest"):
        best: dict[Entity, list[FoundPath]] = {}
        for one in sorted(walks, key=lambda one: (one.cost, one.place)):
            best.setdefault(end(one), []).append(one)
        walks = [
            one
            for ranked in best.values()
            for one in (ranked[:1] if mode == "any shortest" else ranked)
            if len(one.edges) == len(ranked[0].edges)
        ]
    return [one for one in walks if len(one.edges) >= hops[0] and _allowed(mode, one)]


def _walks(start: Entity, high: int, neighbors: Neighbors, cost: Cost | None) -> Iterator[FoundPath]:
    pending = [FoundPath((start,))]
    while pending:
        one = pending.pop()
        yield one
        if len(one.edges) == high:
            continue
        for edge, node in neighbors(one.nodes[-1]):
            price = 0 if cost is None else cost(edge)
            if price is not None:
                pending.append(FoundPath((*one.nodes, node), (*one.edges, edge), one.cost + price))


def _allowed(mode: str, one: FoundPath) -> bool:
    if mode == "trail":
        return len(set(one.edges)) == len(one.edges)
    if mode == "acyclic":
        return len(set(one.nodes)) == len(one.nodes)
    if mode == "simple":
        inner = one.nodes[1:] if one.edges and one.nodes[0] == one.nodes[-1] else one.nodes
        return len(set(inner)) == len(inner)
    return True


def of_path(function: str, path: FoundPath) -> Value:
    """What a function reads from a path."""
    match function:
        case "length":
            return len(path.edges)
        case "cost":
            return float(path.cost)
    return tuple(own for _, own in (path.nodes if function == "nodes" else path.edges))
