"""Read the annotations on declarations and properties.

This module defines where and how often each annotation is allowed, and which arguments it takes. Unknown annotations
are stored verbatim. `constraints` checks columns, and `embeds` checks what `@embed` refers to.
"""

from omnigraph.errors.diagnostics import Span
from omnigraph.lang.schema import catalog, model
from omnigraph.records.frozen import record

from .arguments import check_arguments, read_required_text
from .defaults import read_default
from .findings import CheckStage, SchemaFindings

INLINE_CONSTRAINTS = ("index", "key", "unique")
KNOWN_ANNOTATIONS = frozenset(
    {*INLINE_CONSTRAINTS, "description", "instruction", "rename_from", "embed", "default", "allow"}
)
_REPEATABLE = frozenset({"allow"})
_REPETITION_HINTS = {
    "rename_from": "keep only the previous name; a rename that has been applied no longer needs an annotation"
}
_NEVER_ON_HEADERS = frozenset({*INLINE_CONSTRAINTS, "embed"})
_CONSTRAINT_NAMES = frozenset({*INLINE_CONSTRAINTS, "range", "check"})


@record
class HeaderAnnotations:
    """The values read from the annotations on a node, edge or interface."""

    annotations: tuple[catalog.StoredAnnotation, ...] = ()
    rename_from: str | None = None
    allowed_findings: tuple[catalog.AllowedFinding, ...] = ()


def read_header_annotations(annotations: tuple[model.Annotation, ...], findings: SchemaFindings) -> HeaderAnnotations:
    """Read the annotations in a declaration's header."""
    valid_annotations = [
        annotation
        for annotation in _drop_repeated_annotations(annotations, findings)
        if _check_allowed_on_header(annotation, findings)
    ]
    stored_annotations = tuple(
        _to_stored_annotation(annotation, findings)
        for annotation in valid_annotations
        if _is_stored_verbatim(annotation)
    )
    return HeaderAnnotations(
        stored_annotations,
        _read_rename_hint(valid_annotations, findings),
        _read_allowed_findings(valid_annotations, findings),
    )


def read_property(
    declared_property: model.Property, type_kind: catalog.TypeKind, findings: SchemaFindings
) -> catalog.PropertyDefinition:
    """Read a property and its annotations, before interfaces are expanded."""
    valid_annotations = [
        annotation
        for annotation in _drop_repeated_annotations(declared_property.annotations, findings)
        if _check_allowed_on_property(annotation, findings)
    ]
    return catalog.PropertyDefinition(
        declared_property.name.text,
        declared_property.type,
        annotations=tuple(
            _to_stored_annotation(annotation, findings)
            for annotation in valid_annotations
            if _is_stored_verbatim(annotation)
        ),
        inline_constraints=tuple(
            sorted(
                {annotation.name.text for annotation in valid_annotations if annotation.name.text in INLINE_CONSTRAINTS}
            )
        ),
        embed=_read_embedding(declared_property, valid_annotations, type_kind, findings),
        default=read_default(declared_property, _find_annotation(valid_annotations, "default"), findings),
        rename_from=_read_rename_hint(valid_annotations, findings),
        allowed_findings=_read_allowed_findings(valid_annotations, findings),
        span=declared_property.span,
    )


def _drop_repeated_annotations(
    annotations: tuple[model.Annotation, ...], findings: SchemaFindings
) -> list[model.Annotation]:
    """Return the valid annotations, and report invalid arguments and forbidden repetitions."""
    seen_names: set[str] = set()
    valid_annotations = []
    for annotation in annotations:
        annotation_name = annotation.name.text
        if annotation_name in seen_names and annotation_name in KNOWN_ANNOTATIONS - _REPEATABLE:
            hint = _REPETITION_HINTS.get(annotation_name, "keep only one")
            _reject_annotation(findings, annotation.span, f"`@{annotation_name}` is specified more than once", hint)
        elif check_arguments(annotation, findings):
            valid_annotations.append(annotation)
        seen_names.add(annotation_name)
    return valid_annotations


def _check_allowed_on_header(annotation: model.Annotation, findings: SchemaFindings) -> bool:
    annotation_name = annotation.name.text
    if annotation_name in _NEVER_ON_HEADERS or (annotation_name in _CONSTRAINT_NAMES and annotation.arguments):
        inline_form = f"`@{annotation_name}` after a property"
        body_form = f"`@{annotation_name}(…)` between the braces"
        allowed_forms = [body_form] * (annotation_name in _CONSTRAINT_NAMES) + [inline_form] * (
            annotation_name in _NEVER_ON_HEADERS
        )
        hint = f"write {' or '.join(allowed_forms)}"
        _reject_annotation(findings, annotation.span, f"`@{annotation_name}` is not allowed on a header", hint)
    elif annotation_name == "default" and annotation.arguments:
        _reject_annotation(findings, annotation.span, "`@default` belongs on a property, not on a header")
    else:
        return True
    return False


def _check_allowed_on_property(annotation: model.Annotation, findings: SchemaFindings) -> bool:
    if annotation.name.text != "instruction":
        return True
    message = "`@instruction` belongs on a node or edge, not on a property"
    _reject_annotation(findings, annotation.span, message, "use `@description` here")
    return False


def _is_stored_verbatim(annotation: model.Annotation) -> bool:
    annotation_name = annotation.name.text
    if annotation_name == "default":
        return not annotation.arguments
    return annotation_name in ("description", "instruction") or annotation_name not in KNOWN_ANNOTATIONS


def _to_stored_annotation(annotation: model.Annotation, findings: SchemaFindings) -> catalog.StoredAnnotation:
    annotation_name = annotation.name.text
    if annotation_name in ("description", "instruction"):
        read_required_text(annotation, findings)
    argument_text = annotation.arguments[0].text if annotation.arguments else None
    return catalog.StoredAnnotation(
        annotation_name, argument_text, tuple((option.name.text, option.value.text) for option in annotation.options)
    )


def _read_rename_hint(annotations: list[model.Annotation], findings: SchemaFindings) -> str | None:
    annotation = _find_annotation(annotations, "rename_from")
    if annotation is None:
        return None
    if annotation.options:
        _reject_annotation(findings, annotation.options[0].name.span, "`@rename_from` takes only the old name")
    return read_required_text(annotation, findings, hint='write `@rename_from("OldName")`')


def _read_allowed_findings(
    annotations: list[model.Annotation], findings: SchemaFindings
) -> tuple[catalog.AllowedFinding, ...]:
    allowed_findings = (
        _read_allowed_finding(annotation, findings) for annotation in annotations if annotation.name.text == "allow"
    )
    return tuple(allowed_finding for allowed_finding in allowed_findings if allowed_finding is not None)


def _read_allowed_finding(annotation: model.Annotation, findings: SchemaFindings) -> catalog.AllowedFinding | None:
    hint = 'write `@allow(OG-NM-101, "why it is acceptable here")`'
    if len(annotation.arguments) != 2 or annotation.options:
        _reject_annotation(findings, annotation.span, "`@allow` takes a code and a reason", hint)
        return None
    code, reason = annotation.arguments
    if not code.text.startswith("OG-"):
        _reject_annotation(findings, code.span, f"`{code.text}` is not a known finding code", hint)
    elif reason.kind != "string" or not reason.text.strip():
        _reject_annotation(findings, reason.span, "`@allow` requires a reason in quotes", hint)
    else:
        return catalog.AllowedFinding(code.text, reason.text)
    return None


def _read_embedding(
    declared_property: model.Property,
    annotations: list[model.Annotation],
    type_kind: catalog.TypeKind,
    findings: SchemaFindings,
) -> catalog.EmbeddingDefinition | None:
    annotation = _find_annotation(annotations, "embed")
    if annotation is None:
        return None
    property_name = declared_property.name.text
    if type_kind == "edge":
        _reject_annotation(findings, annotation.span, f"`@embed` on `{property_name}`: edges cannot have embeddings")
        return None
    if not declared_property.type.is_vector and not declared_property.type_rejected:
        declared_type = declared_property.type.display()
        message = f"`@embed` requires a vector property; `{property_name}` is {declared_type}"
        _reject_annotation(findings, annotation.span, message, f"declare the property as `{property_name}: Vector(…)`")
    source = read_required_text(annotation, findings, hint='write `@embed("title")`')
    model_name = _read_embedding_model(annotation, findings)
    return catalog.EmbeddingDefinition(source, model_name) if source is not None else None


def _read_embedding_model(annotation: model.Annotation, findings: SchemaFindings) -> str | None:
    model_name = None
    for option in annotation.options:
        if option.name.text != "model":
            message = f"`@embed` has no option `{option.name.text}`"
            _reject_annotation(findings, option.name.span, message, "the only option is `model`")
        elif option.value.kind != "string" or not option.value.text.strip():
            _reject_annotation(findings, option.value.span, "`model` must be a quoted name")
        else:
            model_name = option.value.text
    return model_name


def _find_annotation(annotations: list[model.Annotation], annotation_name: str) -> model.Annotation | None:
    return next((annotation for annotation in annotations if annotation.name.text == annotation_name), None)


def _reject_annotation(findings: SchemaFindings, span: Span, message: str, hint: str | None = None) -> None:
    findings.add(CheckStage.ANNOTATION, span, message, hint)
