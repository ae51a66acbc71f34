"""The syntax nodes for scalar expressions: arithmetic, function calls and `case`.

`model` re-exports the classes of this module, and other modules import them from `model`. Operator chains are
kept flat, so the depth of a tree is bounded by the nesting of brackets and `case` expressions.
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
    """A chain such as `a + b - c` or `a * b / c`; its operators have the same precedence and apply from left to right.

    The number of operators is one less than the number of operands. The first operand is never a chain of the same
    precedence.
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
    """The negation `-operand`; a negated number literal is parsed as a literal instead."""

    operand: "Expression"
    span: Span = field(default=NO_SPAN, compare=False)


@record
class ScalarCall:
    """A function call such as `lower($p.name)`, excluding aggregates and searches; the checker validates the name."""

    function: str
    arguments: tuple["Expression", ...]
    span: Span = field(default=NO_SPAN, compare=False)


@record
class CaseBranch:
    """One branch of a `case`, `when condition then value`."""

    condition: "Condition"
    value: "Expression"


@record
class Case:
    """The expression `case when c then v else d end`; without `else`, the value is null if no condition is true."""

    branches: tuple[CaseBranch, ...]
    default: "Expression | None" = None
    span: Span = field(default=NO_SPAN, compare=False)


@record
class Truth:
    """A value used as a condition, such as `matches($p.name, "^A")`; the checker requires a Bool."""

    value: "Expression"
    span: Span = field(default=NO_SPAN, compare=False)
