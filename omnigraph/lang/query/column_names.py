"""Name result columns.

The descriptor, the plan and the results of a query all use the names that this module returns.
"""

import re

from . import model as m
from .print_syntax import Speller


def column_name(projection: m.Projection) -> str:
    """Return the name of a result column.

    The name is the alias if there is one. Otherwise, it is the expression without dollar signs and without the
    constant arguments of searches and rankings. A literal is named `literal`, and a `case` is named `case`.

    >>> field = m.Field("p", "age")
    >>> column_name(m.Projection(m.Aggregate("count", field, distinct=True)))
    'count(distinct p.age)'
    """
    return projection.alias.text if projection.alias is not None else _expression_name(projection.expression)


def _expression_name(expression: m.Expression) -> str:  # noqa: PLR0911 - one return per kind
    match expression:
        case m.Field():
            return f"{expression.variable}.{expression.name}"
        case m.Variable() | m.Alias():
            return expression.name
        case m.Now():
            return "now()"
        case m.AllRows():
            return "*"
        case m.Aggregate():
            distinct = "distinct " if expression.distinct else ""
            return f"{expression.function}({distinct}{_expression_name(expression.argument)})"
        case m.Call():
            argument_names = [
                _expression_name(argument)
                for argument in expression.arguments
                if isinstance(argument, m.Field | m.Call)
            ]
            return f"{expression.function}({', '.join(argument_names)})"
        case m.Literal() | m.ListLiteral():
            return "literal"
        case m.Case():
            return "case"
        case m.Arithmetic() | m.Negative() | m.ScalarCall():
            return _scalar_name(expression)


def _scalar_name(expression: m.Arithmetic | m.Negative | m.ScalarCall) -> str:
    """Return an expression as the formatter writes it, but without dollar signs outside strings."""
    spelling = Speller().expression(expression)
    code_parts = re.split(r'("[^"\\]*+(?:\\(?s:.)[^"\\]*+)*+")', spelling)
    return "".join(part if part.startswith('"') else part.replace("$", "") for part in code_parts)
