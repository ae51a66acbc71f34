"""Rule actions for whole queries: headers, parameters, the parts of a read, and the statements in a mutation."""

from typing import Any

from omnigraph.errors.diagnostics import Span
from omnigraph.values import PropertyType, ScalarType

from .build import Builder, RuleAction
from .build_clauses import RULES as CLAUSES
from .build_expressions import as_expression, decode_string, parse_integer
from .build_reads import RULES as READS
from .model import (
    Assignment,
    Call,
    Delete,
    Insert,
    Literal,
    MatchedDelete,
    MatchedUpdate,
    Ordering,
    Parameter,
    Patch,
    Projection,
    Query,
    Update,
    Upsert,
    Variable,
    WriteBody,
)


def declaration(builder: Builder, rule_span: Span, children: list[Any]) -> Query:
    """Build one query."""
    name_token, parameters, *annotations, body = children
    annotation_texts: dict[str, str] = {}
    for annotation_name, annotation_span, annotation_text in annotations:
        if annotation_name in annotation_texts:
            builder.report_problem(
                annotation_span, f"duplicate `@{annotation_name}`", f"a query can have at most one `@{annotation_name}`"
            )
        annotation_texts.setdefault(annotation_name, annotation_text)
    descriptive_texts = annotation_texts.get("description"), annotation_texts.get("instruction")
    return Query(builder.make_name(name_token), parameters, body, *descriptive_texts, rule_span)


def parameters(builder: Builder, rule_span: Span, children: list[Any]) -> tuple[Parameter, ...]:
    """Build a query's parameter list."""
    return tuple(children)


def parameter(builder: Builder, rule_span: Span, children: list[Any]) -> Parameter:
    """Build a parameter declaration with an optional default."""
    variable_token, property_type, _, default = children
    return Parameter(str(variable_token)[1:], property_type, default, rule_span)


def scalar_type(builder: Builder, rule_span: Span, children: list[Any]) -> PropertyType:
    """Build a scalar type, such as `I32?`."""
    return PropertyType(ScalarType(str(children[0])), nullable=children[1] is not None)


def list_type(builder: Builder, rule_span: Span, children: list[Any]) -> PropertyType:
    """Build a list type, such as `[I32]?`."""
    return PropertyType(ScalarType(str(children[0])), nullable=children[1] is not None, is_list=True)


def vector_type(builder: Builder, rule_span: Span, children: list[Any]) -> PropertyType:
    """Build a vector type, such as `Vector(3)?`."""
    vector_dimension = parse_integer(builder, children[0])
    return PropertyType(ScalarType.VECTOR, nullable=children[1] is not None, vector_dim=vector_dimension)


def note(builder: Builder, rule_span: Span, children: list[Any]) -> tuple[str, Span, str]:
    """Build a query annotation, such as `@description("..")`."""
    return (str(children[0])[1:], builder.token_span(children[0]), decode_string(builder, children[1]))


def collect_children(builder: Builder, rule_span: Span, children: list[Any]) -> tuple[Any, ...]:
    """Return the sort keys in `order { .. }`."""
    return tuple(children)


def match_part(builder: Builder, rule_span: Span, children: list[Any]) -> tuple[Any, ...]:
    """Return the clauses in `match { .. }`."""
    return tuple(children[1:])


def return_part(builder: Builder, rule_span: Span, children: list[Any]) -> tuple[bool, tuple[Projection, ...]]:
    """Return whether `return` is followed by `distinct`, and the projections in its braces."""
    return children[0] is not None, tuple(children[1:])


def row_count(builder: Builder, rule_span: Span, children: list[Any]) -> Literal | Variable:
    """Build the row count for `limit` or `offset`."""
    token = children[0]
    if token.type == "VAR":
        return builder.make_variable(token)
    parse_integer(builder, token)
    return Literal("int", str(token), builder.token_span(token))


def projection(builder: Builder, rule_span: Span, children: list[Any]) -> Projection:
    """Build a projection such as `count($x) as n`. Its span excludes any trailing comma."""
    expression_child, _, alias_token = children
    projected_expression = as_expression(builder, expression_child)
    end_span = builder.token_span(alias_token) if alias_token is not None else projected_expression.span
    return Projection(
        projected_expression,
        None if alias_token is None else builder.make_name(alias_token),
        projected_expression.span.to(end_span),
    )


def ordering(builder: Builder, rule_span: Span, children: list[Any]) -> Ordering:
    """Build a sort key such as `$x.p desc`."""
    expression_child, direction_token = children
    sort_expression = as_expression(builder, expression_child)
    if direction_token is not None and isinstance(sort_expression, Call) and sort_expression.function == "nearest":
        message = f"`nearest(..)` does not accept `{direction_token}`"
        builder.report_problem(builder.token_span(direction_token), message, "the nearest rows always come first")
    direction = None if direction_token is None else str(direction_token)
    return Ordering(sort_expression, direction, rule_span)  # type: ignore[arg-type]


def write(builder: Builder, rule_span: Span, children: list[Any]) -> WriteBody:
    """Build a mutation from its statements."""
    return WriteBody(tuple(children), rule_span)


def insert(builder: Builder, rule_span: Span, children: list[Any]) -> Insert:
    """Build an insert statement, such as `insert Person { .. }`."""
    return Insert(builder.make_name(children[1]), tuple(children[2:]), rule_span)


def upsert(builder: Builder, rule_span: Span, children: list[Any]) -> Upsert:
    """Build an upsert statement, such as `upsert Person { .. }`."""
    return Upsert(builder.make_name(children[1]), tuple(children[2:]), rule_span)


def patch(builder: Builder, rule_span: Span, children: list[Any]) -> Patch:
    """Build a patch statement, such as `patch Person { .. }`."""
    return Patch(builder.make_name(children[1]), tuple(children[2:]), rule_span)


def update(builder: Builder, rule_span: Span, children: list[Any]) -> Update:
    """Build an update statement, such as `update Person set { .. } where ..`."""
    return Update(builder.make_name(children[1]), tuple(children[2:-1]), children[-1], rule_span)


def delete(builder: Builder, rule_span: Span, children: list[Any]) -> Delete:
    """Build a delete statement, such as `delete Person where ..`."""
    return Delete(builder.make_name(children[1]), children[2], rule_span)


def matched_update(builder: Builder, rule_span: Span, children: list[Any]) -> MatchedUpdate:
    """Build an update of matched entities, `match { .. } update $p set { .. }`."""
    clauses, _, variable_token, *assignments = children
    return MatchedUpdate(clauses, builder.make_variable(variable_token), tuple(assignments), rule_span)


def matched_delete(builder: Builder, rule_span: Span, children: list[Any]) -> MatchedDelete:
    """Build a delete of matched entities, `match { .. } delete $p`."""
    clauses, _, variable_token = children
    return MatchedDelete(clauses, builder.make_variable(variable_token), rule_span)


def assignment(builder: Builder, rule_span: Span, children: list[Any]) -> Assignment:
    """Build a property assignment. Its span excludes any trailing comma."""
    property_name = builder.make_name(children[0])
    assigned_value = as_expression(builder, children[1])
    return Assignment(property_name, assigned_value, property_name.span.to(assigned_value.span))


RULES: dict[str, RuleAction] = (
    CLAUSES
    | READS
    | {
        "declaration": declaration,
        "parameters": parameters,
        "parameter": parameter,
        "scalar_type": scalar_type,
        "list_type": list_type,
        "vector_type": vector_type,
        "note": note,
        "match_part": match_part,
        "return_part": return_part,
        "order_part": collect_children,
        "limit_part": row_count,
        "offset_part": row_count,
        "projection": projection,
        "ordering": ordering,
        "write": write,
        "insert": insert,
        "upsert": upsert,
        "patch": patch,
        "update": update,
        "delete": delete,
        "matched_update": matched_update,
        "matched_delete": matched_delete,
        "assignment": assignment,
    }
)
