"""Options of `@index`: kind, metric, language."""

from omnigraph.lang.schema import model
from omnigraph.lang.schema.names import did_you_mean
from omnigraph.values import PropertyType, ScalarType

from .columns import Column
from .findings import Findings, Stage

KINDS = ("bitmap", "btree", "fulltext", "ngram", "vector")
METRICS = ("cosine", "dot", "l2")
_OPTIONS = ("kind", "language", "metric")
_TEXT = ("fulltext", "ngram")

_Problem = tuple[str, str | None]


def read_options(
    written: model.Constraint, columns: list[Column], findings: Findings
) -> tuple[tuple[str, str], ...]:
    """Return the valid options of a constraint in name order; report the others."""
    made: dict[str, str] = {}
    for option in written.options:
        problem = _problem(option, written, columns)
        if problem is None:
            made[option.name.text] = option.value.text
            continue
        span = option.name.span.to(option.value.span)
        findings.add(Stage.CONSTRAINT, span, *problem)
    return tuple(sorted(made.items()))


def _problem(
    option: model.Option, written: model.Constraint, columns: list[Column]
) -> _Problem | None:
    name, value = option.name.text, option.value.text
    known = _OPTIONS if written.kind == "index" else ()
    if name not in known:
        hint = did_you_mean(name, known, f"options are {', '.join(known)}" if known else None)
        return f"`@{written.kind}` has no option `{name}`", hint
    if option.value.kind not in ("word", "string") or not value.strip():
        return f"`@index`: `{name}` expects a word, not `{value}`", None
    values = {"kind": KINDS, "metric": METRICS}.get(name, (value,))
    if value not in values:
        hint = did_you_mean(value, values, f"expected {', '.join(values)}")
        return f"`@index`: unknown {name} `{value}`", hint
    if name == "kind":
        return _kind_misfit(value, columns)
    return _detail_misfit(name, written, columns)


def _kind_misfit(kind: str, columns: list[Column]) -> _Problem | None:
    if kind in (*_TEXT, "vector") and len(columns) > 1:
        return f"`@index`: an index of kind `{kind}` has exactly one column", None
    for one in columns:
        if one.type is not None and not _takes(kind, one.type):
            fits = [known for known in KINDS if _takes(known, one.type)]
            message = f"`@index`: kind `{kind}` does not support `{one.name}`: {one.type.display()}"
            return message, f"supported kinds: {', '.join(fits)}" if fits else None
    return None


def _takes(kind: str, type_: PropertyType) -> bool:
    if type_.is_vector or kind == "vector":
        return type_.is_vector and kind == "vector"
    if kind in _TEXT:
        return type_.scalar is ScalarType.STRING and not type_.is_enum
    return not type_.is_list and type_.scalar is not ScalarType.BLOB


def _detail_misfit(name: str, written: model.Constraint, columns: list[Column]) -> _Problem | None:
    """Return the problem of a `metric` without a vector or a `language` without full text."""
    wanted = "vector" if name == "metric" else "fulltext"
    chosen = next((o.value.text for o in written.options if o.name.text == "kind"), wanted)
    fits = all(one.type is None or _takes(wanted, one.type) for one in columns)
    if fits and chosen == wanted and len(columns) < 2:
        return None
    what = "a Vector property" if name == "metric" else "a full-text index of a String property"
    return f"`@index`: `{name}` requires {what}", None
