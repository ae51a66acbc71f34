"""Rules of single rows: required values, enums, ranges, patterns, vectors, finite numbers.

Works on Arrow data without reading a graph, so that any process can check any part of the data.
Arrow already guarantees the types. Null passes every rule except `required`.
"""

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.lang.schema.catalog import Check, Edge, Node, Property, Range
from omnigraph.storage.arrow import table_key
from omnigraph.values import RANGES, ScalarType

from .delta import Positions, flat
from .violation import Rule, Violation

Rows = Any  # a table or a record batch
Reason = Callable[[Any], str]
Broken = tuple[Rule, str, pa.Array, Reason]  # rule, property, mask of broken rows, reason


def row_violations(
    one: Node | Edge, rows: Rows, lines: Positions | None = None
) -> Iterator[Violation]:
    """Yield every row rule that a batch breaks, in row order."""
    found = [
        (int(at), rule, name, reason)
        for rule, name, mask, reason in _broken(one, rows)
        for at in np.flatnonzero(_plain(mask))
    ]
    for at, rule, name, reason in sorted(found, key=lambda each: each[0]):
        value = rows.column(name)[at].as_py()
        yield Violation(
            rule,
            table_key(one),
            rows.column("id")[at].as_py(),
            name,
            reason(value),
            None if lines is None else int(lines[at]),
            value,
        )


def _broken(one: Node | Edge, rows: Rows) -> Iterator[Broken]:
    """Yield the rules that at least one row breaks, each with a mask of those rows."""
    for prop in one.properties:
        for rule, mask, reason in _of_property(prop, flat(rows.column(prop.name))):
            if pc.any(mask).as_py():
                yield rule, prop.name, mask, reason
    for limit in one.constraints:
        if isinstance(limit, Range | Check):
            mask = _of_rule(limit, flat(rows.column(limit.column)), one)
            if pc.any(mask).as_py():
                yield _named(limit), limit.column, mask, _reason(limit)


def _of_property(prop: Property, column: pa.Array) -> Iterator[tuple[Rule, pa.Array, Reason]]:
    kind = prop.type
    if not kind.nullable and column.null_count:
        yield "required", pc.is_null(column), lambda _: "it must have a value"
    if kind.enum_values is not None:
        allowed = pa.array(kind.enum_values, pa.string())
        inside = pc.is_in(column, value_set=allowed)
        shown = ", ".join(kind.enum_values)
        yield (
            "enum",
            pc.and_not(pc.is_valid(column), inside),
            lambda v: f"invalid enum value '{v}', expected one of {shown}",
        )
    if kind.is_list or kind.is_vector:
        yield "value", _bad_elements(column), lambda _: f"{kind.display()} without null"
    elif kind.scalar.is_float and len(column) > column.null_count:
        yield "value", pc.invert(pc.is_finite(column)), lambda _: "a finite number"


def _bad_elements(column: pa.Array) -> pa.Array:
    """Return a mask of rows with an element that is null or not a finite number."""
    items = column.flatten()
    bad = pc.is_null(items)
    if pa.types.is_floating(items.type):
        bad = pc.or_(bad, pc.fill_null(pc.invert(pc.is_finite(items)), False))
    rows = np.zeros(len(column), bool)
    if pc.any(bad).as_py():
        parents = pc.list_parent_indices(column).to_numpy()
        rows[parents[_plain(bad)]] = True
    return pa.array(rows)


def _of_rule(rule: Range | Check, column: pa.Array, one: Node | Edge) -> pa.Array:
    if isinstance(rule, Check):
        # Arrow matches with RE2, the engine that validated the pattern when the schema was read.
        return pc.invert(pc.match_substring_regex(column, rule.pattern))
    prop = one.property(rule.column)
    scalar = prop.type.scalar if prop is not None else ScalarType.F64
    if scalar.is_integer and _impossible(rule, scalar):
        return pc.is_valid(column)
    low, high = _bounds(rule, scalar)
    if scalar is ScalarType.F32:
        column = column.cast(pa.float64())
    masks = []
    if low is not None:
        masks.append(pc.less(column, pa.scalar(low, column.type)))
    if high is not None:
        masks.append(pc.greater(column, pa.scalar(high, column.type)))
    if not masks:
        return pa.array(np.zeros(len(column), bool))
    return masks[0] if len(masks) == 1 else pc.or_(*masks)


def _bounds(rule: Range, scalar: ScalarType) -> tuple[Any, Any]:
    """Return the bounds as exact column values: no integer passes through a float."""
    if scalar.is_integer:
        first, last = RANGES[scalar]
        low = None if rule.low is None else math.ceil(rule.low)
        high = None if rule.high is None else math.floor(rule.high)
        return (
            None if low is None or low <= first else low,
            None if high is None or high >= last else high,
        )
    return _float_bound(rule.low, math.inf), _float_bound(rule.high, -math.inf)


def _impossible(rule: Range, scalar: ScalarType) -> bool:
    """Return whether the bounds lie outside of the type, so that no value satisfies them."""
    first, last = RANGES[scalar]
    return (rule.low is not None and rule.low > last) or (
        rule.high is not None and rule.high < first
    )


def _float_bound(bound: int | float | None, inward: float) -> float | None:
    if bound is None:
        return None
    near = float(bound)
    outside = near < bound if inward > 0 else near > bound
    return math.nextafter(near, inward) if outside else near


def _named(rule: Range | Check) -> Rule:
    return "@range" if isinstance(rule, Range) else "@check"


def _reason(rule: Range | Check) -> Reason:
    if isinstance(rule, Check):
        return lambda value: f"{_short(value)} does not match {rule.pattern}"
    low = "" if rule.low is None else str(rule.low)
    high = "" if rule.high is None else str(rule.high)
    return lambda value: f"{value} is not in {low}..{high}"


def _short(value: str) -> str:
    return f"'{value}'" if len(value) <= 80 else f"'{value[:79]}…'"


def _plain(mask: pa.Array) -> np.ndarray[Any, np.dtype[np.bool_]]:
    found: np.ndarray[Any, np.dtype[np.bool_]] = pc.fill_null(mask, False).to_numpy(
        zero_copy_only=False
    )
    return found
