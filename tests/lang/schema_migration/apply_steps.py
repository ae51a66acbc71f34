"""Executes the steps of a plan on the shape of a schema, from their JSON alone.

A second, naive reading of every step: if the planner forgets a change, orders two steps wrongly or
uses a stale name, the result is not the shape that was asked for.
"""

from collections.abc import Callable
from copy import deepcopy
from typing import Any

Json = dict[str, Any]
KINDS = ("interface", "node", "edge")


def apply_steps(before: Json, steps: list[Json], after: Json) -> Json:
    """The shape after all steps; `after` only says what added types and properties look like."""
    here, wanted = _indexed(before), _indexed(after)
    for step in steps:
        _APPLY[step["kind"]](here, step, wanted)
    return _listed(here)


def without_positions(shape: Json) -> Json:
    """The shape without where constraints are written: steps say what holds, not where."""
    plain = deepcopy(shape)
    for one in (*plain["nodes"], *plain["edges"]):
        for prop in one["properties"]:
            prop["constraints"] = []
    return plain


def _indexed(shape: Json) -> Json:
    made: Json = {}
    for kind in KINDS:
        made[kind] = {one["name"]: deepcopy(one) for one in shape[f"{kind}s"]}
        for one in made[kind].values():
            one["properties"] = {prop["name"]: prop for prop in one["properties"]}
    return made


def _listed(here: Json) -> Json:
    made: Json = {}
    for kind in KINDS:
        made[f"{kind}s"] = [here[kind][name] for name in sorted(here[kind])]
        for one in made[f"{kind}s"]:
            one["properties"] = [one["properties"][name] for name in sorted(one["properties"])]
            if "constraints" in one:
                one["constraints"].sort(key=repr)
    return made


def sorted_constraints(shape: Json) -> Json:
    """The shape with constraints in the order that `apply_steps` leaves them in."""
    return _listed(_indexed(shape))


def _add_type(here: Json, step: Json, wanted: Json) -> None:
    kind, name = step["type_kind"], step["name"]
    assert name not in here[kind]
    here[kind][name] = deepcopy(wanted[kind][name])


def _rename_type(here: Json, step: Json, _: Json) -> None:
    kind, old, new = step["type_kind"], step["from"], step["to"]
    assert new not in here[kind]
    here[kind][new] = here[kind].pop(old) | {"name": new}
    for edge in here["edge"].values() if kind == "node" else ():
        for end in ("from_type", "to_type"):
            edge[end] = new if edge[end] == old else edge[end]


def _drop_type(here: Json, step: Json, _: Json) -> None:
    del here[step["type_kind"]][step["name"]]


def _update_type(here: Json, step: Json, _: Json) -> None:
    here[step["type_kind"]][step["name"]]["annotations"] = step["annotations"]


def _owner(here: Json, step: Json) -> Json:
    found: Json = here[step["type_kind"]][step["type_name"]]
    return found


def _property(here: Json, step: Json) -> Json:
    found: Json = _owner(here, step)["properties"][step["property_name"]]
    return found


def _add_property(here: Json, step: Json, wanted: Json) -> None:
    name = step["property_name"]
    assert name not in _owner(here, step)["properties"]
    made = deepcopy(_property(wanted, step))
    assert made["type"] == step["property_type"]
    _owner(here, step)["properties"][name] = made
    if step["type_kind"] == "interface":
        made["constraints"] = []  # its marks are added by steps of their own


def _rename_property(here: Json, step: Json, _: Json) -> None:
    owner, old, new = _owner(here, step), step["from"], step["to"]
    assert new not in owner["properties"]
    owner["properties"][new] = owner["properties"].pop(old) | {"name": new}
    owner["constraints"] = [_renamed(one, old, new) for one in owner.get("constraints", [])]
    if step["type_kind"] == "interface":
        del owner["constraints"]
        _rename_origin(here, step)
    for prop in owner["properties"].values():
        if prop["embed"] is not None and prop["embed"]["source"] == old:
            prop["embed"]["source"] = new


def _rename_origin(here: Json, step: Json) -> None:
    for node in here["node"].values():
        for prop in node["properties"].values():
            for pair in prop["satisfies"]:
                if pair == {"interface": step["type_name"], "property": step["from"]}:
                    pair["property"] = step["to"]


def _renamed(constraint: Json, old: str, new: str) -> Json:
    ((kind, body),) = constraint.items()
    if isinstance(body, list):
        return {kind: sorted(new if name == old else name for name in body)}
    body = dict(body)
    if "properties" in body:
        body["properties"] = sorted(new if name == old else name for name in body["properties"])
    elif body["property"] == old:
        body["property"] = new
    return {kind: body}


def _drop_property(here: Json, step: Json, _: Json) -> None:
    owner, name = _owner(here, step), step["property_name"]
    left = [one for one in owner.get("constraints", []) if _renamed(one, name, "?") != one]
    assert not left, f"{name} is dropped before {left}"
    del owner["properties"][name]


def _widen(here: Json, step: Json, _: Json) -> None:
    prop = _property(here, step)
    assert prop["type"] == step["from"]
    prop["type"] = step["to"]


def _relax(here: Json, step: Json, _: Json) -> None:
    _property(here, step)["type"]["nullable"] = True


def _tighten(here: Json, step: Json, _: Json) -> None:
    _property(here, step)["type"]["nullable"] = False


def _extend(here: Json, step: Json, _: Json) -> None:
    kind = _property(here, step)["type"]
    assert not set(kind["enum_values"]) & set(step["added_values"])
    kind["enum_values"] = sorted(kind["enum_values"] + step["added_values"])


def _narrow(here: Json, step: Json, _: Json) -> None:
    values = _property(here, step)["type"]["enum_values"]
    for value in step["removed_values"]:
        values.remove(value)


def _change_default(here: Json, step: Json, _: Json) -> None:
    prop = _property(here, step)
    found = [one["value"] for one in prop["annotations"] if one["name"] == "default"]
    assert found == ([] if step["from"] is None else [step["from"]])
    kept = [one for one in prop["annotations"] if one["name"] != "default"]
    kept += [] if step["to"] is None else [{"name": "default", "value": step["to"]}]
    prop["annotations"] = sorted(kept, key=_by_name)


def _update_property(here: Json, step: Json, _: Json) -> None:
    prop = _property(here, step)
    default = [one for one in prop["annotations"] if one["name"] == "default"]
    prop["annotations"] = sorted(step["annotations"] + default, key=_by_name)


def _by_name(annotation: Json) -> str:
    return str(annotation["name"])


def _add_constraint(here: Json, step: Json, _: Json) -> None:
    if step["type_kind"] == "interface":
        marks, word = _mark(here, step)
        assert word not in marks
        marks.append(word)
        marks.sort()
        return
    assert step["constraint"] not in _owner(here, step)["constraints"]
    _owner(here, step)["constraints"].append(step["constraint"])


def _drop_constraint(here: Json, step: Json, _: Json) -> None:
    if step["type_kind"] == "interface":
        marks, word = _mark(here, step)
        marks.remove(word)
        return
    _owner(here, step)["constraints"].remove(step["constraint"])


def _mark(here: Json, step: Json) -> tuple[list[str], str]:
    (((kind, columns),),) = (step["constraint"].items(),)
    marks: list[str] = _owner(here, step)["properties"][columns[0]]["constraints"]
    return marks, kind.lower()


def _change_index(here: Json, step: Json, _: Json) -> None:
    constraints = _owner(here, step)["constraints"]
    constraints.remove(step["from"])
    constraints.append(step["to"])


def _restate(here: Json, step: Json, _: Json) -> None:
    marks, word = _mark(here, step)
    assert (word in marks) != step["on_property"]


def _cardinality(here: Json, step: Json, _: Json) -> None:
    owner = _owner(here, step)
    assert owner["cardinality"] == step["from"]
    owner["cardinality"] = step["to"]


def _endpoints(here: Json, step: Json, _: Json) -> None:
    _owner(here, step).update(step["to"])


_APPLY: dict[str, Callable[[Json, Json, Json], None]] = {
    "add_type": _add_type,
    "rename_type": _rename_type,
    "drop_type": _drop_type,
    "update_type_metadata": _update_type,
    "add_property": _add_property,
    "rename_property": _rename_property,
    "drop_property": _drop_property,
    "widen_property": _widen,
    "relax_property": _relax,
    "tighten_property": _tighten,
    "extend_enum": _extend,
    "narrow_enum": _narrow,
    "change_default": _change_default,
    "update_property_metadata": _update_property,
    "add_constraint": _add_constraint,
    "drop_constraint": _drop_constraint,
    "change_index_options": _change_index,
    "restate_constraint": _restate,
    "change_cardinality": _cardinality,
    "change_endpoints": _endpoints,
}
