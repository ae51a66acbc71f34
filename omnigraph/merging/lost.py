"""Edges that were deleted with a node which the merge keeps.

Deleting a node also deletes its edges, and these deletions are changes of that side like any other:
keeping the node in a conflict does not restore them. They are found here to be reported.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import pyarrow as pa

from omnigraph.lang.schema.catalog import Catalog, Edge

from .conflicts import Entity
from .sides import Choice, Sides

Decided = Mapping[Entity, Any]  # a side, or a row
_SIDES: tuple[Choice, Choice] = ("ours", "theirs")


class LostEdge(NamedTuple):
    """An edge that is deleted though both nodes stay: one side deleted `node`, the merge keeps it.

    `side` is the one that deleted it.
    """

    key: str
    id: str
    src: str
    dst: str
    node: str
    side: Choice

    def __str__(self) -> str:
        name = self.key.partition(":")[2]
        return f"{name} '{self.id}' ({self.src} -> {self.dst}) was deleted with '{self.node}'"


def lost_edges(
    catalog: Catalog, sides: Callable[[str], Sides], decisions: Decided
) -> tuple[LostEdge, ...]:
    """Return the edges deleted with nodes that a decision keeps, by type and id."""
    found: list[LostEdge] = []
    for side in _SIDES:
        kept = _kept(side, sides, decisions)
        for edge in catalog.edges if kept else ():
            found += _of_type(edge, side, kept, sides, decisions)
    return tuple(sorted(found))


def _kept(
    side: Choice, sides: Callable[[str], Sides], decisions: Decided
) -> dict[str, dict[str, bool]]:
    """Nodes that a side deleted and a decision covers, with whether each stays."""
    found: dict[str, dict[str, bool]] = {}
    for (key, entity), what in decisions.items():
        if key.startswith("node:") and sides(key).gone_on(side, entity):
            row = what if isinstance(what, pa.Table) else sides(key).chosen(entity, what)
            found.setdefault(key, {})[entity] = row is not None
    return found


def _of_type(
    edge: Edge,
    side: Choice,
    kept: Mapping[str, Mapping[str, bool]],
    sides: Callable[[str], Sides],
    decisions: Decided,
) -> Iterator[LostEdge]:
    ends = {"src": f"node:{edge.source}", "dst": f"node:{edge.target}"}
    stay = {
        end: {n for n, stays in kept.get(key, {}).items() if stays} for end, key in ends.items()
    }
    if not any(stay.values()):
        return
    key, own = f"edge:{edge.name}", sides(f"edge:{edge.name}")
    nodes = {end: pa.array(sorted(names), pa.string()) for end, names in stay.items()}
    for row in own.only_gone_on(side, nodes).select(["id", *ends]).to_pylist():
        known = (key, row["id"]) not in decisions
        if known and all(_stays((ends[end], row[end]), side, kept, sides) for end in ends):
            node = next(row[end] for end in ends if row[end] in stay[end])
            yield LostEdge(key, row["id"], row["src"], row["dst"], node, side)


def _stays(
    node: Entity,
    side: Choice,
    kept: Mapping[str, Mapping[str, bool]],
    sides: Callable[[str], Sides],
) -> bool:
    key, entity = node
    known = kept.get(key, {}).get(entity)
    return known if known is not None else not sides(key).gone_on(side, entity)
