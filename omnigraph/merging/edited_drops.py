"""Find the values that one side wrote to a type or property that the other side has dropped since the base.

Such edits are found before the schemas are combined, because they turn the drop into a conflict. Tables are read only
if something was dropped. If the drop wins, the edits are listed as discarded changes.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np

from omnigraph.history.diff import content_differs, diff_table
from omnigraph.history.entities import TableChanges
from omnigraph.history.matched_types import find_transition
from omnigraph.history.merge_inputs import MergeInputs
from omnigraph.history.snapshot import Snapshot
from omnigraph.lang.schema.catalog import EdgeType, NodeType
from omnigraph.lang.schema.ir import SchemaIR
from omnigraph.lang.schema.merge import DroppedEdit
from omnigraph.records.frozen import record
from omnigraph.storage.arrow import table_key as key_of_type
from omnigraph.storage.value_equality import same_values
from omnigraph.values.table_key import TableKey

from .discarded_changes import DiscardedChange
from .table_merge import Choice


@record
class EditedDrop:
    """A dropped type or property, and the entities in which the other side has written values since the base.

    If `property_name` is None, the type was dropped, and `values` contains whole entities.
    """

    side: Choice
    table_key: TableKey
    type_id: int
    property_id: int | None
    property_name: str | None
    values: tuple[tuple[str, Any], ...]

    def to_dropped_edit(self) -> DroppedEdit:
        """Return the edit in the form that the schema merge accepts."""
        return DroppedEdit(self.side, self.type_id, self.property_id, len(self.values))

    def is_dropped_in(self, merged_ir: SchemaIR) -> bool:
        """Return whether the edit's type or property is missing from the merged schema."""
        for identity in merged_ir.type_identities:
            if identity.type_id == self.type_id:
                property_ids = {number for _, number in identity.property_ids}
                return self.property_id is not None and self.property_id not in property_ids
        return True

    def discarded_changes(self) -> Iterator[DiscardedChange]:
        """Yield the edits as changes that the merge discards."""
        kind, type_name = self.table_key.kind, self.table_key.type_name
        for entity_id, value in self.values:
            part = ("entity", None, value) if self.property_name is None else ("property", self.property_name, value)
            yield DiscardedChange(kind, type_name, entity_id, self.side, *part)


def find_edited_drops(merge_inputs: MergeInputs) -> tuple[EditedDrop, ...]:
    """Return the edits of both sides, with our edits first, each side ordered by type."""
    target, source = merge_inputs.target_snapshot, merge_inputs.source_snapshot
    return tuple(
        edited_drop
        for side, keeper, dropper in (("ours", target, source), ("theirs", source, target))
        for edited_drop in _edited_drops_of(merge_inputs.base_snapshot, keeper, dropper.schema.ir, side)  # type: ignore[arg-type]
    )


def _edited_drops_of(base: Snapshot, keeper: Snapshot, dropper_ir: SchemaIR, side: Choice) -> Iterator[EditedDrop]:
    keeper_ir = keeper.schema.ir
    kept_types: list[NodeType | EdgeType] = [*keeper_ir.catalog.nodes, *keeper_ir.catalog.edges]
    for kept_type in kept_types:
        table_key = key_of_type(kept_type)
        base_transition = find_transition(base.schema.ir, keeper_ir, table_key)
        if base_transition is None or not content_differs(base, keeper, table_key):
            continue
        type_id = keeper_ir.type_id(kept_type.kind, kept_type.name)
        dropper_ids = _property_ids(dropper_ir, type_id)
        if dropper_ids is None:
            yield from _type_edits(diff_table(base, keeper, table_key), type_id, side)
            continue
        dropped_names = _dropped_names(keeper_ir, kept_type, base_transition.old_property_names, dropper_ids)
        if dropped_names:
            yield from _property_edits(diff_table(base, keeper, table_key), type_id, dropped_names, side)


def _property_ids(ir: SchemaIR, type_id: int) -> frozenset[int] | None:
    """Return the ids of a type's properties, or None if the schema does not have the type."""
    for identity in ir.type_identities:
        if identity.type_id == type_id:
            return frozenset(number for _, number in identity.property_ids)
    return None


def _dropped_names(
    keeper_ir: SchemaIR, kept_type: NodeType | EdgeType, base_names: dict[str, str], dropper_ids: frozenset[int]
) -> dict[str, int]:
    """Return the base properties that only the dropping side no longer has, with their ids."""
    numbers = {name: keeper_ir.property_id(kept_type.kind, kept_type.name, name) for name in base_names}
    return {name: number for name, number in numbers.items() if number not in dropper_ids}


def _type_edits(changes: TableChanges, type_id: int, side: Choice) -> Iterator[EditedDrop]:
    written = [*changes.inserted.to_pylist(), *changes.updated_after.to_pylist()]
    values = tuple((row.pop("id"), row) for row in sorted(written, key=lambda row: str(row["id"])))
    if values:
        yield EditedDrop(side, changes.key, type_id, None, None, values)


def _property_edits(
    changes: TableChanges, type_id: int, dropped_names: dict[str, int], side: Choice
) -> Iterator[EditedDrop]:
    for name, number in dropped_names.items():
        is_set = changes.inserted[name].is_valid().to_numpy(zero_copy_only=False) if changes.inserted.num_rows else []
        is_changed = ~same_values(changes.updated_before[name], changes.updated_after[name])
        selections = ((changes.inserted, is_set), (changes.updated_after, is_changed))
        values = sorted(
            (rows["id"][position].as_py(), rows[name][position].as_py())
            for rows, selected in selections
            for position in np.flatnonzero(selected).tolist()
        )
        if values:
            yield EditedDrop(side, changes.key, type_id, number, name, tuple(values))
