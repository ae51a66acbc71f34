"""Typed values, and the rules that determine which types are compatible.

This module defines the record for a resolved expression and the functions that test and compare types. It does not
depend on variables or clauses, and it reports no errors.
"""

from omnigraph.errors.diagnostics import Span
from omnigraph.lang.query import plan, plan_paths
from omnigraph.records.frozen import record
from omnigraph.values import PropertyType, ScalarType

STRING = PropertyType(ScalarType.STRING)
BOOL = PropertyType(ScalarType.BOOL)
I64 = PropertyType(ScalarType.I64)
F64 = PropertyType(ScalarType.F64)
DATETIME = PropertyType(ScalarType.DATETIME)


@record
class TypedValue:
    """A resolved expression. `type` is None for nodes, edges and whole paths."""

    value: plan.Value
    type: PropertyType | None
    span: Span

    @property
    def is_null(self) -> bool:
        """Return whether the value is the literal `null`."""
        return isinstance(self.value, plan.Constant) and self.value.value is None

    @property
    def is_literal(self) -> bool:
        """Return whether the value is a constant in the query text, not a parameter."""
        return isinstance(self.value, plan.Constant)

    @property
    def is_constant(self) -> bool:
        """Return whether the value is the same for all rows: a literal, a parameter or `now()`."""
        return isinstance(self.value, plan.Constant | plan.Parameter)

    @property
    def is_now(self) -> bool:
        """Return whether the value is `now()`."""
        return isinstance(self.value, plan.Parameter) and self.value.name == plan.NOW_PARAMETER

    def describe_type(self) -> str:
        """Describe the type in words, for use in a message."""
        if self.is_null:
            return "null"
        if isinstance(self.value, plan_paths.PathEntity):
            return "a path"
        if isinstance(self.value, plan.Entity) and self.value.edge_types:
            return "an edge"
        return self.type.display() if self.type is not None else "a node"


def is_scalar(property_type: PropertyType) -> bool:
    """Return whether values of this type can be compared. Lists, vectors and Blobs cannot be compared."""
    return not (property_type.is_list or property_type.is_vector or property_type.scalar is ScalarType.BLOB)


def is_text(property_type: PropertyType | None) -> bool:
    """Return whether this is the type of a single string (or enum value)."""
    return property_type is not None and property_type.scalar is ScalarType.STRING and not property_type.is_list


def is_comparable(first_type: PropertyType, second_type: PropertyType) -> bool:
    """Return whether two scalars, or the elements of two lists, can be compared by value.

    >>> is_comparable(F64, PropertyType(ScalarType.U32)), is_comparable(STRING, BOOL)
    (True, False)
    """
    if first_type.scalar.is_numeric and second_type.scalar.is_numeric:
        return True
    return first_type.scalar is second_type.scalar


def is_assignable(value_type: PropertyType, property_type: PropertyType) -> bool:
    """Return whether a parameter of one type may be assigned to a property of another. Nulls are checked at run time.

    >>> is_assignable(STRING, PropertyType(ScalarType.BLOB)), is_assignable(STRING, BOOL)
    (True, False)
    """
    if property_type.is_vector or value_type.is_vector:
        return property_type.is_vector and property_type.vector_dim == value_type.vector_dim
    if property_type.is_list != value_type.is_list:
        return False
    if property_type.scalar is ScalarType.BLOB and value_type.scalar is ScalarType.STRING:
        return True
    return is_comparable(value_type, property_type)


def typed_null(opposite: TypedValue, null_literal: TypedValue) -> TypedValue:
    """Return the literal `null` with the type of the opposite operand."""
    null_type = (opposite.type or STRING).as_nullable(True)
    return TypedValue(plan.Constant(None, null_type), null_type, null_literal.span)


# Number types in ascending order, each with the other types that can represent all of its values exactly.
_WIDER_NUMBERS = {
    ScalarType.I32: (ScalarType.I64, ScalarType.F64),
    ScalarType.U32: (ScalarType.I64, ScalarType.U64, ScalarType.F64),
    ScalarType.I64: (),
    ScalarType.U64: (),
    ScalarType.F32: (ScalarType.F64,),
    ScalarType.F64: (),
}


def common_type(first_type: PropertyType, second_type: PropertyType) -> PropertyType | None:
    """Return a type that can represent all values of two types exactly, or None if no such type exists.

    >>> common_type(PropertyType(ScalarType.I32), PropertyType(ScalarType.U32, nullable=True)).display()
    'I64?'
    >>> common_type(I64, F64)
    """
    is_nullable = first_type.nullable or second_type.nullable
    if first_type.is_list != second_type.is_list or first_type.vector_dim != second_type.vector_dim:
        return None
    enum_values = first_type.enum_values if first_type.enum_values == second_type.enum_values else None
    for scalar in (first_type.scalar, *_WIDER_NUMBERS.get(first_type.scalar, ())):
        if scalar is second_type.scalar or scalar in _WIDER_NUMBERS.get(second_type.scalar, ()):
            return PropertyType(scalar, is_nullable, first_type.is_list, enum_values, first_type.vector_dim)
    return None
