"""The plan nodes for scalar expressions, with resolved result types.

`plan` re-exports the classes of this module, and other modules import them from `plan`. A node that can fail at
run time records its position in the query text. Positions are ignored when plans are compared.
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
    """The position of an expression in the query text, for runtime errors."""

    source: SourceText = SourceText("<query>", "")
    span: Span = NO_SPAN


@record
class Arithmetic:
    """An arithmetic chain: `first`, followed by operators and their operands, applied from left to right.

    Integer arithmetic uses I64, and a result outside its range is an error. `/` and any operation with a float return
    F64. `+` also concatenates strings. The result is null if an operand is null or a divisor is zero.
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
    """A call to a scalar function; except for `coalesce`, the result is null if an argument is null."""

    function: ScalarFunction
    arguments: tuple["Value", ...]
    type: PropertyType
    place: SourcePlace = field(default=SourcePlace(), compare=False)


@record
class Case:
    """The value of the first branch whose predicate is true, or else `default`; no other value is computed."""

    branches: tuple[tuple["Predicate", "Value"], ...]
    default: "Value"
    type: PropertyType


@record
class Truth:
    """A Bool value used as a predicate; null counts as unknown."""

    value: "Value"
