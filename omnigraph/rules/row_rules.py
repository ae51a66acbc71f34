"""Rules for single rows: required values, enums, ranges, patterns, vectors and finite numbers.

These rules read only a batch of Arrow rows, not the graph, so separate processes can check separate batches. Arrow
already guarantees that every value has its declared type. A null satisfies every rule except `required`.
"""

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.lang.schema.catalog import Check, EdgeType, NodeType, PropertyDefinition, Range
from omnigraph.storage.arrow import table_key
from omnigraph.storage.wide_rows import matching_slices
from omnigraph.values import RANGES, ScalarType

from .delta import Positions, as_single_array
from .violation import Rule, Violation

RowContainer = Any  # a table or a record batch
ReasonFormatter = Callable[[Any], str]
BrokenRule = tuple[Rule, str, pa.Array, ReasonFormatter]  # (rule, property, mask of failing rows, reason)


def row_violations(
    entity_type: NodeType | EdgeType, rows: RowContainer, input_lines: Positions | None = None
) -> Iterator[Violation]:
    """Yield all violations of row rules in a batch, in row order."""
    first_row = 0
    for (piece,) in matching_slices(rows):  # a column of a piece fits into one array
        piece_lines = None if input_lines is None else input_lines[first_row : first_row + piece.num_rows]
        yield from _piece_violations(entity_type, piece, piece_lines)
        first_row += piece.num_rows


def _piece_violations(
    entity_type: NodeType | EdgeType, rows: RowContainer, input_lines: Positions | None
) -> Iterator[Violation]:
    broken_rows = [
        (int(row_index), rule, property_name, reason)
        for rule, property_name, broken_mask, reason in _find_broken_rules(entity_type, rows)
        for row_index in np.flatnonzero(_as_bool_array(broken_mask))
    ]
    for row_index, rule, property_name, reason in sorted(broken_rows, key=lambda broken_row: broken_row[0]):
        value = rows.column(property_name)[row_index].as_py()
        yield Violation(
            rule,
            table_key(entity_type),
            rows.column("id")[row_index].as_py(),
            property_name,
            reason(value),
            None if input_lines is None else int(input_lines[row_index]),
            value,
        )


def _find_broken_rules(entity_type: NodeType | EdgeType, rows: RowContainer) -> Iterator[BrokenRule]:
    """Yield each rule that at least one row violates, with a mask of these rows."""
    for declared_property in entity_type.properties:
        for rule, broken_mask, reason in _check_property(
            declared_property, as_single_array(rows.column(declared_property.name))
        ):
            if pc.any(broken_mask).as_py():
                yield rule, declared_property.name, broken_mask, reason
    for constraint in entity_type.constraints:
        if isinstance(constraint, Range | Check):
            broken_mask = _check_constraint(constraint, as_single_array(rows.column(constraint.column)), entity_type)
            if pc.any(broken_mask).as_py():
                yield (_rule_name(constraint), constraint.column, broken_mask, _reason_formatter(constraint))


def _check_property(
    declared_property: PropertyDefinition, column: pa.Array
) -> Iterator[tuple[Rule, pa.Array, ReasonFormatter]]:
    property_type = declared_property.type
    if not property_type.nullable and column.null_count:
        yield "required", pc.is_null(column), lambda _: "the property must have a value"
    if property_type.enum_values is not None:
        enum_array = pa.array(property_type.enum_values, pa.string())
        is_allowed = pc.is_in(column, value_set=enum_array)
        enum_text = ", ".join(property_type.enum_values)
        yield (
            "enum",
            pc.and_not(pc.is_valid(column), is_allowed),
            lambda value: f"invalid enum value '{value}', expected one of {enum_text}",
        )
    if property_type.is_list or property_type.is_vector:
        yield "value", _has_bad_element(column), lambda _: f"{property_type.display()} without null elements"
    elif property_type.scalar.is_float and len(column) > column.null_count:
        yield "value", pc.invert(pc.is_finite(column)), lambda _: "a finite number"


def _has_bad_element(column: pa.Array) -> pa.Array:
    """Return a mask of the rows that contain a null element or a number that is not finite."""
    elements = column.flatten()
    is_bad = pc.is_null(elements)
    if pa.types.is_floating(elements.type):
        is_bad = pc.or_(is_bad, pc.fill_null(pc.invert(pc.is_finite(elements)), False))
    row_mask = np.zeros(len(column), bool)
    if pc.any(is_bad).as_py():
        row_indexes = pc.list_parent_indices(column).to_numpy()
        row_mask[row_indexes[_as_bool_array(is_bad)]] = True
    return pa.array(row_mask)


def _check_constraint(constraint: Range | Check, column: pa.Array, entity_type: NodeType | EdgeType) -> pa.Array:
    if isinstance(constraint, Check):
        # Arrow uses RE2, the same engine that validated the pattern when the schema was read.
        return pc.invert(pc.match_substring_regex(column, constraint.pattern))
    declared_property = entity_type.property(constraint.column)
    scalar = declared_property.type.scalar if declared_property is not None else ScalarType.F64
    if scalar.is_integer and _is_unsatisfiable(constraint, scalar):
        return pc.is_valid(column)
    lower_bound, upper_bound = _exact_bounds(constraint, scalar)
    if scalar is ScalarType.F32:
        column = column.cast(pa.float64())
    violation_masks = []
    if lower_bound is not None:
        violation_masks.append(pc.less(column, pa.scalar(lower_bound, column.type)))
    if upper_bound is not None:
        violation_masks.append(pc.greater(column, pa.scalar(upper_bound, column.type)))
    if not violation_masks:
        return pa.array(np.zeros(len(column), bool))
    return violation_masks[0] if len(violation_masks) == 1 else pc.or_(*violation_masks)


def _exact_bounds(range_constraint: Range, scalar: ScalarType) -> tuple[Any, Any]:
    """Return the bounds as exact values of the column's type. Integers are never converted to floats."""
    if scalar.is_integer:
        type_minimum, type_maximum = RANGES[scalar]
        lower_bound = None if range_constraint.low is None else math.ceil(range_constraint.low)
        upper_bound = None if range_constraint.high is None else math.floor(range_constraint.high)
        return (
            None if lower_bound is None or lower_bound <= type_minimum else lower_bound,
            None if upper_bound is None or upper_bound >= type_maximum else upper_bound,
        )
    return _round_inward(range_constraint.low, math.inf), _round_inward(range_constraint.high, -math.inf)


def _is_unsatisfiable(range_constraint: Range, scalar: ScalarType) -> bool:
    """Return whether no value can satisfy the bounds because they lie outside the type's range."""
    type_minimum, type_maximum = RANGES[scalar]
    return (range_constraint.low is not None and range_constraint.low > type_maximum) or (
        range_constraint.high is not None and range_constraint.high < type_minimum
    )


def _round_inward(bound: int | float | None, inward: float) -> float | None:
    if bound is None:
        return None
    rounded = float(bound)
    is_outside = rounded < bound if inward > 0 else rounded > bound
    return math.nextafter(rounded, inward) if is_outside else rounded


def _rule_name(constraint: Range | Check) -> Rule:
    return "@range" if isinstance(constraint, Range) else "@check"


def _reason_formatter(constraint: Range | Check) -> ReasonFormatter:
    if isinstance(constraint, Check):
        return lambda value: f"{_quote_shortened(value)} does not match {constraint.pattern}"
    lower_text = "" if constraint.low is None else str(constraint.low)
    upper_text = "" if constraint.high is None else str(constraint.high)
    return lambda value: f"{value} is not in {lower_text}..{upper_text}"


def _quote_shortened(value: str) -> str:
    return f"'{value}'" if len(value) <= 80 else f"'{value[:79]}…'"


def _as_bool_array(mask: pa.Array) -> np.ndarray[Any, np.dtype[np.bool_]]:
    bool_array: np.ndarray[Any, np.dtype[np.bool_]] = pc.fill_null(mask, False).to_numpy(zero_copy_only=False)
    return bool_array
