"""One record of a load: `{"type": ...}` for a node, `{"edge": ...}` for an edge.

Owns the rules of the envelope, for JSON lines and dicts alike. Checks only the member names inside
`data`; their values are checked by `columns`.
"""

from typing import Any

from omnigraph.errors import ClientError, InputError
from omnigraph.lang.schema.catalog import Catalog, Edge, Node
from omnigraph.lang.schema.names import did_you_mean
from omnigraph.naming import quote_name

from .intake import Intake, unknown_properties

_NODE = frozenset({"type", "data"})
_EDGE = frozenset({"edge", "from", "to", "data"})
_EMPTY: dict[str, Any] = {}


def take(intake: Intake, line: int, record: Any, *, truncating: bool) -> None:
    """Add a record to the buffer of its type, or record why it is invalid."""
    try:
        if type(record) is not dict:
            raise InputError(reason=f"expected one JSON object, got {_kind(record)}")
        if _closes_baseline(record):
            return
        if "type" in record and "edge" not in record:
            _node(intake, line, record, truncating)
        else:
            _edge(intake, line, record, truncating)
    except ClientError as error:
        named = record if isinstance(record, dict) else _EMPTY
        name = named.get("type", named.get("edge"))
        shown = name if isinstance(name, str) else None
        data = named.get("data")
        holds = data.values() if isinstance(data, dict) else ()
        intake.problems.add(placed(error, line), line, shown, _id(named), holds=holds)


def _closes_baseline(record: dict[str, Any]) -> bool:
    """Return whether this is the closing record of a change baseline, which is not an entity."""
    told = record.get("baseline") if len(record) == 1 else None
    return type(told) is dict and told.keys() == {"snapshot_commit_id", "resume_cursor"}


def placed(error: ClientError, line: int) -> ClientError:
    """Return the same error with the line number among its details."""
    return type(error)(hint=error.hint, **{**error.details, "line": line})


def _node(intake: Intake, line: int, record: dict[str, Any], truncating: bool) -> None:
    name = _text(record, "type")
    one = intake.ir.catalog.node(name)
    if one is None:
        raise _unknown("node", name, [each.name for each in intake.ir.catalog.nodes])
    shelf = intake.shelf(one)
    if not record.keys() <= _NODE:
        shelf.truncated |= _truncation(record, _NODE, truncating)
        return
    data, wrong = _data(record, one, shelf.known)
    shelf.add(line, data, wrong=wrong)


def _edge(intake: Intake, line: int, record: dict[str, Any], truncating: bool) -> None:
    if "edge" not in record or "type" in record:
        raise InputError(reason="a record has exactly one of 'type' and 'edge'")
    name = _text(record, "edge")
    one = _edge_type(intake.ir.catalog, name)
    shelf = intake.shelf(one)
    if not record.keys() <= _EDGE:
        shelf.truncated |= _truncation(record, _EDGE, truncating)
        return
    data, wrong = _data(record, one, shelf.known)
    ends = _end(record, "from", wrong), _end(record, "to", wrong)
    shelf.add(line, data, ends, wrong)


def _end(record: dict[str, Any], name: str, wrong: list[ClientError]) -> str:
    try:
        return _text(record, name)
    except ClientError as error:
        wrong.append(error)
        return ""


def _edge_type(catalog: Catalog, name: str) -> Edge:
    found = catalog.edge_by_word(name)
    if found is None:
        raise _unknown("edge", name, [each.name for each in catalog.edges])
    return found


def _truncation(record: dict[str, Any], known: frozenset[str], truncating: bool) -> bool:
    """Return whether the record truncates its type; any other unknown member is an error."""
    extra = next(name for name in record if name not in known)
    if extra != "truncate":
        raise InputError(reason=f"unknown member '{extra}' in a record", member=extra)
    if record["truncate"] is not True or len(record) != 2:
        reason = "'truncate' must be true and the only member besides the type"
        raise InputError(reason=reason, member=extra)
    if not truncating:
        raise InputError(reason="'truncate' requires mode 'overwrite'", member=extra)
    return True


def _data(
    record: dict[str, Any], one: Node | Edge, known: frozenset[str]
) -> tuple[dict[str, Any], list[ClientError]]:
    """Return the properties of a record, and the faults of their names or of the id."""
    data: Any = record.get("data", _EMPTY)
    if type(data) is not dict:
        raise InputError(reason=f"'data' must be an object, got {_kind(data)}", member="data")
    wrong: list[ClientError] = []
    if not data.keys() <= known:
        wrong += unknown_properties(one, data, known)
    if "id" in data and not isinstance(data["id"], str):
        reason = f"'id' must be a string, got {_kind(data['id'])}"
        wrong.append(InputError(reason=reason, member="id", hint=as_text(data["id"])))
        data = {**data, "id": None}
    return data, wrong


def _text(record: dict[str, Any], name: str) -> str:
    value = record.get(name)
    if not isinstance(value, str):
        got = _kind(value) if name in record else "nothing"
        reason = f"'{name}' must be a string, got {got}"
        raise InputError(reason=reason, member=name, hint=as_text(value))
    return value


def as_text(value: Any) -> str | None:
    """Return a hint on how to write a number that is meant as an id.

    >>> as_text(5)
    'ids are strings: write "5"'
    """
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return f'ids are strings: write "{value}"' if is_number else None


def _unknown(kind: str, name: str, known: list[str]) -> InputError:
    hint = did_you_mean(name, known)
    return InputError(reason=f"there is no {kind} type {quote_name(name)}", hint=hint)


def _id(record: dict[str, Any]) -> str | None:
    data = record.get("data")
    found = data.get("id") if isinstance(data, dict) else None
    return found if isinstance(found, str) else None


def _kind(value: Any) -> str:
    names = {dict: "an object", list: "an array", str: "a string", bool: "a boolean"}
    numbers = {int: "a number", float: "a number", type(None): "null"}
    return (names | numbers).get(type(value), type(value).__name__)
