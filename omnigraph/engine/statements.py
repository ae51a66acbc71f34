"""Execution of insert, update and delete statements on an overlay, one at a time.

Owns the conversion of statement values to row values, generated ids, and the counts of affected
entities. Never reads the store directly and never publishes.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from omnigraph import ids
from omnigraph.errors import ExternalBlobPolicyError, InternalError, PropertyValueError
from omnigraph.ingest.columns import stored_column
from omnigraph.ingest.defaults import default_value
from omnigraph.ingest.limits import LoadLimits, within
from omnigraph.lang.query import plan
from omnigraph.lang.schema.catalog import Edge, Node, Property
from omnigraph.lang.schema.ir import key_order
from omnigraph.rules.check import type_named
from omnigraph.rules.delta import FRESH, UNKNOWN
from omnigraph.values import BlobUri, coerce_assigned, entity_id

from .overlay import Overlay, Params

_LONGEST = LoadLimits().value_bytes


@dataclass(slots=True)
class Tally:
    """What the statements of an operation affected."""

    nodes: dict[str, int] = field(default_factory=dict)
    edges: dict[str, int] = field(default_factory=dict)
    ids: dict[str, list[str]] = field(default_factory=dict)

    def count(self, kind: str, name: str, number: int) -> None:
        """Count affected entities of a type."""
        if number:
            counts = self.nodes if kind == "node" else self.edges
            counts[name] = counts.get(name, 0) + number


class Mint:
    """Generates ids; a retry of the same operation gets the same ids again."""

    def __init__(self) -> None:
        self._made: list[str] = []
        self._next = 0

    def restart(self) -> None:
        """Start again with the first id."""
        self._next = 0

    def __call__(self) -> str:
        """Return the next id."""
        if self._next == len(self._made):
            self._made.append(ids.new_ulid())
        self._next += 1
        return self._made[self._next - 1]


def execute(
    overlay: Overlay, one: plan.WriteStatement, params: Params, tally: Tally, mint: Mint
) -> None:
    """Run one statement on an overlay."""
    match one:
        case plan.InsertRow():
            _insert(overlay, one, params, tally, mint)
        case plan.UpdateRows():
            node = type_named(overlay.catalog, f"node:{one.type_name}")
            values = {a.name: _scalar(node, a, params) for a in one.assignments}
            count = overlay.update(f"node:{node.name}", one.where, params, values)
            tally.count("node", node.name, count)
        case plan.DeleteRows():
            _delete(overlay, one, params, tally)


def _delete(overlay: Overlay, one: plan.DeleteRows, params: Params, tally: Tally) -> None:
    gone = overlay.delete(f"{one.kind}:{one.type_name}", one.where, params)
    tally.count(one.kind, one.type_name, len(gone))
    for name in one.cascades if len(gone) else ():
        edge = overlay.catalog.edge(name)
        if edge is not None:
            tally.count("edge", name, overlay.cascade(edge, one.type_name, gone))


def _insert(
    overlay: Overlay, one: plan.InsertRow, params: Params, tally: Tally, mint: Mint
) -> None:
    key = f"{one.kind}:{one.type_name}"
    type_ = type_named(overlay.catalog, key)
    given = {a.name: _given(a, params) for a in one.assignments}
    values = {prop.name: _stored(type_, prop, given) for prop in type_.properties}
    if isinstance(type_, Edge):
        values |= {"src": _end(type_, given, "from"), "dst": _end(type_, given, "to")}
    names = key_order(overlay.ir, type_.name) if isinstance(type_, Node) else ()
    values["id"] = _key_id(type_, names, values) if names else mint()
    schema = overlay.schema(key)
    rows = pa.table([pa.array([values[f.name]], f.type) for f in schema], schema=schema)
    overlay.write(key, rows, UNKNOWN if names else FRESH)
    tally.count(one.kind, type_.name, 1)
    tally.ids.setdefault(type_.name, []).append(values["id"])


def _stored(type_: Node | Edge, prop: Property, given: Mapping[str, Any]) -> Any:
    """Return the value of a property in a new row; constraints are checked later."""
    if prop.name not in given:
        return default_value(prop)
    return _fitting(type_, prop, given[prop.name])


def _scalar(node: Node | Edge, one: plan.Assign, params: Params) -> pa.Scalar:
    prop = node.property(one.name)
    if prop is None:
        raise InternalError(reason=f"{node.name} has no property {one.name}")
    return stored_column(prop.type, [_fitting(node, prop, _given(one, params))])[0]


def _fitting(type_: Node | Edge, prop: Property, value: Any) -> Any:
    fits = coerce_assigned(prop.type, value, type_name=type_.name, property=prop.name)
    if isinstance(fits, BlobUri):
        raise ExternalBlobPolicyError(uri=fits.uri, reason="this graph allows no external blobs")
    if isinstance(fits, str | bytes) and len(fits) * 4 > _LONGEST:
        size = len(fits.encode() if isinstance(fits, str) else fits)
        within(f"one value of {type_.name}.{prop.name}", size, _LONGEST)
    return fits


def _given(one: plan.Assign, params: Params) -> Any:
    match one.value:
        case plan.Constant(value=value):
            return value
        case plan.Parameter(name=name):
            return params[name]
    raise InternalError(reason=f"{type(one.value).__name__} cannot be assigned")


def _end(edge: Edge, given: Mapping[str, Any], name: str) -> str:
    value = given[name]
    if not isinstance(value, str):
        raise PropertyValueError(
            type_name=edge.name, property=name, expected="String", actual="null"
        )
    return value


def _key_id(node: Node | Edge, names: tuple[str, ...], values: Mapping[str, Any]) -> str:
    kinds = [prop.type for name in names if (prop := node.property(name)) is not None]
    return entity_id(kinds, [values[name] for name in names], names)
