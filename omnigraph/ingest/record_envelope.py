"""The envelope around one record in a load: `{"type": ...}` for a node or `{"edge": ...}` for an edge.

The same rules apply to JSON lines and dicts. This module checks only the member names inside `data`; `columns` checks
their values.
"""

from typing import Any

from omnigraph.errors import ClientError, InputError
from omnigraph.lang.schema.catalog import EdgeType, NodeType
from omnigraph.lang.schema.type_names import resolve_type

from .edge_endpoints import ENDPOINT_COLUMNS, with_endpoint_members
from .record_intake import Intake, TypeBuffer, unknown_property_errors

_NODE_MEMBERS = frozenset({"type", "data"})
_EDGE_MEMBERS = frozenset({"edge", "from", "to", "data"})
_STORED_ENDPOINTS = frozenset(ENDPOINT_COLUMNS.values())
_EMPTY_RECORD: dict[str, Any] = {}


def take_record(intake: Intake, line_number: int, record: Any, *, allow_truncate: bool) -> None:
    """Add a record to its type's buffer, or report why it is invalid."""
    try:
        if type(record) is not dict:
            raise InputError(reason=f"expected one JSON object, got {json_type_name(record)}")
        if _is_baseline_end(record):
            return
        if "type" in record and "edge" not in record:
            _take_node(intake, line_number, record, allow_truncate)
        else:
            _take_edge(intake, line_number, record, allow_truncate)
    except ClientError as error:
        readable_record = record if isinstance(record, dict) else _EMPTY_RECORD
        named_type = readable_record.get("type", readable_record.get("edge"))
        type_name = named_type if isinstance(named_type, str) else None
        properties = readable_record.get("data")
        record_values = properties.values() if isinstance(properties, dict) else ()
        intake.problems.add(
            with_line_number(error, line_number),
            line_number,
            type_name,
            _record_id(readable_record),
            record_values=record_values,
        )


def _is_baseline_end(record: dict[str, Any]) -> bool:
    """Return whether a record is the closing record of a change baseline, which is not an entity."""
    baseline = record.get("baseline") if len(record) == 1 else None
    return type(baseline) is dict and baseline.keys() == {"snapshot_commit_id", "resume_cursor"}


def with_line_number(error: ClientError, line_number: int) -> ClientError:
    """Return the same error with the line number added to its details."""
    return type(error)(hint=error.hint, **{**error.details, "line": line_number})


def envelope_error(type_name: str, line_number: int) -> InputError:
    """Return the error for a record that specifies its own type although the caller passed a type for its file."""
    return InputError(
        reason=f"the file was passed as {type_name}, but the record specifies its own type",
        hint="pass the file without a type, or remove 'type', 'edge' and 'data' from its records",
        line=line_number,
    )


def _take_node(intake: Intake, line_number: int, record: dict[str, Any], allow_truncate: bool) -> None:
    type_name = _string_member(record, "type")
    node_type = resolve_type(intake.ir.catalog, type_name, "node")
    buffer = intake.buffer_for(node_type)
    if not record.keys() <= _NODE_MEMBERS:
        buffer.truncated |= _is_truncation(record, _NODE_MEMBERS, allow_truncate)
        return
    properties, faults = _record_properties(record, node_type, buffer.member_names)
    buffer.add(line_number, properties, known_faults=faults)


def _take_edge(intake: Intake, line_number: int, record: dict[str, Any], allow_truncate: bool) -> None:
    if "edge" not in record or "type" in record:
        raise InputError(reason="a record must have exactly one of 'type' and 'edge'")
    if not _STORED_ENDPOINTS.isdisjoint(record):
        record = with_endpoint_members(record)
    type_name = _string_member(record, "edge")
    edge_type = resolve_type(intake.ir.catalog, type_name, "edge", ignore_case=True)
    buffer = intake.buffer_for(edge_type)
    if not record.keys() <= _EDGE_MEMBERS:
        buffer.truncated |= _is_truncation(record, _EDGE_MEMBERS, allow_truncate)
        return
    properties, faults = _record_properties(record, edge_type, buffer.member_names)
    endpoint_ids = _endpoint_id(buffer, record, "from", faults), _endpoint_id(buffer, record, "to", faults)
    buffer.add(line_number, properties, endpoint_ids, faults)


def _endpoint_id(buffer: TypeBuffer, record: dict[str, Any], member_name: str, faults: list[ClientError]) -> str | None:
    if member_name not in record and not buffer.requires_endpoints:
        return None
    try:
        return _string_member(record, member_name)
    except ClientError as error:
        faults.append(error)
        return ""


def _is_truncation(record: dict[str, Any], allowed_members: frozenset[str], allow_truncate: bool) -> bool:
    """Return True if `truncate` is the only unknown member and is valid; otherwise, raise `InputError`."""
    unknown_member = next(member_name for member_name in record if member_name not in allowed_members)
    if unknown_member != "truncate":
        raise InputError(reason=f"unknown member '{unknown_member}' in a record", member=unknown_member)
    if record["truncate"] is not True or len(record) != 2:
        reason = "a record with 'truncate' may contain only its type and 'truncate': true"
        raise InputError(reason=reason, member=unknown_member)
    if not allow_truncate:
        raise InputError(reason="'truncate' requires mode 'overwrite'", member=unknown_member)
    return True


def _record_properties(
    record: dict[str, Any], entity_type: NodeType | EdgeType, property_names: frozenset[str]
) -> tuple[dict[str, Any], list[ClientError]]:
    """Return a record's properties, and any faults in the property names or in the id."""
    properties: Any = record.get("data", _EMPTY_RECORD)
    if type(properties) is not dict:
        raise InputError(reason=f"'data' must be an object, got {json_type_name(properties)}", member="data")
    faults: list[ClientError] = []
    if not properties.keys() <= property_names:
        faults += unknown_property_errors(entity_type, properties, property_names)
    if "id" in properties and not isinstance(properties["id"], str):
        reason = f"'id' must be a string, got {json_type_name(properties['id'])}"
        faults.append(InputError(reason=reason, member="id", hint=string_id_hint(properties["id"])))
        properties = {**properties, "id": None}
    return properties, faults


def _string_member(record: dict[str, Any], member_name: str) -> str:
    value = record.get(member_name)
    if not isinstance(value, str):
        actual_type = json_type_name(value) if member_name in record else "nothing"
        reason = f"'{member_name}' must be a string, got {actual_type}"
        raise InputError(reason=reason, member=member_name, hint=string_id_hint(value))
    return value


def string_id_hint(value: Any) -> str | None:
    """Return a hint on how to write a number that is intended as an id, or None for any other value.

    >>> string_id_hint(5)
    'ids are strings: write "5"'
    """
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return f'ids are strings: write "{value}"' if is_number else None


def _record_id(record: dict[str, Any]) -> str | None:
    properties = record.get("data")
    entity_id = properties.get("id") if isinstance(properties, dict) else None
    return entity_id if isinstance(entity_id, str) else None


def json_type_name(value: Any) -> str:
    """Return the name of a JSON value's type, with an article.

    >>> json_type_name([]), json_type_name(None)
    ('an array', 'null')
    """
    container_names = {dict: "an object", list: "an array", str: "a string", bool: "a boolean"}
    scalar_names = {int: "a number", float: "a number", type(None): "null"}
    return (container_names | scalar_names).get(type(value), type(value).__name__)
