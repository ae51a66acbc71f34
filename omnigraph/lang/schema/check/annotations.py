"""Annotations: reads what follows `@` on a header or a property.

Owns where they are allowed, how often, and with which arguments. Unknown annotations are stored
verbatim. `constraints` checks whether columns exist and fit, `embeds` whether `@embed` sources do.
"""

from omnigraph.diagnostics import Span
from omnigraph.lang.schema import catalog, model
from omnigraph.record import record

from .arguments import check_arguments, required_text
from .defaults import read_default
from .findings import Findings, Stage

MARKS = ("index", "key", "unique")
KNOWN = frozenset(
    {*MARKS, "description", "instruction", "rename_from", "embed", "default", "allow"}
)
_MANY = frozenset({"allow"})
_NEVER_ON_HEADERS = frozenset({*MARKS, "embed"})
_CONSTRAINTS = frozenset({*MARKS, "range", "check"})


@record
class Header:
    """The content of the annotations of a node, edge or interface."""

    notes: tuple[catalog.Note, ...] = ()
    rename_from: str | None = None
    allows: tuple[catalog.Allow, ...] = ()


def read_header(annotations: tuple[model.Annotation, ...], findings: Findings) -> Header:
    """Read the annotations of a header."""
    known = [one for one in _once(annotations, findings) if _fits_header(one, findings)]
    notes = tuple(_note(one, findings) for one in known if _is_note(one))
    return Header(notes, _rename(known, findings), _allows(known, findings))


def read_property(
    written: model.Property, kind: catalog.TypeKind, findings: Findings
) -> catalog.Property:
    """Read a property and its annotations, before interfaces are expanded."""
    known = [one for one in _once(written.annotations, findings) if _fits_property(one, findings)]
    return catalog.Property(
        written.name.text,
        written.type,
        notes=tuple(_note(one, findings) for one in known if _is_note(one)),
        marks=tuple(sorted({one.name.text for one in known if one.name.text in MARKS})),
        embed=_embed(written, known, kind, findings),
        default=read_default(written, _named(known, "default"), findings),
        rename_from=_rename(known, findings),
        allows=_allows(known, findings),
        span=written.span,
    )


def _once(annotations: tuple[model.Annotation, ...], findings: Findings) -> list[model.Annotation]:
    """Return the annotations with valid arguments, without illegal repetitions."""
    seen: set[str] = set()
    kept = []
    for one in annotations:
        name = one.name.text
        if name in seen and name in KNOWN - _MANY:
            _refuse(findings, one.span, f"`@{name}` is given more than once", "keep one of them")
        elif check_arguments(one, findings):
            kept.append(one)
        seen.add(name)
    return kept


def _fits_header(one: model.Annotation, findings: Findings) -> bool:
    name = one.name.text
    if name in _NEVER_ON_HEADERS or (name in _CONSTRAINTS and one.arguments):
        behind, between = f"`@{name}` after a property", f"`@{name}(…)` between the braces"
        places = [between] * (name in _CONSTRAINTS) + [behind] * (name in _NEVER_ON_HEADERS)
        hint = f"write {' or '.join(places)}"
        _refuse(findings, one.span, f"`@{name}` is not allowed on a header", hint)
    elif name == "default" and one.arguments:
        _refuse(findings, one.span, "`@default` belongs to a property, not to a header")
    else:
        return True
    return False


def _fits_property(one: model.Annotation, findings: Findings) -> bool:
    if one.name.text != "instruction":
        return True
    message = "`@instruction` belongs on a node or edge, never on a property"
    _refuse(findings, one.span, message, "use `@description` here")
    return False


def _is_note(one: model.Annotation) -> bool:
    name = one.name.text
    if name == "default":
        return not one.arguments
    return name in ("description", "instruction") or name not in KNOWN


def _note(one: model.Annotation, findings: Findings) -> catalog.Note:
    name = one.name.text
    if name in ("description", "instruction"):
        required_text(one, findings)
    value = one.arguments[0].text if one.arguments else None
    return catalog.Note(name, value, tuple((o.name.text, o.value.text) for o in one.options))


def _rename(known: list[model.Annotation], findings: Findings) -> str | None:
    one = _named(known, "rename_from")
    if one is None:
        return None
    if one.options:
        _refuse(findings, one.options[0].name.span, "`@rename_from` takes the old name only")
    return required_text(one, findings, hint='write `@rename_from("OldName")`')


def _allows(known: list[model.Annotation], findings: Findings) -> tuple[catalog.Allow, ...]:
    made = (_allow(one, findings) for one in known if one.name.text == "allow")
    return tuple(allowed_finding for allowed_finding in made if allowed_finding is not None)


def _allow(one: model.Annotation, findings: Findings) -> catalog.Allow | None:
    hint = 'write `@allow(OG-NM-101, "why it is acceptable here")`'
    if len(one.arguments) != 2 or one.options:
        _refuse(findings, one.span, "`@allow` takes a code and a reason", hint)
        return None
    code, reason = one.arguments
    if not code.text.startswith("OG-"):
        _refuse(findings, code.span, f"`{code.text}` is not a finding code", hint)
    elif reason.kind != "string" or not reason.text.strip():
        _refuse(findings, reason.span, "`@allow` needs a reason in quotes", hint)
    else:
        return catalog.Allow(code.text, reason.text)
    return None


def _embed(
    written: model.Property,
    known: list[model.Annotation],
    kind: catalog.TypeKind,
    findings: Findings,
) -> catalog.Embed | None:
    one = _named(known, "embed")
    if one is None:
        return None
    name = written.name.text
    if kind == "edge":
        _refuse(findings, one.span, f"`@embed` on `{name}`: only nodes have embeddings, not edges")
        return None
    if not written.type.is_vector and not written.refused:
        message = f"`@embed` needs a vector property; `{name}` is {written.type.display()}"
        _refuse(findings, one.span, message, f"declare it as `{name}: Vector(…)`")
    source = required_text(one, findings, hint='write `@embed("title")`')
    model_name = _embed_model(one, findings)
    return catalog.Embed(source, model_name) if source is not None else None


def _embed_model(one: model.Annotation, findings: Findings) -> str | None:
    named = None
    for option in one.options:
        if option.name.text != "model":
            message = f"`@embed` has no option `{option.name.text}`"
            _refuse(findings, option.name.span, message, "its only option is `model`")
        elif option.value.kind != "string" or not option.value.text.strip():
            _refuse(findings, option.value.span, "`model` must be a quoted name")
        else:
            named = option.value.text
    return named


def _named(known: list[model.Annotation], name: str) -> model.Annotation | None:
    return next((one for one in known if one.name.text == name), None)


def _refuse(findings: Findings, span: Span, message: str, hint: str | None = None) -> None:
    findings.add(Stage.ANNOTATION, span, message, hint)
