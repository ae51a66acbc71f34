"""Find edges that stay deleted although the merge keeps the node that they were deleted with.

Deleting a node also deletes its edges. These deletions are ordinary changes, so resolving a conflict by keeping the
node does not restore its edges. This module finds such edges so that they can be reported.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

import pyarrow as pa

from omnigraph.lang.schema.catalog import Catalog, EdgeType
from omnigraph.values.table_key import TableKey

from .conflicts import EntityKey
from .decisions import Decisions, PropertyChoices
from .lost_edge_text import describe_lost_edge
from .table_merge import Choice, TableSides

_SIDES: tuple[Choice, Choice] = ("ours", "theirs")


class LostEdge(NamedTuple):
    """An edge that one side deleted along with `node`, and that stays deleted even though the merge keeps the node.

    `side` is the side that deleted the node and the edge.
    """

    key: TableKey
    id: str
    src: str
    dst: str
    node: str
    side: Choice

    def __str__(self) -> str:
        return describe_lost_edge(self.key.type_name, self.id, (self.src, self.dst), self.node)


def find_lost_edges(
    catalog: Catalog, sides_of: Callable[[TableKey], TableSides], decisions: Decisions
) -> tuple[LostEdge, ...]:
    """Return the edges that stay deleted although a decision keeps one of their nodes, sorted by type and id."""
    edges_found: list[LostEdge] = []
    for side in _SIDES:
        stays_by_node = _decided_deletions(side, sides_of, decisions)
        for edge_type in catalog.edges if stays_by_node else ():
            edges_found += _lost_edges_of_type(edge_type, side, stays_by_node, sides_of, decisions)
    return tuple(sorted(edges_found))


def _decided_deletions(
    side: Choice, sides_of: Callable[[TableKey], TableSides], decisions: Decisions
) -> dict[TableKey, dict[str, bool]]:
    """For each node that a side deleted and that has a decision, return whether the merge keeps the node."""
    stays_by_node: dict[TableKey, dict[str, bool]] = {}
    for (table_key, node_id), decision in decisions.items():
        if table_key.is_edge or isinstance(decision, PropertyChoices):  # neither side deleted a node
            continue
        if sides_of(table_key).is_deleted_on(side, node_id):
            row = decision if isinstance(decision, pa.Table) else sides_of(table_key).row_on(decision, node_id)
            stays_by_node.setdefault(table_key, {})[node_id] = row is not None
    return stays_by_node


def _lost_edges_of_type(
    edge_type: EdgeType,
    side: Choice,
    stays_by_node: Mapping[TableKey, Mapping[str, bool]],
    sides_of: Callable[[TableKey], TableSides],
    decisions: Decisions,
) -> Iterator[LostEdge]:
    endpoint_keys = {"src": TableKey.node(edge_type.source), "dst": TableKey.node(edge_type.target)}
    kept_nodes = {
        endpoint: {node_id for node_id, stays in stays_by_node.get(table_key, {}).items() if stays}
        for endpoint, table_key in endpoint_keys.items()
    }
    if not any(kept_nodes.values()):
        return
    table_key, edge_sides = TableKey.edge(edge_type.name), sides_of(TableKey.edge(edge_type.name))
    node_arrays = {endpoint: pa.array(sorted(node_ids), pa.string()) for endpoint, node_ids in kept_nodes.items()}
    for row in edge_sides.edges_deleted_only_on(side, node_arrays).select(["id", *endpoint_keys]).to_pylist():
        is_undecided = (table_key, row["id"]) not in decisions
        if is_undecided and all(
            _node_stays((endpoint_keys[endpoint], row[endpoint]), side, stays_by_node, sides_of)
            for endpoint in endpoint_keys
        ):
            node = next(row[endpoint] for endpoint in endpoint_keys if row[endpoint] in kept_nodes[endpoint])
            yield LostEdge(table_key, row["id"], row["src"], row["dst"], node, side)


def _node_stays(
    node_key: EntityKey,
    side: Choice,
    stays_by_node: Mapping[TableKey, Mapping[str, bool]],
    sides_of: Callable[[TableKey], TableSides],
) -> bool:
    table_key, node_id = node_key
    decided_stay = stays_by_node.get(table_key, {}).get(node_id)
    return decided_stay if decided_stay is not None else not sides_of(table_key).is_deleted_on(side, node_id)
