"""Check the options of `@index`: kind, metric and language."""

from omnigraph.lang.schema import model
from omnigraph.lang.schema.names import did_you_mean
from omnigraph.values import PropertyType, ScalarType

from .columns import ConstraintColumn
from .findings import CheckStage, SchemaFindings

INDEX_KINDS = ("bitmap", "btree", "fulltext", "ngram", "vector")
VECTOR_METRICS = ("cosine", "dot", "l2")
_OPTION_NAMES = ("kind", "language", "metric")
_TEXT_KINDS = ("fulltext", "ngram")

_OptionProblem = tuple[str, str | None]


def read_index_options(
    constraint: model.Constraint, columns: list[ConstraintColumn], findings: SchemaFindings
) -> tuple[tuple[str, str], ...]:
    """Return a constraint's valid options in name order, and report invalid options."""
    valid_options: dict[str, str] = {}
    for option in constraint.options:
        problem = _find_option_problem(option, constraint, columns)
        if problem is None:
            valid_options[option.name.text] = option.value.text
            continue
        span = option.name.span.to(option.value.span)
        findings.add(CheckStage.CONSTRAINT, span, *problem)
    return tuple(sorted(valid_options.items()))


def _find_option_problem(
    option: model.Option, constraint: model.Constraint, columns: list[ConstraintColumn]
) -> _OptionProblem | None:
    option_name, option_value = option.name.text, option.value.text
    known_options = _OPTION_NAMES if constraint.kind == "index" else ()
    if option_name not in known_options:
        hint = did_you_mean(
            option_name, known_options, f"available options: {', '.join(known_options)}" if known_options else None
        )
        return f"`@{constraint.kind}` has no option `{option_name}`", hint
    if option.value.kind not in ("word", "string") or not option_value.strip():
        return f"`@index`: `{option_name}` expects a word, not `{option_value}`", None
    allowed_values = {"kind": INDEX_KINDS, "metric": VECTOR_METRICS}.get(option_name, (option_value,))
    if option_value not in allowed_values:
        hint = did_you_mean(option_value, allowed_values, f"expected one of {', '.join(allowed_values)}")
        return f"`@index`: unknown {option_name} `{option_value}`", hint
    if option_name == "kind":
        return _find_kind_problem(option_value, columns)
    return _find_detail_problem(option_name, constraint, columns)


def _find_kind_problem(index_kind: str, columns: list[ConstraintColumn]) -> _OptionProblem | None:
    if index_kind in (*_TEXT_KINDS, "vector") and len(columns) > 1:
        return f"`@index`: kind `{index_kind}` requires exactly one column", None
    for column in columns:
        if column.type is not None and not _supports_type(index_kind, column.type):
            usable_kinds = [
                candidate_kind for candidate_kind in INDEX_KINDS if _supports_type(candidate_kind, column.type)
            ]
            column_label = f"`{column.name}` of type {column.type.display()}"
            message = f"`@index`: kind `{index_kind}` does not support {column_label}"
            return message, f"supported kinds: {', '.join(usable_kinds)}" if usable_kinds else None
    return None


def _supports_type(index_kind: str, property_type: PropertyType) -> bool:
    if property_type.is_vector or index_kind == "vector":
        return property_type.is_vector and index_kind == "vector"
    if index_kind in _TEXT_KINDS:
        return property_type.scalar is ScalarType.STRING and not property_type.is_enum
    return not property_type.is_list and property_type.scalar is not ScalarType.BLOB


def _find_detail_problem(
    option_name: str, constraint: model.Constraint, columns: list[ConstraintColumn]
) -> _OptionProblem | None:
    """Return an error if `metric` or `language` is used with the wrong kind of index, or None otherwise."""
    required_kind = "vector" if option_name == "metric" else "fulltext"
    declared_kind = next(
        (option.value.text for option in constraint.options if option.name.text == "kind"), required_kind
    )
    types_fit = all(column.type is None or _supports_type(required_kind, column.type) for column in columns)
    if types_fit and declared_kind == required_kind and len(columns) < 2:
        return None
    requirement = "a Vector property" if option_name == "metric" else "a full-text index on a String property"
    return f"`@index`: `{option_name}` requires {requirement}", None
