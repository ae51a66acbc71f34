"""Records that are not text: dicts, dataclasses, Arrow tables, and pandas and polars frames.

Frames are read through their Arrow interface; pandas and polars are never imported. A mapping
assigns a type name to each input; without a mapping, every record names its own type.
"""

import dataclasses
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from omnigraph.errors import ClientError, InputError
from omnigraph.lang.schema.catalog import Catalog, EdgeType, NodeType
from omnigraph.lang.schema.type_names import resolve_type, type_names
from omnigraph.rules.delta import Positions

from .casts import as_plain_strings, cast_column
from .edge_endpoints import ENDPOINT_COLUMNS, reject_repeated_endpoints, with_endpoint_members, with_stored_endpoints
from .record_envelope import string_id_hint, take_record, with_line_number
from .record_intake import Intake, RecordFaults, TypeBuffer, fault_recorder, unknown_property_errors

_MAX_LISTED_TYPES = 10
FILE_HINT = "pass a CSV or Parquet file as Type=file"


@dataclasses.dataclass(frozen=True, slots=True)
class RecordType:
    """The type for records that do not name their own type, and new names for their members."""

    entity_type: NodeType | EdgeType
    column_mapping: Mapping[str, str] = dataclasses.field(default_factory=dict)
    envelope_members: frozenset[str] = dataclasses.field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        own_names = {prop.name for prop in self.entity_type.properties} | set(self.column_mapping)
        object.__setattr__(self, "envelope_members", frozenset({"type", "edge"} - own_names))

    def is_envelope(self, record: Mapping[str, Any]) -> bool:
        """Return whether a record has an envelope, that is, a `type` or `edge` member that is not a property."""
        return not self.envelope_members.isdisjoint(record)

    def with_stored_names(self, record: dict[str, Any]) -> dict[str, Any]:
        """Return a record with its members renamed."""
        if not self.column_mapping:
            return record
        return {self.column_mapping.get(member_name, member_name): value for member_name, value in record.items()}


def take_table(intake: Intake, entity_type: NodeType | EdgeType, table: pa.Table, first_row_number: int = 1) -> None:
    """Add a table to `intake`, numbering the rows from `first_row_number`."""
    _take_table_columns(intake.buffer_for(entity_type), table, first_row_number)


def _list_types(catalog: Catalog) -> str:
    """Return a hint that lists the types in a schema, or only the first ones if there are many."""
    names = type_names(catalog)
    shown = ", ".join(names[:_MAX_LISTED_TYPES]) + (", …" if len(names) > _MAX_LISTED_TYPES else "")
    return f"expected one of {shown}" if names else "the schema has no types"


def take_records(intake: Intake, data: Any, *, allow_truncate: bool) -> None:
    """Add tables by type name, or an iterable of records that name their types, to `intake`."""
    if isinstance(data, Mapping):
        for type_name, type_data in data.items():
            entity_type = resolve_type(
                intake.ir.catalog, type_name, ignore_case=True, fallback_hint=_list_types(intake.ir.catalog)
            )
            take_type_data(intake, entity_type, type_data)
    elif is_frame(data):
        raise InputError("a table must be passed with its type name", reason='pass {"Type": table}')
    elif isinstance(data, Iterable):
        for record_number, record in enumerate(data, 1):
            take_record(intake, record_number, _wrap_dataclass(intake, record), allow_truncate=allow_truncate)
    else:
        input_type = type(data).__name__
        raise InputError(f"cannot load {input_type}", reason="expected a path, a file, records or tables")


def take_type_data(intake: Intake, entity_type: NodeType | EdgeType, type_data: Any, first_number: int = 1) -> None:
    """Add a table or records without an envelope, all of one type and numbered from `first_number`."""
    if is_frame(type_data):
        _take_table_columns(intake.buffer_for(entity_type), to_arrow_table(type_data), first_number)
        return
    for record_number, record in enumerate(type_data, first_number):
        take_typed_record(intake, entity_type, record_number, record)


def take_typed_record(intake: Intake, entity_type: NodeType | EdgeType, record_number: int, record: Any) -> None:
    """Add a record without an envelope, or report why it is invalid."""
    try:
        _add_typed_record(intake.buffer_for(entity_type), record_number, _record_fields(record))
    except ClientError as error:
        record_values = record.values() if isinstance(record, Mapping) else ()
        intake.problems.add(
            with_line_number(error, record_number), record_number, entity_type.name, record_values=record_values
        )


def _add_typed_record(buffer: TypeBuffer, record_number: int, record: dict[str, Any]) -> None:
    if not isinstance(buffer.entity_type, EdgeType):
        endpoint_ids = None
    else:
        record = with_stored_endpoints(record)
        endpoint_ids = (
            _endpoint_id(buffer, record.pop("src", None), "from"),
            _endpoint_id(buffer, record.pop("dst", None), "to"),
        )
    buffer.add(
        record_number, record, endpoint_ids, unknown_property_errors(buffer.entity_type, record, buffer.member_names)
    )


def _endpoint_id(buffer: TypeBuffer, value: Any, member_name: str) -> str | None:
    if value is None and not buffer.requires_endpoints:
        return None
    if not isinstance(value, str):
        actual_type = "nothing" if value is None else type(value).__name__
        reason = f"'{member_name}' must be a string, got {actual_type}"
        raise InputError(reason=reason, member=member_name, hint=string_id_hint(value))
    return value


def _record_fields(record: Any) -> dict[str, Any]:
    if isinstance(record, Mapping):
        return dict(record)
    if dataclasses.is_dataclass(record) and not isinstance(record, type):
        return {field.name: getattr(record, field.name) for field in dataclasses.fields(record)}
    raise InputError(reason=f"expected a dict or a dataclass, got {type(record).__name__}")


def _wrap_dataclass(intake: Intake, record: Any) -> Any:
    """Wrap a dataclass instance in an envelope named after its class; return dicts unchanged."""
    if not dataclasses.is_dataclass(record) or isinstance(record, type):
        return record
    fields, type_name = _record_fields(record), type(record).__name__
    if intake.ir.catalog.node(type_name) is not None:
        return {"type": type_name, "data": fields}
    renamed = with_endpoint_members(fields)
    endpoints = {"from": renamed.pop("from", None), "to": renamed.pop("to", None)}
    return {"edge": type_name, **endpoints, "data": renamed}


def is_frame(data: Any) -> bool:
    """Return whether an input is a table or a frame with an Arrow interface."""
    arrow_methods = ("__arrow_c_stream__", "__arrow_c_array__", "to_arrow")
    return any(hasattr(data, method_name) for method_name in arrow_methods) and not isinstance(data, pa.Array)


def to_arrow_table(frame: Any) -> pa.Table:
    """Convert a frame to an Arrow table."""
    if isinstance(frame, pa.Table):
        return frame
    if hasattr(frame, "__arrow_c_stream__") or hasattr(frame, "__arrow_c_array__"):
        return pa.table(frame)
    return frame.to_arrow()


def _take_table_columns(buffer: TypeBuffer, table: pa.Table, first_row_number: int = 1) -> None:
    """Add columns unchanged where they fit, and cast them where the cast is lossless."""
    table = _rename_columns(buffer, table)
    row_count, given_columns = table.num_rows, {name: table[name].combine_chunks() for name in table.column_names}
    faults: RecordFaults = {}
    report_fault, type_name = fault_recorder(faults), buffer.entity_type.name
    columns: dict[str, pa.Array] = {}
    buffer.given_names.update(given_columns)
    for prop in buffer.read_properties:
        if prop.name not in given_columns and not buffer.fills_absent:
            continue
        input_column = column_or_default(given_columns.get(prop.name), row_count, buffer.defaults[prop.name])
        columns[prop.name] = cast_column(prop, input_column, type_name, report_fault, buffer.limits)
    row_numbers = np.arange(first_row_number, first_row_number + row_count, dtype=np.int64)
    take_columns(buffer, columns, given_columns, faults, row_numbers)


def take_columns(
    buffer: TypeBuffer,
    property_columns: dict[str, pa.Array],
    given_columns: Mapping[str, pa.Array],
    faults: RecordFaults,
    row_numbers: Positions,
) -> None:
    """Add converted property columns, together with the endpoints and ids found among the given columns."""
    columns, row_count = dict(property_columns), len(row_numbers)
    if isinstance(buffer.entity_type, EdgeType):
        for member_name, stored_name in ENDPOINT_COLUMNS.items():
            endpoint_column = as_plain_strings(column_or_default(given_columns.get(stored_name), row_count))
            columns[stored_name] = _endpoint_column(buffer, endpoint_column, member_name, faults)
    id_column = as_plain_strings(column_or_default(given_columns.get("id"), row_count))
    supplied_ids = None if id_column.null_count == row_count else id_column
    columns["id"] = buffer.resolve_ids(_as_table(columns, row_count), supplied_ids, faults, row_count)
    buffer.append_columns(columns, faults, row_numbers)


def _rename_columns(buffer: TypeBuffer, table: pa.Table) -> pa.Table:
    """Rename the columns to their stored names; raise an error for unknown names."""
    is_edge = isinstance(buffer.entity_type, EdgeType)
    if is_edge:
        reject_repeated_endpoints(table.column_names)
    stored_names = [
        ENDPOINT_COLUMNS.get(column_name, column_name) if is_edge else column_name for column_name in table.column_names
    ]
    duplicate_name = next((column_name for column_name in stored_names if stored_names.count(column_name) > 1), None)
    if duplicate_name is not None:
        raise InputError(reason=f"column '{duplicate_name}' appears twice")
    allowed_names = buffer.member_names | ({"src", "dst"} if is_edge else set())
    for error in unknown_property_errors(buffer.entity_type, stored_names, allowed_names):
        raise error
    return table.rename_columns(stored_names)


def column_or_default(column: pa.Array | None, row_count: int, default: Any = None) -> pa.Array:
    """Return a column, or a column of default values if it is not in the input."""
    if column is not None:
        return column
    return pa.nulls(row_count) if default is None else pa.array([default] * row_count)


def _endpoint_column(buffer: TypeBuffer, input_column: pa.Array, member_name: str, faults: RecordFaults) -> pa.Array:
    if pa.types.is_string(input_column.type) and not input_column.null_count:
        return input_column
    endpoint_ids: list[str | None] = []
    for position, value in enumerate(input_column.to_pylist()):
        try:
            endpoint_ids.append(_endpoint_id(buffer, value, member_name))
        except InputError as error:
            faults.setdefault(position, []).append(error)
            endpoint_ids.append(None)
    return pa.array(endpoint_ids, pa.string())


def _as_table(columns: dict[str, pa.Array], row_count: int) -> pa.Table:
    return pa.table(columns) if columns else pa.table({"": pa.nulls(row_count)})
