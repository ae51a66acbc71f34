"""The rule that determines the names of result columns.

The descriptor of a query, its plan and its results all use these names.
"""

from . import model as m


def column_name(projection: m.Projection) -> str:
    """Return the alias, or the expression as written, without dollar signs and constant arguments.

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
        case m.PathCall():
            return f"{expression.function}({expression.path.name})"
        case m.Literal() | m.ListLiteral():
            return "literal"
