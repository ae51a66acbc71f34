"""Syntax nodes for scalar expressions: arithmetic, function calls and `case`.

`model` re-exports these classes, and other modules import them from there. Operator chains are flat, so a tree is only
as deep as the nesting of brackets and `case` expressions.
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
    """A chain such as `a + b - c` or `a * b / c`. Its operators have equal precedence and apply from left to right.

    There is one more operand than there are operators. The first operand is never a chain with the same precedence.
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
    """The negation `-operand`. A negated number is parsed as a literal instead."""

    operand: "Expression"
    span: Span = field(default=NO_SPAN, compare=False)


@record
class ScalarCall:
    """A function call such as `lower($p.name)`, but not an aggregate or a search. The checker validates the name."""

    function: str
    arguments: tuple["Expression", ...]
    span: Span = field(default=NO_SPAN, compare=False)


@record
class CaseBranch:
    """One `when condition then value` branch of a `case`."""

    condition: "Condition"
    value: "Expression"


@record
class Case:
    """The expression `case when c then v else d end`. Without `else`, the value is null if no condition is true."""

    branches: tuple[CaseBranch, ...]
    default: "Expression | None" = None
    span: Span = field(default=NO_SPAN, compare=False)


@record
class Truth:
    """A value used as a condition, such as `matches($p.name, "^A")`. The checker requires a Bool."""

    value: "Expression"
    span: Span = field(default=NO_SPAN, compare=False)
