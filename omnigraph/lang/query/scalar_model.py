"""The syntax nodes of scalar expressions: arithmetic, function calls and `case`.

This module belongs to `model`, which exports its classes; other modules import them from there. Chains of operators
are kept flat, so that the depth of a tree is bounded by the nesting of brackets and of `case`.
"""

from dataclasses import field
from typing import TYPE_CHECKING
from typing import Literal as OneOf

from omnigraph.errors.diagnostics import NO_SPAN, Span
from omnigraph.records.frozen import record

if TYPE_CHECKING:
    from .model import Condition, Expression

ArithmeticOperator = OneOf["+", "-", "*", "/", "%"]


@record
class Arithmetic:
    """`a + b - c` or `a * b / c`: operators of one precedence, applied from left to right.

    There is one operator fewer than operands. The first operand is never a chain of the same precedence.
    """

    operands: tuple["Expression", ...]
    operators: tuple[ArithmeticOperator, ...]
    span: Span = field(default=NO_SPAN, compare=False)

    @property
    def is_additive(self) -> bool:
        """Return whether the operators are `+` and `-`, which bind less tightly than `*`, `/` and `%`."""
        return self.operators[0] in ("+", "-")


@record
class Negative:
    """`-operand`; the negative of a number literal is itself a literal."""

    operand: "Expression"
    span: Span = field(default=NO_SPAN, compare=False)


@record
class ScalarCall:
    """`lower($p.name)`: any function that is neither an aggregate nor a search; the checker knows the names."""

    function: str
    arguments: tuple["Expression", ...]
    span: Span = field(default=NO_SPAN, compare=False)


@record
class CaseBranch:
    """`when condition then value`."""

    condition: "Condition"
    value: "Expression"


@record
class Case:
    """`case when c then v else d end`; without `else` the value is null if no condition is true."""

    branches: tuple[CaseBranch, ...]
    default: "Expression | None" = None
    span: Span = field(default=NO_SPAN, compare=False)


@record
class Truth:
    """A value used as a condition, such as `matches($p.name, "^A")`; the checker requires a Bool."""

    value: "Expression"
    span: Span = field(default=NO_SPAN, compare=False)
