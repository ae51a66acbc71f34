"""Find the values that a side wrote to a type or property that the merged schema may not contain.

If the other side has dropped the type or property since the base, the edits are found before the schemas are combined,
because an edit turns the drop into a conflict. If a decision about a name removes a type or property that a side has
added, the values of that type or property are found after the schemas are combined. Tables are read only in these
cases. All values of types and properties that the merged schema lacks are listed as discarded changes.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np

from omnigraph.history.diff import content_differs, diff_table, diff_tables, match_rows_by_id
from omnigraph.history.entities import TableChanges
from omnigraph.history.matched_types import find_transition
from omnigraph.history.merge_inputs import MergeInputs
from omnigraph.history.missing_files import explain_missing_files
from omnigraph.history.snapshot import Snapshot
from omnigraph.lang.schema.catalog import EdgeType, NodeType
from omnigraph.lang.schema.ir import SchemaIR
from omnigraph.lang.schema.merge import DroppedEdit
from omnigraph.lang.schema.migrate.stored_types import can_convert_values
from omnigraph.lang.schema.type_names import type_for_key
from omnigraph.records.frozen import record
from omnigraph.storage.arrow import table_key as key_of_type
from omnigraph.storage.blob_placeholders import shown_value
from omnigraph.storage.find_rows import read_rows
from omnigraph.storage.value_equality import same_values
from omnigraph.values import PropertyType
from omnigraph.values.table_key import TableKey

from .discarded_changes import DiscardedChange
from .fitting_rows import convert_fitting_rows
from .table_merge import Choice


class _DroppedProperty(NamedTuple):
    name: str
    number: int
    type: PropertyType


@record
class EditedDrop:
    """A dropped type or property, and the entities in which the other side has written values since the base.

    If `property_name` is None, the type was dropped, and `values` contains whole entities. If both sides added
    the same property, but with types that cannot be converted to each other, it counts as dropped by each side.
    """

    side: Choice
    table_key: TableKey
    type_id: int
    property_id: int | None
    property_name: str | None
    values: tuple[tuple[str, Any], ...]
    property_type: PropertyType | None = None

    def to_dropped_edit(self) -> DroppedEdit:
        """Convert the edit to the form that the schema merge accepts."""
        return DroppedEdit(self.side, self.type_id, self.property_id, len(self.values))

    def is_dropped_in(self, merged_ir: SchemaIR) -> bool:
        """Return whether the merged schema lacks the edit's type or property."""
        merged_types = _property_types(merged_ir, self.type_id)
        if merged_types is None:
            return True
        if self.property_id is None or self.property_type is None:
            return False
        return not _has_like_property(merged_types, self.property_id, self.property_type)

    def discarded_changes(self) -> Iterator[DiscardedChange]:
        """Yield the edits as changes that the merge discards."""
        kind, type_name = self.table_key.kind, self.table_key.type_name
        for entity_id, value in self.values:
            part = ("entity", None, value) if self.property_name is None else ("property", self.property_name, value)
            yield DiscardedChange(kind, type_name, entity_id, self.side, *part)


def find_edited_drops(merge_inputs: MergeInputs) -> tuple[EditedDrop, ...]:
    """Return both sides' edits to dropped types and properties: ours first, and each side's edits ordered by type."""
    target, source = merge_inputs.target_snapshot, merge_inputs.source_snapshot
    return tuple(
        edited_drop
        for side, keeper, dropper in (("ours", target, source), ("theirs", source, target))
        for edited_drop in _edited_drops_of(merge_inputs.base_snapshot, keeper, dropper.schema.ir, side)  # type: ignore[arg-type]
    )


def find_dropped_additions(merge_inputs: MergeInputs, base_ir: SchemaIR, merged_ir: SchemaIR) -> Iterator[EditedDrop]:
    """Yield the values of types and properties that a side has added and that are missing from the merged schema."""
    base = merge_inputs.base_snapshot
    for side, keeper in (("ours", merge_inputs.target_snapshot), ("theirs", merge_inputs.source_snapshot)):
        keeper_ir = keeper.schema.ir
        for kept_type in _stored_types(keeper_ir):
            table_key, type_id = key_of_type(kept_type), keeper_ir.type_id(kept_type.kind, kept_type.name)
            merged_types = _property_types(merged_ir, type_id)
            if find_transition(base_ir, keeper_ir, table_key) is None:
                if merged_types is None and table_key in keeper.tables:
                    added_rows = diff_tables(keeper.store, table_key, None, keeper.table(table_key))
                    yield from _type_edits(added_rows, type_id, side)  # type: ignore[arg-type]
                continue
            dropped = _dropped_additions(base_ir, keeper_ir, kept_type, merged_types or {})
            if dropped and merged_types is not None and content_differs(base, keeper, table_key):
                yield from _property_edits(_changes_since(base, keeper, table_key), type_id, dropped, side)  # type: ignore[arg-type]


def _dropped_additions(
    base_ir: SchemaIR, keeper_ir: SchemaIR, kept_type: NodeType | EdgeType, merged_types: Mapping[int, PropertyType]
) -> list[_DroppedProperty]:
    """Return the properties that one side added to an existing type and that are missing from the merged schema."""
    transition = find_transition(base_ir, keeper_ir, key_of_type(kept_type))
    base_names = {} if transition is None else transition.old_property_names
    numbers = {
        definition: keeper_ir.property_id(kept_type.kind, kept_type.name, definition.name)
        for definition in kept_type.properties
        if definition.name not in base_names
    }
    return [
        _DroppedProperty(definition.name, number, definition.type)
        for definition, number in numbers.items()
        if not _has_like_property(merged_types, number, definition.type)
    ]


def _stored_types(ir: SchemaIR) -> list[NodeType | EdgeType]:
    return [*ir.catalog.nodes, *ir.catalog.edges]


def _changes_since(base: Snapshot, keeper: Snapshot, table_key: TableKey) -> TableChanges:
    """Return a side's changes to a type. Base entities with values that do not fit the side's types count as absent."""
    transition = find_transition(base.schema.ir, keeper.schema.ir, table_key)
    if transition is None or not transition.narrowed_names:
        return diff_table(base, keeper, table_key)
    with explain_missing_files(base), explain_missing_files(keeper):
        old_rows, new_rows = (
            read_rows(table, table.schema.names) for table in (base.table(transition.old_key), keeper.table(table_key))
        )
    old_rows = convert_fitting_rows(transition, old_rows).rows
    return match_rows_by_id(table_key, old_rows, new_rows.cast(transition.row_schema), transition.row_schema)


def _edited_drops_of(base: Snapshot, keeper: Snapshot, dropper_ir: SchemaIR, side: Choice) -> Iterator[EditedDrop]:
    keeper_ir = keeper.schema.ir
    for kept_type in _stored_types(keeper_ir):
        table_key = key_of_type(kept_type)
        base_transition = find_transition(base.schema.ir, keeper_ir, table_key)
        type_id = keeper_ir.type_id(kept_type.kind, kept_type.name)
        dropper_types = _property_types(dropper_ir, type_id)
        if not content_differs(base, keeper, table_key) or (base_transition is None and dropper_types is None):
            continue
        if dropper_types is None:
            yield from _type_edits(diff_table(base, keeper, table_key), type_id, side)
            continue
        base_names = {} if base_transition is None else base_transition.old_property_names
        dropped = _dropped_properties(keeper_ir, kept_type, base_names, dropper_types)
        if dropped:
            yield from _property_edits(_changes_since(base, keeper, table_key), type_id, dropped, side)


def _property_types(ir: SchemaIR, type_id: int) -> dict[int, PropertyType] | None:
    """Return the property types of a node or edge type, by property id, or None if the schema lacks the type."""
    for identity in ir.type_identities:
        if identity.type_id == type_id and identity.kind != "interface":
            declared_type = type_for_key(ir.catalog, TableKey.of(identity.kind, identity.name))
            declared = ((number, declared_type.property(name)) for name, number in identity.property_ids)
            return {number: definition.type for number, definition in declared if definition is not None}
    return None


def _has_like_property(types: Mapping[int, PropertyType], number: int, property_type: PropertyType) -> bool:
    return number in types and can_convert_values(types[number], property_type)


def _dropped_properties(
    keeper_ir: SchemaIR,
    kept_type: NodeType | EdgeType,
    base_names: Mapping[str, str],
    dropper_types: Mapping[int, PropertyType],
) -> list[_DroppedProperty]:
    """Return the properties that the dropping side no longer has, or that it added with an incompatible type."""
    numbers = {
        definition: keeper_ir.property_id(kept_type.kind, kept_type.name, definition.name)
        for definition in kept_type.properties
    }
    return [
        _DroppedProperty(definition.name, number, definition.type)
        for definition, number in numbers.items()
        if (definition.name in base_names or number in dropper_types)
        and not _has_like_property(dropper_types, number, definition.type)
    ]


def _type_edits(changes: TableChanges, type_id: int, side: Choice) -> Iterator[EditedDrop]:
    written = [*changes.inserted.to_pylist(), *changes.updated_after.to_pylist()]
    shown_rows = ({column: shown_value(value) for column, value in row.items()} for row in written)
    values = tuple((row.pop("id"), row) for row in sorted(shown_rows, key=lambda row: str(row["id"])))
    if values:
        yield EditedDrop(side, changes.key, type_id, None, None, values)


def _property_edits(
    changes: TableChanges, type_id: int, dropped_properties: Iterable[_DroppedProperty], side: Choice
) -> Iterator[EditedDrop]:
    for name, number, property_type in dropped_properties:
        is_set = changes.inserted[name].is_valid().to_numpy(zero_copy_only=False) if changes.inserted.num_rows else []
        is_changed = ~same_values(changes.updated_before[name], changes.updated_after[name])
        selections = ((changes.inserted, is_set), (changes.updated_after, is_changed))
        values = sorted(
            (rows["id"][position].as_py(), shown_value(rows[name][position].as_py()))
            for rows, selected in selections
            for position in np.flatnonzero(selected).tolist()
        )
        if values:
            yield EditedDrop(side, changes.key, type_id, number, name, tuple(values), property_type)
