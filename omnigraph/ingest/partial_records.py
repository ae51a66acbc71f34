"""Records that are not whole rows: patches with some of the properties, and references to rows to delete.

Such a record identifies its row by its complete key or by `id`; a deleted edge may also be identified by its endpoints.
Omitting a property is different from setting it to null.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.errors import ClientError, InputError
from omnigraph.lang.schema.catalog import EdgeType, NodeType, PropertyDefinition
from omnigraph.lang.schema.ir import SchemaIR, ordered_key_columns
from omnigraph.rules.delta import Positions, as_single_array

from .assign_ids import check_ids_match_keys, key_ids
from .columns import build_column
from .record_intake import (
    EndpointIds,
    RecordData,
    RecordFaults,
    TypeBuffer,
    fault_recorder,
    first_fault_recorder,
)

Mask = npt.NDArray[np.bool_]
_MASK_PREFIX = "#given:"  # property names cannot contain `#`
_ENDPOINT_MEMBERS = {"src": "from", "dst": "to"}  # a record's members, by stored column
_ENDPOINTS = tuple(_ENDPOINT_MEMBERS)


def given_mask_name(property_name: str) -> str:
    """Return the name of the mask column that marks the records that contain a property."""
    return f"{_MASK_PREFIX}{property_name}"


@dataclass(frozen=True, slots=True)
class PartialRows:
    """One type's partial records, with their input positions.

    `rows` has the column `id` and, for edges, the columns `src` and `dst`. For each property in the records, it also
    has a column of values and a mask of the records that contain the property.
    """

    entity_type: NodeType | EdgeType
    rows: pa.Table
    input_lines: Positions

    @property
    def ids(self) -> pa.Array:
        """The ids, which are null for edges that are identified by their endpoints."""
        return as_single_array(self.rows["id"])

    @property
    def patched_names(self) -> tuple[str, ...]:
        """The properties that at least one record contains, without the key properties."""
        return tuple(
            prop.name for prop in self.entity_type.properties if given_mask_name(prop.name) in self.rows.column_names
        )

    def given_mask(self, property_name: str) -> Mask:
        """Return a mask of the records that contain a property."""
        return _to_mask(self.rows[given_mask_name(property_name)])


class PatchBuffer(TypeBuffer):
    """Patches for one type; each record identifies its row and contains only the properties to change."""

    fills_absent: ClassVar[bool] = False
    requires_endpoints: ClassVar[bool] = False
    purpose: ClassVar[str] = "patching"

    @property
    def key_names(self) -> tuple[str, ...]:
        """The properties and endpoints in the type's key."""
        return key_members(self.ir, self.entity_type)

    def _build_columns(
        self, records: list[RecordData], endpoints: list[EndpointIds], faults: RecordFaults
    ) -> dict[str, pa.Array]:
        columns: dict[str, pa.Array] = {}
        for prop in self.read_properties:
            columns |= self._given_columns(prop, records, faults)
        if isinstance(self.entity_type, EdgeType):
            for position, column_name in enumerate(_ENDPOINTS):
                columns[column_name] = pa.array([pair[position] for pair in endpoints], pa.string())
        supplied_ids = [record.get("id") for record in records]
        property_rows = pa.table(columns) if columns else pa.table({"": pa.nulls(len(records))})
        return {**columns, "id": self.resolve_ids(property_rows, supplied_ids, faults, len(records))}

    def _given_columns(
        self, prop: PropertyDefinition, records: Sequence[RecordData], faults: RecordFaults
    ) -> dict[str, pa.Array]:
        """Return a property's column and mask, or nothing if no record contains it."""
        positions = [position for position, record in enumerate(records) if prop.name in record]
        if not positions:
            return {}

        def report_fault(index: int, error: ClientError) -> None:
            faults.setdefault(positions[index], []).append(error)

        values = [records[position][prop.name] for position in positions]
        column = build_column(prop, values, self.entity_type.name, report_fault, self.limits)
        is_given = np.zeros(len(records), bool)
        is_given[positions] = True
        return {prop.name: _scatter(column, is_given), given_mask_name(prop.name): pa.array(is_given)}

    def resolve_ids(self, property_rows: pa.Table, supplied_ids: Any, faults: RecordFaults, row_count: int) -> pa.Array:
        """Return the row ids; a record with no identifier or with contradictory identifiers is reported."""
        self.all_ids_generated = False
        if supplied_ids is None:
            supplied_ids = pa.nulls(row_count, pa.string())
        ids = self._ids_of_keys(property_rows, faults, row_count)
        check_ids_match_keys(ids, supplied_ids, fault_recorder(faults))
        ids = pc.coalesce(ids, _string_ids(supplied_ids, faults))
        is_unnamed = _to_mask(pc.or_kleene(pc.is_null(ids), pc.equal(ids, "")))
        for position in np.flatnonzero(is_unnamed & ~self._is_named_otherwise(property_rows, row_count)):
            first_fault_recorder(faults)(int(position), self._unnamed_error())
        return ids

    def _ids_of_keys(self, property_rows: pa.Table, faults: RecordFaults, row_count: int) -> pa.Array:
        """Return the ids of the records that contain the complete key, or null for other records."""
        masks = {name: _given_records(property_rows, name, row_count) for name in self.key_names}
        if not masks:
            return pa.nulls(row_count, pa.string())
        is_whole = np.logical_and.reduce(list(masks.values()))
        # If a record has an id, its endpoints are only compared with the stored endpoints and may be an incomplete
        # key.
        property_masks = [mask for name, mask in masks.items() if name not in _ENDPOINT_MEMBERS]
        is_partial = np.logical_or.reduce([np.zeros(row_count, bool), *property_masks]) & ~is_whole
        for position in np.flatnonzero(is_partial):
            reason = f"only part of the {self.entity_type.name} key ({self._key_text()}) is given"
            hint = "specify the complete key, or only 'id'"
            first_fault_recorder(faults)(int(position), InputError(reason=reason, hint=hint))
        if not is_whole.any():
            return pa.nulls(row_count, pa.string())
        positions = np.flatnonzero(is_whole)
        report_fault = first_fault_recorder(faults)
        whole_rows = property_rows.filter(pa.array(is_whole))
        ids = key_ids(
            self.ir,
            self.entity_type,
            whole_rows,
            lambda index, error: report_fault(int(positions[index]), error),
        )
        return _scatter(ids, is_whole)

    def _is_named_otherwise(self, _property_rows: pa.Table, row_count: int) -> Mask:
        """Return a mask of the records that identify their row by something other than an id or key."""
        return np.zeros(row_count, bool)

    def _key_text(self) -> str:
        return ", ".join(_ENDPOINT_MEMBERS.get(name, name) for name in self.key_names)

    def _unnamed_error(self) -> ClientError:
        key_text = f"its key ({self._key_text()}) or " if self.key_names else ""
        return InputError(reason=f"{self.purpose} {self.entity_type.name} requires {key_text}'id'")

    def _assemble_rows(self, columns: Mapping[str, pa.Array]) -> pa.Table:
        columns = dict(columns)
        identity = {name: columns[name] for name in ("id", *_ENDPOINTS) if name in columns}
        values: dict[str, pa.Array] = {}
        for prop in self.read_properties:
            if prop.name in columns and prop.name not in self.key_names:
                mask_name, column = given_mask_name(prop.name), columns[prop.name]
                values[prop.name] = column
                values[mask_name] = columns.get(mask_name, pa.repeat(True, len(column)))
        return pa.table({**identity, **values})

    def _schema_of(self, rows: pa.Table) -> pa.Schema:
        fields = [
            pa.field(name, pa.bool_()) if name.startswith(_MASK_PREFIX) else self.schema.field(name)
            for name in rows.column_names
        ]
        return pa.schema(fields)

    def all_rows(self) -> pa.Table:
        """Return all records as one table, with the properties that at least one record contains."""
        self.flush()
        if not self.built_tables:
            return pa.schema([self.schema.field(name) for name in self._identity_names()]).empty_table()
        return pa.concat_tables(self.built_tables, promote_options="default")

    def _identity_names(self) -> list[str]:
        return ["id", *(_ENDPOINTS if isinstance(self.entity_type, EdgeType) else ())]

    def partial_rows(self) -> PartialRows:
        """Return all records with their positions."""
        return PartialRows(self.entity_type, self.all_rows(), self.line_positions())


class IdentityBuffer(PatchBuffer):
    """References to rows to delete; only the identifying members of each record are read."""

    purpose: ClassVar[str] = "deleting"

    @property
    def read_properties(self) -> tuple[PropertyDefinition, ...]:
        """The key properties; other properties are ignored."""
        return tuple(prop for prop in self.entity_type.properties if prop.name in self.key_names)

    def _is_named_otherwise(self, property_rows: pa.Table, row_count: int) -> Mask:
        if not isinstance(self.entity_type, EdgeType):
            return np.zeros(row_count, bool)
        has_source, has_target = (_to_mask(pc.is_valid(property_rows[name])) for name in _ENDPOINTS)
        return has_source & has_target

    def _unnamed_error(self) -> ClientError:
        if not isinstance(self.entity_type, EdgeType):
            return super()._unnamed_error()
        key_text = f"its key ({self._key_text()}), " if self.key_names else ""
        return InputError(reason=f"{self.purpose} {self.entity_type.name} requires {key_text}'id', or 'from' and 'to'")


def key_members(ir: SchemaIR, entity_type: NodeType | EdgeType) -> tuple[str, ...]:
    """Return a type's key members in the order used to form the id; the result is empty if the type has no key."""
    return ordered_key_columns(ir, entity_type.name, entity_type.kind)


def _given_records(rows: pa.Table, column_name: str, row_count: int) -> Mask:
    """Return a mask of the records that contain a property or an endpoint."""
    if column_name not in rows.column_names:
        return np.zeros(row_count, bool)
    if column_name in _ENDPOINT_MEMBERS:
        return _to_mask(pc.is_valid(rows[column_name]))
    mask_name = given_mask_name(column_name)
    return _to_mask(rows[mask_name]) if mask_name in rows.column_names else np.ones(row_count, bool)


def _scatter(values: pa.Array, is_present: Mask) -> pa.Array:
    """Return a column with the values at the marked positions, in order, and null elsewhere."""
    if is_present.all():
        return values
    return values.take(pa.array(np.cumsum(is_present) - 1, pa.int64(), mask=~is_present))


def _string_ids(supplied_ids: Any, faults: RecordFaults) -> pa.Array:
    """Return the ids that are strings, and report invalid Unicode; ids of other types have already been reported."""
    if isinstance(supplied_ids, pa.Array) and pa.types.is_string(supplied_ids.type):
        return supplied_ids
    values = supplied_ids.to_pylist() if isinstance(supplied_ids, pa.Array) else list(supplied_ids)
    for position, value in enumerate(values):
        if not isinstance(value, str):
            values[position] = None
        elif not value.isascii() and value != value.encode(errors="ignore").decode():
            fault_recorder(faults)(position, InputError(reason="id is not valid Unicode"))
            values[position] = None
    return pa.array(values, pa.string())


def _to_mask(column: pa.Array | pa.ChunkedArray) -> Mask:
    mask: Mask = pc.fill_null(as_single_array(column), False).to_numpy(zero_copy_only=False)
    return mask
