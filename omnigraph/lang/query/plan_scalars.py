"""The plan nodes of scalar expressions, with their result types resolved.

This module belongs to `plan`, which exports its classes; other modules import them from there. A node that can fail
when it runs knows its place in the query text. Places never count when plans are compared.
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
    """Where an expression stands in the query text, for errors that occur when the query runs."""

    source: SourceText = SourceText("<query>", "")
    span: Span = NO_SPAN


@record
class Arithmetic:
    """`first`, then each operator with its operand, from left to right.

    Integers are computed as I64 and a result outside its range is an error; `/` and anything with a float is F64;
    strings are joined by `+`. The result is null if an operand is null or a divisor is zero.
    """

    first: "Value"
    steps: tuple[tuple[ArithmeticOperator, "Value"], ...]
    type: PropertyType
    place: SourcePlace = field(default=SourcePlace(), compare=False)


@record
class Negative:
    """The negative of a number."""

    operand: "Value"
    type: PropertyType
    place: SourcePlace = field(default=SourcePlace(), compare=False)


@record
class ScalarCall:
    """A scalar function; except for `coalesce`, the result is null if an argument is null."""

    function: ScalarFunction
    arguments: tuple["Value", ...]
    type: PropertyType
    place: SourcePlace = field(default=SourcePlace(), compare=False)


@record
class Case:
    """The value of the first branch whose predicate is true, else `default`; only that value is computed."""

    branches: tuple[tuple["Predicate", "Value"], ...]
    default: "Value"
    type: PropertyType


@record
class Truth:
    """A Bool value as a predicate; null is unknown."""

    value: "Value"
