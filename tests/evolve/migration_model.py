"""Effects of a schema change on dictionaries: an independent, simple execution of steps.

Knows nothing but the JSON of steps and rows as they are exported.
"""

from collections.abc import Iterable
from typing import Any

Row = dict[str, Any]
Rows = dict[str, dict[str, Row]]  # by type, by id
_NUMBERS = {"I32": int, "I64": int, "U32": int, "U64": int, "F32": float, "F64": float}


def carried(rows: Rows, steps: Iterable[dict[str, Any]]) -> Rows:
    """The rows after all steps."""
    here = {key: {name: dict(row) for name, row in some.items()} for key, some in rows.items()}
    for step in steps:
        act = _ACTS.get(step["kind"])
        if act is not None and step["type_kind"] != "interface":
            act(here, step)
    return {key: some for key, some in here.items() if some}


def _key(step: dict[str, Any], name: str) -> str:
    return f"{step['type_kind']}:{step[name]}"


def _rename_type(here: Rows, step: dict[str, Any]) -> None:
    here[_key(step, "to")] = here.pop(_key(step, "from"), {})


def _drop_type(here: Rows, step: dict[str, Any]) -> None:
    here.pop(_key(step, "name"), None)


def _add_property(here: Rows, step: dict[str, Any]) -> None:
    if "default" not in step:
        return
    kind = step["property_type"]["scalar"]
    text = step["default"]
    value = text == "true" if kind == "Bool" else _NUMBERS.get(kind, str)(text)
    for row in here.get(_key(step, "type_name"), {}).values():
        row[step["property_name"]] = value


def _rename_property(here: Rows, step: dict[str, Any]) -> None:
    for row in here.get(_key(step, "type_name"), {}).values():
        if step["from"] in row:
            row[step["to"]] = row.pop(step["from"])


def _drop_property(here: Rows, step: dict[str, Any]) -> None:
    for row in here.get(_key(step, "type_name"), {}).values():
        row.pop(step["property_name"], None)


_ACTS = {
    "rename_type": _rename_type,
    "drop_type": _drop_type,
    "add_property": _add_property,
    "rename_property": _rename_property,
    "drop_property": _drop_property,
}
