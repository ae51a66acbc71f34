"""Constraints `@key`, `@unique` and `@index`, in a body or inline after a property.

Owns which columns they may use. `indexes` checks the options of an index, `value_rules` checks
`@range` and `@check`.
"""

from omnigraph.diagnostics import Span
from omnigraph.lang.schema import catalog, model
from omnigraph.values import PropertyType, ScalarType

from .annotations import MARKS
from .columns import Column, resolve
from .draft import Draft, Site, span_of
from .findings import Findings, Stage
from .indexes import read_options
from .values import read_value_rule


def read_constraints(draft: Draft, findings: Findings) -> tuple[catalog.Constraint, ...]:
    """Return the distinct constraints of a node or edge in canonical order."""
    _check_single_key(draft, findings)
    made = set(read_marks(draft, findings))
    made |= {_read_body(draft, written, findings) for written in draft.constraints}
    return tuple(sorted((one for one in made if one is not None), key=_order))


def read_marks(draft: Draft, findings: Findings) -> list[catalog.Constraint | None]:
    """Return the constraints written inline after properties.

    Errors in the inline constraints of an interface are reported once, at their declaration.
    """
    sites = draft.sites.values()
    return [_read_mark(draft, site, mark, findings) for site in sites for mark in site.made.marks]


def _read_mark(
    draft: Draft, site: Site, mark: str, findings: Findings
) -> catalog.Constraint | None:
    kind = site.made.type if site.readable else None
    column = Column(site.made.name, kind, span_of(site, mark))
    if _refused_on_edge(draft, mark, column.span, findings):
        return None
    return _columns(mark, [column]) if _fits(mark, column, findings) else None


def _read_body(
    draft: Draft, written: model.Constraint, findings: Findings
) -> catalog.Constraint | None:
    if _refused_on_edge(draft, written.kind, written.span, findings):
        return None
    if written.kind not in MARKS:
        return read_value_rule(draft, written, findings)
    columns = resolve(draft, written, findings)
    fitting = [column for column in columns if _fits(written.kind, column, findings)]
    if written.kind == "index":
        _check_vectors_alone(columns, findings)
    options = read_options(written, columns, findings)
    return _columns(written.kind, fitting, options) if fitting else None


def _columns(
    kind: str, columns: list[Column], options: tuple[tuple[str, str], ...] = ()
) -> catalog.Constraint:
    names = tuple(sorted({column.name for column in columns}))
    if kind == "index":
        return catalog.Index(names, options)
    return catalog.Key(names) if kind == "key" else catalog.Unique(names)


def _order(one: catalog.Constraint) -> tuple[str, str]:
    columns = (one.column,) if isinstance(one, catalog.Range | catalog.Check) else one.columns
    plain = isinstance(one, catalog.Index) and not one.options
    return f"{type(one).__name__.lower()}:{','.join(columns)}", "" if plain else repr(one)


def _fits(kind: str, column: Column, findings: Findings) -> bool:
    """Return whether the constraint may use the column; report the reason if not."""
    reason = None if column.type is None else _misfit(kind, column.type)
    if reason is not None:
        message = f"`@{kind}` cannot use `{column.name}`: {reason}"
        findings.add(Stage.CONSTRAINT, column.span, message)
    return reason is None


def _misfit(kind: str, type_: PropertyType) -> str | None:
    if type_.scalar is ScalarType.BLOB:
        return "it is a blob, and blobs are never compared"
    if type_.is_list:
        return "it is a list"
    if type_.is_vector and kind != "index":
        return "it is a vector"
    if type_.nullable and kind == "key":
        return "it is nullable, and a key cannot be null"
    return None


def _check_vectors_alone(columns: list[Column], findings: Findings) -> None:
    for column in columns:
        if len(columns) > 1 and column.type is not None and column.type.is_vector:
            message = f"the vector `{column.name}` must be the only column of its index"
            findings.add(Stage.CONSTRAINT, column.span, message, f"write `@index({column.name})`")


def _check_single_key(draft: Draft, findings: Findings) -> None:
    marked = [site for site in draft.sites.values() if "key" in site.made.marks]
    places = [span_of(site, "key") for site in marked if site.made.declared_directly]
    places += [written.span for written in draft.constraints if written.kind == "key"]
    inherited = [site for site in marked if not site.made.declared_directly]
    if draft.kind != "node" or len(places) + len(inherited) < 2:
        return
    message = f"multiple `@key` constraints on {draft.label}; a node has at most one"
    hint = "for a key of several properties write `@key(a, b)`"
    if inherited:
        hint = f"one comes from interface `{inherited[0].made.satisfies[0][0]}`"
    blamed = max(places, key=lambda p: p.start, default=draft.name.span)
    findings.add(Stage.CONSTRAINT, blamed, message, hint)


def _refused_on_edge(draft: Draft, kind: str, span: Span, findings: Findings) -> bool:
    if kind != "key" or draft.kind != "edge":
        return False
    message = f"`@key` is only for nodes; {draft.label} has its own id"
    hint = "`@unique(src, dst)` allows one such edge between two nodes"
    findings.add(Stage.CONSTRAINT, span, message, hint)
    return True
