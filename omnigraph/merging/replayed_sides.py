"""One table in a replay across schema changes: the replayed entities, and lookups for all others.

A conflict may involve entities that the replayed commit did not change, such as a node that the branch deleted and that
a replayed edge refers to. This module finds their rows and converts them to the branch's schema. An entity with a value
that does not fit this schema counts as unchanged, so a decision about it has no effect.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

import pyarrow as pa

from omnigraph.history.matched_types import TypeTransition
from omnigraph.history.missing_files import explain_missing_files
from omnigraph.history.snapshot import Snapshot
from omnigraph.storage.find_rows import find

from .fitting_rows import convert_fitting_rows, exclude_rows
from .lookup_sides import LookupSides, VersionRows
from .table_merge import Choice, changed_ids

OptionalState = tuple[Snapshot, TypeTransition | None]  # None if the state does not have the type
_EDGE_SCHEMA = pa.schema([(column, pa.string()) for column in ("id", "src", "dst")])


@dataclass(frozen=True)
class ReplayedSides(LookupSides):
    """The changes to a table in a replay. `ours` contains only entities that the replayed commit changed.

    `versions` are the base, the target and the replayed state.
    """

    versions: tuple[OptionalState, OptionalState, OptionalState] = field(kw_only=True, compare=False)

    def find_versions(self, condition: Mapping[str, pa.Array]) -> VersionRows:
        """Return the rows that meet a condition, without the entities that do not fit the target's schema."""
        base, target, source = (self._find_fitting(state, condition) for state in self.versions)
        misfit_ids = pa.concat_arrays([base[1], target[1], source[1]])
        return (
            exclude_rows(base[0], misfit_ids),
            exclude_rows(target[0], misfit_ids),
            exclude_rows(source[0], misfit_ids),
        )

    def edges_deleted_only_on(self, side: Choice, nodes_by_endpoint: Mapping[str, pa.Array]) -> pa.Table:
        """Return the edges at the given nodes that `side` deleted and the other side left unchanged.

        Edges that the target deleted have only the columns `id`, `src` and `dst`, because their values are not needed.
        """
        if side == "theirs":
            return super().edges_deleted_only_on(side, nodes_by_endpoint)
        base, target, _ = self.versions
        at_nodes = [
            _find_edges(base, {endpoint: node_ids}) for endpoint, node_ids in nodes_by_endpoint.items() if len(node_ids)
        ]
        base_edges = pa.concat_tables([_EDGE_SCHEMA.empty_table(), *at_nodes])
        base_edges = base_edges.group_by(_EDGE_SCHEMA.names).aggregate([])  # an edge may be found at both nodes
        remaining_edges = _find_edges(target, {"id": base_edges["id"].combine_chunks()})
        excluded_ids = pa.concat_arrays([remaining_edges["id"].combine_chunks(), changed_ids(self.theirs)])
        return exclude_rows(base_edges, excluded_ids)

    def _find_fitting(self, state: OptionalState, condition: Mapping[str, pa.Array]) -> tuple[pa.Table, pa.Array]:
        """Return a state's converted rows, sorted by id, and the ids of the rows that cannot be converted."""
        snapshot, transition = state
        if transition is None:
            return self.theirs.inserted.slice(0, 0), pa.array([], pa.string())
        table = snapshot.table(transition.old_key)
        with explain_missing_files(snapshot):
            rows = find(table, condition, table.schema.names)
        fitting_rows, misfit_ids = convert_fitting_rows(transition, rows)
        return fitting_rows.sort_by("id"), misfit_ids


def _find_edges(state: OptionalState, condition: Mapping[str, pa.Array]) -> pa.Table:
    """Return the ids and endpoints of a state's edges that meet a condition."""
    snapshot, transition = state
    if transition is None:
        return _EDGE_SCHEMA.empty_table()
    with explain_missing_files(snapshot):
        return find(snapshot.table(transition.old_key), condition, _EDGE_SCHEMA.names).cast(_EDGE_SCHEMA)
