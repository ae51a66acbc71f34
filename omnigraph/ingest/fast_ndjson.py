"""A fast path for NDJSON that converts a block of ordinary records to columns without creating Python objects.

A record is ordinary if Arrow's JSON reader interprets it exactly as the strict line reader does. A block that contains
any other record is rejected as a whole. The fast path must never report or hide a problem.
"""

import re
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as pj

from omnigraph.errors import ClientError
from omnigraph.lang.schema.catalog import EdgeType, NodeType, PropertyDefinition
from omnigraph.rules.delta import Positions
from omnigraph.storage.arrow import arrow_type, table_key
from omnigraph.values import PropertyType, ScalarType

from .columns import build_column, check_value_size
from .partial_records import given_mask_name
from .record_intake import Intake, RecordFaults, TypeBuffer, fault_recorder

_RECORD_START = re.compile(rb'\{\s*"(type|edge)"\s*:\s*"([^"\\]+)"')
_NEWLINE, _OPEN_BRACE, _CLOSE_BRACE, _CARRIAGE_RETURN = b"\n{}\r"
_TEMPORAL_TYPES = (ScalarType.DATE, ScalarType.DATETIME)
# Integers beyond these limits may not be exact as floats, so such values are left to the strict reader.
_EXACT_INTEGER_MAX = {ScalarType.F32: 2.0**24, ScalarType.F64: 2.0**53}
TypeLines = tuple[bytes, bytes, bytes, Positions]  # ("type" or "edge", type name, lines, line numbers)
BuiltColumns = tuple[TypeBuffer, dict[str, pa.Array], Positions]  # (type buffer, columns, line numbers)


class UnusualBlockError(Exception):
    """The block must be read line by line."""


def take_block(intake: Intake, block: bytes, first_number: int, entity_type: NodeType | EdgeType | None = None) -> bool:
    """Add either all or none of a block's records to `intake`; return whether they were added.

    Records are numbered from `first_number`. With `entity_type`, they have no envelope and contain this type's
    properties and endpoints.
    """
    try:
        if entity_type is not None:
            built_buffers = [_build_typed_columns(intake, entity_type, block, first_number)]
        else:
            built_buffers = [
                _build_columns(intake, type_lines) for type_lines in _split_by_type(intake, block, first_number)
            ]
        # Lines may spell the name of an edge type in two ways. They would then be in two groups and out of order.
        _require_usual(len({table_key(buffer.entity_type) for buffer, _, _ in built_buffers}) == len(built_buffers))
    except (UnusualBlockError, UnicodeDecodeError, pa.ArrowException, ClientError):
        return False
    for buffer, columns, line_numbers in built_buffers:
        buffer.flush()
        intake.buffers.setdefault(table_key(buffer.entity_type), buffer)
        buffer.append_columns(columns, {}, line_numbers)
    return True


def _require_usual(condition: Any) -> None:
    if not condition:
        raise UnusualBlockError


def _split_by_type(intake: Intake, block: bytes, first_number: int) -> list[TypeLines]:
    """Group a block's lines by the type that is named at the beginning of each line."""
    line_numbers = _number_lines(intake, block, first_number)
    record_start = _RECORD_START.match(block)
    if record_start is not None and block.count(b"\n" + record_start[0]) == len(line_numbers) - 1:
        return [(record_start[1], record_start[2], block, line_numbers)]
    return _group_lines(block, line_numbers)


def _number_lines(intake: Intake, block: bytes, first_number: int) -> Positions:
    """Return the line numbers; raise `UnusualBlockError` unless every line is a single object within the limits."""
    if not block.isascii():
        block.decode()
    block_bytes = np.frombuffer(block, np.uint8)
    line_ends = np.append(np.flatnonzero(block_bytes == _NEWLINE), len(block_bytes))
    line_starts = np.append(0, line_ends[:-1] + 1)
    longest_line = int((line_ends - line_starts).max())
    limits = intake.limits
    _require_usual(line_starts[-1] < len(block_bytes) and longest_line <= min(limits.slots, limits.line_bytes))
    last_bytes = block_bytes[line_ends - 1]
    ends_with_brace = (last_bytes == _CLOSE_BRACE) | (
        (last_bytes == _CARRIAGE_RETURN) & (block_bytes[line_ends - 2] == _CLOSE_BRACE)
    )
    _require_usual((block_bytes[line_starts] == _OPEN_BRACE).all() and ends_with_brace.all())
    return np.arange(first_number, first_number + len(line_starts), dtype=np.int64)


def _group_lines(block: bytes, line_numbers: Positions) -> list[TypeLines]:
    lines = block.split(b"\n")
    positions_by_type: dict[tuple[bytes, bytes], list[int]] = {}
    for position, line in enumerate(lines):
        record_start = _RECORD_START.match(line)
        if record_start is None:
            raise UnusualBlockError
        positions_by_type.setdefault((record_start[1], record_start[2]), []).append(position)
    return [
        (type_member, type_name, b"\n".join([lines[position] for position in positions]), line_numbers[positions])
        for (type_member, type_name), positions in positions_by_type.items()
    ]


def _build_columns(intake: Intake, type_lines: TypeLines) -> BuiltColumns:
    type_member, type_name, json_text, line_numbers = type_lines
    buffer = _buffer_for_type(intake, type_member, type_name.decode())
    endpoint_names = _endpoint_names(buffer, json_text)
    records = _read_json(_envelope_schema(buffer, type_member.decode(), endpoint_names, json_text), json_text)
    has_null_text = b"null" in json_text
    data_column = records["data"].combine_chunks()
    _require_usual(not (data_column.null_count and has_null_text))
    values_by_name = dict(zip([field.name for field in data_column.type], data_column.flatten(), strict=True))
    endpoints = [_endpoint_column(buffer, records, member_name) for member_name in endpoint_names]
    _note_given_names(buffer, values_by_name, json_text)
    return _finish_columns(buffer, values_by_name, endpoints, line_numbers, has_null_text=has_null_text)


def _build_typed_columns(
    intake: Intake, entity_type: NodeType | EdgeType, json_text: bytes, first_number: int
) -> BuiltColumns:
    """Build the columns for records without an envelope."""
    line_numbers = _number_lines(intake, json_text, first_number)
    buffer = _buffer_of(intake, entity_type)
    endpoint_names = _endpoint_names(buffer, json_text)
    endpoint_fields = [(member_name, pa.string()) for member_name in endpoint_names]
    records = _read_json(pa.schema([*endpoint_fields, *_data_fields(buffer, json_text)]), json_text)
    values_by_name = {name: records[name].combine_chunks() for name in records.column_names}
    endpoints = [_endpoint_column(buffer, records, member_name) for member_name in endpoint_names]
    _note_given_names(buffer, values_by_name, json_text)
    return _finish_columns(buffer, values_by_name, endpoints, line_numbers, has_null_text=b"null" in json_text)


def _finish_columns(
    buffer: TypeBuffer,
    values_by_name: dict[str, pa.Array],
    endpoints: list[pa.Array],
    line_numbers: Positions,
    *,
    has_null_text: bool,
) -> BuiltColumns:
    row_limit, row_count = buffer.limits.rows, len(line_numbers)
    _require_usual(row_limit is None or buffer.record_count + row_count <= row_limit)
    _require_usual(buffer.fills_absent or not has_null_text)  # an explicit null differs from a missing member
    columns: dict[str, pa.Array] = dict(zip(("src", "dst"), endpoints, strict=False))
    for prop in buffer.read_properties:
        values = values_by_name[prop.name]
        _require_usual(len(values) == row_count)
        if buffer.fills_absent:
            columns[prop.name] = _property_column(buffer, prop, values, has_null_text=has_null_text)
        elif values.null_count < row_count:
            columns |= _given_columns(buffer, prop, values)
    supplied_ids = values_by_name.get("id")
    _require_usual(supplied_ids is None or not (supplied_ids.null_count and has_null_text))
    faults: RecordFaults = {}
    columns["id"] = buffer.resolve_ids(pa.table(columns), supplied_ids, faults, row_count)
    _require_usual(not faults and all(len(column) == row_count for column in columns.values()))
    return buffer, columns, line_numbers


def _given_columns(buffer: TypeBuffer, prop: PropertyDefinition, values: pa.Array) -> dict[str, pa.Array]:
    """Return a property's values, and a mask of the records that contain the property."""
    given_values = _property_column(buffer, prop, values.drop_null(), has_null_text=False)
    if values.null_count:
        given_values = given_values.take(_positions_among_non_nulls(values))
    return {prop.name: given_values, given_mask_name(prop.name): pc.is_valid(values)}


def _note_given_names(buffer: TypeBuffer, values_by_name: dict[str, pa.Array], json_text: bytes) -> None:
    """Record which properties the records contain; a column of nulls counts if any of the nulls is explicit."""
    has_null_text = b"null" in json_text
    buffer.given_names.update(
        name
        for name, values in values_by_name.items()
        if values.null_count < len(values) or (has_null_text and f'"{name}"'.encode() in json_text)
    )


def _endpoint_names(buffer: TypeBuffer, json_text: bytes) -> tuple[str, ...]:
    """Return the names that an edge type's records use for the endpoints."""
    if not isinstance(buffer.entity_type, EdgeType):
        return ()
    return ("from", "to") if b'"from"' in json_text else ("src", "dst")


def _buffer_for_type(intake: Intake, type_member: bytes, type_name: str) -> TypeBuffer:
    """Return a type's buffer; a new buffer becomes part of `intake` only when its records are added."""
    catalog = intake.ir.catalog
    entity_type: NodeType | EdgeType | None = (
        catalog.node(type_name) if type_member == b"type" else catalog.edge_ignoring_case(type_name)
    )
    if entity_type is None:
        raise UnusualBlockError
    return _buffer_of(intake, entity_type)


def _buffer_of(intake: Intake, entity_type: NodeType | EdgeType) -> TypeBuffer:
    existing_buffer = intake.buffers.get(table_key(entity_type))
    return existing_buffer or intake.new_buffer(entity_type)


def _envelope_schema(
    buffer: TypeBuffer, type_member: str, endpoint_names: tuple[str, ...], json_text: bytes
) -> pa.Schema:
    member_fields = [(member_name, pa.string()) for member_name in (type_member, *endpoint_names)]
    return pa.schema([*member_fields, ("data", pa.struct(_data_fields(buffer, json_text)))])


def _data_fields(buffer: TypeBuffer, json_text: bytes) -> list[tuple[str, pa.DataType]]:
    data_fields = [(prop.name, _json_type(prop, json_text)) for prop in buffer.entity_type.properties]
    if b'"id"' in json_text:
        data_fields.append(("id", pa.string()))
    _require_usual(data_fields)
    return data_fields


def _read_json(schema: pa.Schema, json_text: bytes) -> pa.Table:
    return pj.read_json(
        pa.BufferReader(json_text),
        pj.ReadOptions(use_threads=False, block_size=max(len(json_text) + 1, 1 << 16)),
        pj.ParseOptions(explicit_schema=schema, unexpected_field_behavior="error"),
    )


def _json_type(prop: PropertyDefinition, json_text: bytes) -> pa.DataType:
    """Return the Arrow type that a property's values have in JSON."""
    property_type = prop.type
    if property_type.is_list or property_type.is_vector:
        return pa.list_(_json_item_type(property_type.element_type(), prop.name, json_text))
    return _json_item_type(property_type, prop.name, json_text)


def _json_item_type(property_type: PropertyType, property_name: str, json_text: bytes) -> pa.DataType:
    if property_type.scalar.is_float:
        return pa.float64()
    if property_type.scalar is ScalarType.BLOB:
        return pa.string()
    if property_type.scalar in _TEMPORAL_TYPES:
        quoted_value = re.search(rb'"' + property_name.encode() + rb'"\s*:\s*\[?\s*"', json_text)
        return pa.string() if quoted_value else pa.int64()
    return arrow_type(property_type)


def _endpoint_column(buffer: TypeBuffer, records: pa.Table, member_name: str) -> pa.Array:
    column = records[member_name].combine_chunks()
    _require_usual(not column.null_count or not buffer.requires_endpoints)
    return column


def _property_column(
    buffer: TypeBuffer, prop: PropertyDefinition, input_column: pa.Array, *, has_null_text: bool
) -> pa.Array:
    """Build a property's column as the strict reader would build it."""
    property_type, default = prop.type, buffer.defaults[prop.name]
    if input_column.null_count and default is not None:
        _require_usual(not has_null_text)  # Arrow does not distinguish an explicit null from a missing member
        return _convert_values(
            buffer, prop, [default if value is None else value for value in input_column.to_pylist()]
        )
    _require_usual(property_type.nullable or not input_column.null_count)
    if property_type.scalar in _TEMPORAL_TYPES or property_type.scalar is ScalarType.BLOB:
        return _convert_distinct(buffer, prop, input_column)
    if property_type.is_list or property_type.is_vector:
        converted = _convert_lists(property_type, input_column)
    else:
        converted = (
            _convert_floats(property_type.scalar, input_column) if property_type.scalar.is_float else input_column
        )
    check_value_size(converted, f"{buffer.entity_type.name}.{prop.name}", buffer.limits)
    return converted


def _convert_distinct(buffer: TypeBuffer, prop: PropertyDefinition, input_column: pa.Array) -> pa.Array:
    """Convert each distinct value only once."""
    if pa.types.is_list(input_column.type):
        return _convert_values(buffer, prop, input_column.to_pylist())
    dictionary_array = input_column.dictionary_encode()
    converted = _convert_values(buffer, prop, dictionary_array.dictionary.to_pylist())
    return converted.take(dictionary_array.indices)


def _convert_values(buffer: TypeBuffer, prop: PropertyDefinition, values: list[Any]) -> pa.Array:
    faults: RecordFaults = {}
    converted = build_column(prop, values, buffer.entity_type.name, fault_recorder(faults), buffer.limits)
    _require_usual(not faults)
    return converted


def _convert_floats(scalar_type: ScalarType, input_column: pa.Array) -> pa.Array:
    """Return the column's floats; raise `UnusualBlockError` for values whose JSON text is ambiguous."""
    present_values = input_column.drop_null().to_numpy(zero_copy_only=False)
    _require_usual((np.abs(present_values) < _EXACT_INTEGER_MAX[scalar_type]).all())  # also rejects infinities and NaN
    # Parsed as an integer, "-0" would lose its sign.
    _require_usual(not (np.signbit(present_values) & (present_values == 0)).any())
    return input_column.cast(pa.float32(), safe=False) if scalar_type is ScalarType.F32 else input_column


def _convert_lists(property_type: PropertyType, input_lists: pa.Array) -> pa.Array:
    item_values = input_lists.flatten()
    _require_usual(not item_values.null_count)
    element_type = property_type.element_type()
    if element_type.scalar.is_float:
        item_values = _convert_floats(element_type.scalar, item_values)
    if property_type.vector_dim is None:
        if not element_type.scalar.is_float:
            return input_lists.cast(arrow_type(property_type))
        return _replace_items(input_lists, item_values).cast(arrow_type(property_type))
    _require_usual((input_lists.drop_null().value_lengths().to_numpy() == property_type.vector_dim).all())
    vectors = pa.FixedSizeListArray.from_arrays(item_values, property_type.vector_dim).cast(arrow_type(property_type))
    return vectors.take(_positions_among_non_nulls(input_lists)) if input_lists.null_count else vectors


def _positions_among_non_nulls(input_lists: pa.Array) -> pa.Array:
    """For each value, return its position among the non-null values; nulls stay null."""
    is_null = pc.is_null(input_lists).to_numpy(zero_copy_only=False)
    return pa.array(np.cumsum(~is_null) - 1, pa.int64(), mask=is_null)


def _replace_items(input_lists: pa.Array, new_items: pa.Array) -> pa.Array:
    """Return lists with the same lengths and nulls as `input_lists`, filled with `new_items`."""
    list_lengths = pc.fill_null(input_lists.value_lengths(), 0).to_numpy(zero_copy_only=False)
    list_offsets = pa.array(np.append(0, np.cumsum(list_lengths)).astype(np.int32))
    is_null = pc.is_null(input_lists) if input_lists.null_count else None
    return pa.ListArray.from_arrays(list_offsets, new_items, mask=is_null)
