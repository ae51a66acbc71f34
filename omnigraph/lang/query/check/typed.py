"""Values with their types, and which types are compatible.

Owns the record of a resolved expression and its properties. Knows neither variables nor clauses,
and reports nothing.
"""

from omnigraph.diagnostics import Span
from omnigraph.lang.query import plan
from omnigraph.record import record
from omnigraph.values import PropertyType, ScalarType

STRING = PropertyType(ScalarType.STRING)
BOOL = PropertyType(ScalarType.BOOL)
I64 = PropertyType(ScalarType.I64)
F64 = PropertyType(ScalarType.F64)
DATETIME = PropertyType(ScalarType.DATETIME)


@record
class Typed:
    """A resolved expression; `type` is None for a node."""

    value: plan.Value
    type: PropertyType | None
    span: Span

    @property
    def is_null(self) -> bool:
        """Whether it is the literal `null`."""
        return isinstance(self.value, plan.Constant) and self.value.value is None

    @property
    def is_literal(self) -> bool:
        """Whether it is written as a constant."""
        return isinstance(self.value, plan.Constant)

    @property
    def is_constant(self) -> bool:
        """Whether it is the same for all rows: a literal, a parameter, `now()`."""
        return isinstance(self.value, plan.Constant | plan.Parameter)

    @property
    def is_now(self) -> bool:
        """Whether it is `now()`."""
        return isinstance(self.value, plan.Parameter) and self.value.name == plan.NOW

    def shown(self) -> str:
        """Return its type in words, for a message."""
        if self.is_null:
            return "null"
        return self.type.display() if self.type is not None else "a node"


def is_scalar(kind: PropertyType) -> bool:
    """Whether values can be compared: a single value, not a list, vector or Blob."""
    return not (kind.is_list or kind.is_vector or kind.scalar is ScalarType.BLOB)


def is_text(kind: PropertyType | None) -> bool:
    """Whether a value is a single string (or enum value)."""
    return kind is not None and kind.scalar is ScalarType.STRING and not kind.is_list


def same_kind(one: PropertyType, other: PropertyType) -> bool:
    """Whether two scalars, or the elements of two lists, can be compared by value.

    >>> same_kind(F64, PropertyType(ScalarType.U32)), same_kind(STRING, BOOL)
    (True, False)
    """
    if one.scalar.is_numeric and other.scalar.is_numeric:
        return True
    return one.scalar is other.scalar


def feeds(parameter: PropertyType, wanted: PropertyType) -> bool:
    """Whether a parameter may be assigned to a property; null is checked at run time.

    >>> feeds(STRING, PropertyType(ScalarType.BLOB)), feeds(STRING, BOOL)
    (True, False)
    """
    if wanted.is_vector or parameter.is_vector:
        return wanted.is_vector and wanted.vector_dim == parameter.vector_dim
    if wanted.is_list != parameter.is_list:
        return False
    if wanted.scalar is ScalarType.BLOB and parameter.scalar is ScalarType.STRING:
        return True
    return same_kind(parameter, wanted)


def null_of(other: Typed, null: Typed) -> Typed:
    """Return the literal `null` with the type of the opposite operand."""
    kind = (other.type or STRING).as_nullable(True)
    return Typed(plan.Constant(None, kind), kind, null.span)
