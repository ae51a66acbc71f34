"""Look up single entities in a table on demand, in the snapshots that a merge compares.

This module caches the rows of single entities in the base and on both sides. Only decisions about conflicts require
these lookups. A subclass finds the rows and determines the changes that a merge takes without a decision.
"""

from abc import abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import pyarrow as pa

from omnigraph.history.diff import match_rows_by_id
from omnigraph.storage.value_equality import same_rows

from .table_merge import Choice, TableSides, find_row

VersionRows = tuple[pa.Table, pa.Table, pa.Table]  # rows of (base, ours, theirs), each sorted by id


@dataclass(frozen=True, slots=True)
class EntityStates:
    """An entity's row in the base and on each side, or None where the entity does not exist."""

    base: pa.Table | None
    ours: pa.Table | None
    theirs: pa.Table | None

    @property
    def is_changed(self) -> bool:
        """Whether either side changed the entity."""
        return not (_same_row(self.base, self.ours) and _same_row(self.base, self.theirs))

    def is_deleted_only_on(self, side: Choice) -> bool:
        """Return whether `side` deleted the entity and the other side left it unchanged."""
        side_row, opposite_row = (self.ours, self.theirs) if side == "ours" else (self.theirs, self.ours)
        return self.base is not None and side_row is None and _same_row(self.base, opposite_row)


@dataclass(frozen=True)
class LookupSides(TableSides):
    """The changes that each side made to a table. Entities that are in neither `ours` nor `theirs` are looked up."""

    entity_states: dict[str, EntityStates] = field(kw_only=True, default_factory=dict, compare=False)

    @abstractmethod
    def find_versions(self, condition: Mapping[str, pa.Array]) -> VersionRows:
        """Return the rows that meet a condition, in the base and on both sides."""

    def load_entities(self, entity_ids: Iterable[str]) -> None:
        """Load entities in a single lookup, before they are requested one by one."""
        missing_ids = sorted({*entity_ids} - {*self.entity_states})
        if missing_ids:
            version_rows = self.find_versions({"id": pa.array(missing_ids, pa.string())})
            for entity_id in missing_ids:
                self.entity_states[entity_id] = EntityStates(*(find_row(rows, entity_id) for rows in version_rows))

    def row_on(self, side: Choice, entity_id: str) -> pa.Table | None:
        """Return an entity's row on one side.

        The result is None if that side does not have the entity, or if neither side changed it.
        """
        if super().is_changed(entity_id):
            return super().row_on(side, entity_id)
        states = self._states_of(entity_id)
        if not states.is_changed:
            return None
        return states.ours if side == "ours" else states.theirs

    def is_changed(self, entity_id: str) -> bool:
        """Return whether either side changed an entity."""
        return super().is_changed(entity_id) or self._states_of(entity_id).is_changed

    def base_row(self, entity_id: str) -> pa.Table | None:
        """Return an entity's base row, or None if the entity is new or neither side changed it."""
        if super().is_changed(entity_id):
            return super().base_row(entity_id)
        states = self._states_of(entity_id)
        return states.base if states.is_changed else None

    def changed_edges_from(self, source_id: str) -> list[str]:
        """Return the ids of a source node's edges that either side added, changed or removed."""
        base_rows, *side_row_sets = self.find_versions({"src": pa.array([source_id], pa.string())})
        edge_ids: set[str] = set()
        for item in (
            match_rows_by_id(self.table_key, base_rows, side_rows, base_rows.schema) for side_rows in side_row_sets
        ):
            for changed_rows in (item.inserted, item.updated_after, item.deleted):
                edge_ids |= set(changed_rows["id"].to_pylist())
        return sorted(edge_ids)

    def _states_of(self, entity_id: str) -> EntityStates:
        self.load_entities([entity_id])
        return self.entity_states[entity_id]


def _same_row(row: pa.Table | None, other_row: pa.Table | None) -> bool:
    if row is None or other_row is None:
        return row is other_row
    return bool(same_rows(row, other_row).all())
