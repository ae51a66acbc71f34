"""Records that are not text: dicts, dataclasses, Arrow tables, and pandas and polars frames.

Frames are read through their Arrow interface; pandas and polars are never imported. A mapping
assigns a type name to each input; without a mapping, every record names its own type.
"""

import dataclasses
import os
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from omnigraph.errors import ClientError, InputError
from omnigraph.lang.schema.catalog import EdgeType, NodeType
from omnigraph.lang.schema.type_names import resolve_type

from .casts import cast_column
from .record_envelope import string_id_hint, take_record, with_line_number
from .record_intake import Intake, RecordFaults, TypeBuffer, fault_recorder, unknown_property_errors

_ENDPOINT_COLUMNS = {"from": "src", "to": "dst"}
FILE_HINT = "pass a CSV or Parquet file as Type=file"


def is_text_source(source: Any) -> bool:
    """Return whether an input is a path, a file or bytes, whose content is NDJSON."""
    return isinstance(source, str | os.PathLike | bytes) or hasattr(source, "read")


def take_table(intake: Intake, entity_type: NodeType | EdgeType, table: pa.Table, first_row_number: int = 1) -> None:
    """Take a table whose rows are numbered from `first_row_number`."""
    _take_table_columns(intake.buffer_for(entity_type), table, first_row_number)


def take_records(intake: Intake, data: Any, *, allow_truncate: bool) -> None:
    """Take tables by type name, or an iterable of records that name their types."""
    if isinstance(data, Mapping):
        for type_name, type_data in data.items():
            entity_type = resolve_type(intake.ir.catalog, type_name, ignore_case=True, fallback_hint=FILE_HINT)
            _take_type_data(intake, entity_type, type_data)
    elif _is_frame(data):
        raise InputError("a table needs the name of its type", reason='pass {"Type": table}')
    elif isinstance(data, Iterable):
        for record_number, record in enumerate(data, 1):
            take_record(intake, record_number, _wrap_dataclass(intake, record), allow_truncate=allow_truncate)
    else:
        input_type = type(data).__name__
        raise InputError(f"cannot load {input_type}", reason="expected a path, a file, records or tables")


def _take_type_data(intake: Intake, entity_type: NodeType | EdgeType, type_data: Any) -> None:
    buffer = intake.buffer_for(entity_type)
    if _is_frame(type_data):
        _take_table_columns(buffer, _to_arrow_table(type_data))
        return
    for record_number, record in enumerate(type_data, 1):
        try:
            _take_typed_record(buffer, record_number, _record_fields(record))
        except ClientError as error:
            intake.problems.add(with_line_number(error, record_number), record_number, entity_type.name)


def _take_typed_record(buffer: TypeBuffer, record_number: int, record: dict[str, Any]) -> None:
    if not isinstance(buffer.entity_type, EdgeType):
        endpoint_ids = None
    else:
        record = {_ENDPOINT_COLUMNS.get(member_name, member_name): value for member_name, value in record.items()}
        endpoint_ids = (_endpoint_id(record.pop("src", None), "from"), _endpoint_id(record.pop("dst", None), "to"))
    buffer.add(
        record_number, record, endpoint_ids, unknown_property_errors(buffer.entity_type, record, buffer.member_names)
    )


def _endpoint_id(value: Any, member_name: str) -> str:
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
    renamed = {_ENDPOINT_COLUMNS.get(field_name, field_name): value for field_name, value in fields.items()}
    endpoints = {"from": renamed.pop("src", None), "to": renamed.pop("dst", None)}
    return {"edge": type_name, **endpoints, "data": renamed}


def _is_frame(data: Any) -> bool:
    arrow_methods = ("__arrow_c_stream__", "__arrow_c_array__", "to_arrow")
    return any(hasattr(data, method_name) for method_name in arrow_methods) and not isinstance(data, pa.Array)


def _to_arrow_table(frame: Any) -> pa.Table:
    if isinstance(frame, pa.Table):
        return frame
    if hasattr(frame, "__arrow_c_stream__") or hasattr(frame, "__arrow_c_array__"):
        return pa.table(frame)
    return frame.to_arrow()


def _take_table_columns(buffer: TypeBuffer, table: pa.Table, first_row_number: int = 1) -> None:
    """Take columns unchanged where they fit, and cast them where the cast is lossless."""
    table = _rename_columns(buffer, table)
    faults: RecordFaults = {}
    report_fault = fault_recorder(faults)
    columns: dict[str, pa.Array] = {}
    for prop in buffer.entity_type.properties:
        input_column = _column_or_default(table, prop.name, buffer.defaults[prop.name])
        columns[prop.name] = cast_column(prop, input_column, buffer.entity_type.name, report_fault, buffer.limits)
    if isinstance(buffer.entity_type, EdgeType):
        for member_name, stored_name in _ENDPOINT_COLUMNS.items():
            columns[stored_name] = _endpoint_column(table, stored_name, member_name, faults)
    row_count = table.num_rows
    id_column = _column_or_default(table, "id", None)
    input_column = None if id_column.null_count == row_count else id_column
    columns["id"] = buffer.resolve_ids(_as_table(columns, row_count), input_column, faults, row_count)
    buffer.append_columns(columns, faults, np.arange(first_row_number, first_row_number + row_count, dtype=np.int64))


def _rename_columns(buffer: TypeBuffer, table: pa.Table) -> pa.Table:
    """Rename the columns to their stored names; raise an error for unknown names."""
    is_edge = isinstance(buffer.entity_type, EdgeType)
    stored_names = [
        _ENDPOINT_COLUMNS.get(column_name, column_name) if is_edge else column_name
        for column_name in table.column_names
    ]
    duplicate_name = next((column_name for column_name in stored_names if stored_names.count(column_name) > 1), None)
    if duplicate_name is not None:
        raise InputError(reason=f"column '{duplicate_name}' is given twice")
    allowed_names = buffer.member_names | ({"src", "dst"} if is_edge else set())
    for error in unknown_property_errors(buffer.entity_type, stored_names, allowed_names):
        raise error
    return table.rename_columns(stored_names)


def _column_or_default(table: pa.Table, column_name: str, default: Any) -> pa.Array:
    if column_name in table.column_names:
        return table[column_name].combine_chunks()
    if default is None:
        return pa.nulls(table.num_rows)
    return pa.array([default] * table.num_rows)


def _endpoint_column(table: pa.Table, stored_name: str, member_name: str, faults: RecordFaults) -> pa.Array:
    input_column = _column_or_default(table, stored_name, None)
    if pa.types.is_string(input_column.type) and not input_column.null_count:
        return input_column
    endpoint_ids: list[str | None] = []
    for position, value in enumerate(input_column.to_pylist()):
        try:
            endpoint_ids.append(_endpoint_id(value, member_name))
        except InputError as error:
            faults.setdefault(position, []).append(error)
            endpoint_ids.append(None)
    return pa.array(endpoint_ids, pa.string())


def _as_table(columns: dict[str, pa.Array], row_count: int) -> pa.Table:
    return pa.table(columns) if columns else pa.table({"": pa.nulls(row_count)})
