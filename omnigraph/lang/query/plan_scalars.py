"""Plan nodes for scalar expressions, with their result types.

`plan` re-exports these classes, and other modules import them from there. A node that can fail at run time records its
position in the query text. Positions are ignored when plans are compared.
"""

from dataclasses import field
from typing import TYPE_CHECKING
from typing import Literal as OneOf

from omnigraph.errors.diagnostics import NO_SPAN, SourceText, Span
from omnigraph.records.frozen import record
from omnigraph.values import PropertyType

if TYPE_CHECKING:
    from .plan import Predicate, Value

ArithmeticOperator = OneOf["+", "-", "*", "/", "%"]
ScalarFunction = OneOf[
    "lower",
    "upper",
    "length",
    "substring",
    "replace",
    "split",
    "matches",
    "coalesce",
    "abs",
    "round",
    "floor",
    "ceil",
    "year",
    "month",
    "day",
    "hour",
    "minute",
    "second",
]


@record
class SourcePlace:
    """An expression's position in the query text, for use in runtime errors."""

    source: SourceText = SourceText("<query>", "")
    span: Span = NO_SPAN


@record
class Arithmetic:
    """An arithmetic chain: the value `first`, followed by operators with one operand each.

    The operators are applied from left to right. Integer arithmetic uses I64, and a result that does not fit is an
    error. Division, and any operation that involves a float, returns F64. `+` also concatenates strings. The result is
    null if an operand is null or a divisor is zero.
    """

    first: "Value"
    steps: tuple[tuple[ArithmeticOperator, "Value"], ...]
    type: PropertyType
    place: SourcePlace = field(default=SourcePlace(), compare=False)


@record
class Negative:
    """The negation of a number."""

    operand: "Value"
    type: PropertyType
    place: SourcePlace = field(default=SourcePlace(), compare=False)


@record
class ScalarCall:
    """A call to a scalar function. Except for `coalesce`, the result is null if any argument is null."""

    function: ScalarFunction
    arguments: tuple["Value", ...]
    type: PropertyType
    place: SourcePlace = field(default=SourcePlace(), compare=False)


@record
class Case:
    """The value of the first branch whose predicate is true, or `default` if none is. No other value is computed."""

    branches: tuple[tuple["Predicate", "Value"], ...]
    default: "Value"
    type: PropertyType


@record
class Truth:
    """A Bool value used as a predicate. Null counts as unknown."""

    value: "Value"
