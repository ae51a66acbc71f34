"""Check `@key`, `@unique` and `@index` constraints, whether they are in a body or inline after a property.

This module decides which columns a constraint may use. `indexes` checks index options, and `value_rules` checks
`@range` and `@check`.
"""

from omnigraph.lang.schema import catalog, model
from omnigraph.values import PropertyType, ScalarType

from .annotations import INLINE_CONSTRAINTS
from .columns import ConstraintColumn, resolve_columns
from .draft import PropertyDraft, TypeDraft, inline_constraint_span
from .findings import CheckStage, SchemaFindings
from .indexes import read_index_options
from .value_rules import read_value_rule

_KIND_PHRASES = {"node": "a node", "edge": "an edge"}


def read_constraints(draft: TypeDraft, findings: SchemaFindings) -> tuple[catalog.Constraint, ...]:
    """Return the distinct constraints of a node or edge type in canonical order."""
    _check_single_key(draft, findings)
    checked_constraints = set(read_inline_constraints(draft, findings))
    checked_constraints |= {_read_body_constraint(draft, declared, findings) for declared in draft.constraints}
    return tuple(sorted((checked for checked in checked_constraints if checked is not None), key=_constraint_sort_key))


def read_inline_constraints(draft: TypeDraft, findings: SchemaFindings) -> list[catalog.Constraint | None]:
    """Return the constraints written inline after properties.

    Errors in an interface's inline constraints are reported only once, at the declaration of the interface.
    """
    property_drafts = draft.properties.values()
    return [
        _read_inline_constraint(draft, property_draft, constraint_name, findings)
        for property_draft in property_drafts
        for constraint_name in property_draft.definition.inline_constraints
    ]


def _read_inline_constraint(
    draft: TypeDraft, property_draft: PropertyDraft, constraint_name: str, findings: SchemaFindings
) -> catalog.Constraint | None:
    property_type = property_draft.definition.type if property_draft.has_valid_type else None
    column = ConstraintColumn(
        property_draft.definition.name, property_type, inline_constraint_span(property_draft, constraint_name)
    )
    return (
        _build_constraint(constraint_name, [column]) if _check_column_type(constraint_name, column, findings) else None
    )


def _read_body_constraint(
    draft: TypeDraft, declared: model.Constraint, findings: SchemaFindings
) -> catalog.Constraint | None:
    if declared.kind not in INLINE_CONSTRAINTS:
        return read_value_rule(draft, declared, findings)
    columns = resolve_columns(draft, declared, findings)
    usable_columns = [column for column in columns if _check_column_type(declared.kind, column, findings)]
    if declared.kind == "index":
        _check_vector_index_columns(columns, findings)
    options = read_index_options(declared, columns, findings)
    return _build_constraint(declared.kind, usable_columns, options) if usable_columns else None


def _build_constraint(
    constraint_kind: str, columns: list[ConstraintColumn], options: tuple[tuple[str, str], ...] = ()
) -> catalog.Constraint:
    column_names = tuple(sorted({column.name for column in columns}))
    if constraint_kind == "index":
        return catalog.Index(column_names, options)
    return catalog.Key(column_names) if constraint_kind == "key" else catalog.Unique(column_names)


def _constraint_sort_key(constraint: catalog.Constraint) -> tuple[str, str]:
    columns = (constraint.column,) if isinstance(constraint, catalog.Range | catalog.Check) else constraint.columns
    is_plain_index = isinstance(constraint, catalog.Index) and not constraint.options
    return (f"{type(constraint).__name__.lower()}:{','.join(columns)}", "" if is_plain_index else repr(constraint))


def _check_column_type(constraint_kind: str, column: ConstraintColumn, findings: SchemaFindings) -> bool:
    """Return whether the constraint may use the column. If it may not, report the reason."""
    mismatch = None if column.type is None else _describe_type_mismatch(constraint_kind, column.type)
    if mismatch is not None:
        message = f"`@{constraint_kind}` cannot use `{column.name}`: {mismatch}"
        findings.add(CheckStage.CONSTRAINT, column.span, message)
    return mismatch is None


def _describe_type_mismatch(constraint_kind: str, property_type: PropertyType) -> str | None:
    if property_type.scalar is ScalarType.BLOB:
        return "it is a blob, and blobs cannot be compared"
    if property_type.is_list:
        return "it is a list"
    if property_type.is_vector and constraint_kind != "index":
        return "it is a vector"
    if property_type.nullable and constraint_kind == "key":
        return "it is nullable, and a key cannot be null"
    return None


def _check_vector_index_columns(columns: list[ConstraintColumn], findings: SchemaFindings) -> None:
    for column in columns:
        if len(columns) > 1 and column.type is not None and column.type.is_vector:
            message = f"the vector `{column.name}` must be the only column in its index"
            findings.add(CheckStage.CONSTRAINT, column.span, message, f"write `@index({column.name})`")


def _check_single_key(draft: TypeDraft, findings: SchemaFindings) -> None:
    key_properties = [
        property_draft
        for property_draft in draft.properties.values()
        if "key" in property_draft.definition.inline_constraints
    ]
    key_spans = [
        inline_constraint_span(property_draft, "key")
        for property_draft in key_properties
        if property_draft.definition.declared_directly
    ]
    key_spans += [constraint.span for constraint in draft.constraints if constraint.kind == "key"]
    inherited_keys = [
        property_draft for property_draft in key_properties if not property_draft.definition.declared_directly
    ]
    if draft.kind == "interface" or len(key_spans) + len(inherited_keys) < 2:
        return
    message = f"multiple `@key` constraints on {draft.label}; {_KIND_PHRASES[draft.kind]} can have at most one"
    hint = "for a key with several properties, write `@key(a, b)`"
    if inherited_keys:
        hint = f"one `@key` is inherited from interface `{inherited_keys[0].definition.satisfies[0][0]}`"
    reported_span = max(key_spans, key=lambda key_span: key_span.start, default=draft.name.span)
    findings.add(CheckStage.CONSTRAINT, reported_span, message, hint)
