"""Check the number and form of annotation arguments."""

from omnigraph.lang.schema import model

from .findings import CheckStage, SchemaFindings

_FREE_FORM_ANNOTATIONS = frozenset({"default", "allow"})


def check_arguments(annotation: model.Annotation, findings: SchemaFindings) -> bool:
    """Return whether an annotation's arguments are well-formed. Report an error if they are not."""
    annotation_name = annotation.name.text
    if annotation.options and not annotation.arguments:
        message = f"`@{annotation_name}`: a positional argument must come before any named argument"
        findings.add(CheckStage.ANNOTATION, annotation.options[0].name.span, message)
        return False
    if annotation_name in _FREE_FORM_ANNOTATIONS:
        return True
    if len(annotation.arguments) > 1:
        message = f"`@{annotation_name}` takes one positional argument; further arguments must be named"
        findings.add(CheckStage.ANNOTATION, annotation.arguments[1].span, message)
        return False
    argument_literals = [*annotation.arguments, *(option.value for option in annotation.options)]
    form_results = [_check_literal_form(annotation_name, literal, findings) for literal in argument_literals]
    return all(form_results)


def read_required_text(annotation: model.Annotation, findings: SchemaFindings, hint: str | None = None) -> str | None:
    """Return an annotation's argument. If it is missing or blank, report an error and return None."""
    annotation_name = annotation.name.text
    hint = hint or f'write `@{annotation_name}("…")`'
    if not annotation.arguments:
        findings.add(CheckStage.ANNOTATION, annotation.span, f"`@{annotation_name}` requires a value", hint)
        return None
    argument_text = annotation.arguments[0].text
    if not argument_text.strip():
        message = f"the value of `@{annotation_name}` must not be blank"
        findings.add(CheckStage.ANNOTATION, annotation.arguments[0].span, message, hint)
        return None
    return argument_text


def _check_literal_form(annotation_name: str, literal: model.Literal, findings: SchemaFindings) -> bool:
    literal_text = literal.text
    if literal.kind in ("int", "float"):
        if literal_text.startswith("-") or "e" in literal_text.lower():
            message = f"`@{annotation_name}`: only `@range` bounds and `@default` values may have a sign or an exponent"
            findings.add(CheckStage.ANNOTATION, literal.span, message, f'put the value in quotes: `"{literal_text}"`')
            return False
    elif literal.kind in ("word", "code") and not is_identifier(literal_text):
        message = f"`@{annotation_name}`: `{literal_text}` is neither a quoted string nor a lowercase name"
        findings.add(CheckStage.ANNOTATION, literal.span, message, f'put the value in quotes: `"{literal_text}"`')
        return False
    return True


def is_identifier(candidate: str) -> bool:
    """Return whether a word is a valid property name.

    >>> is_identifier("title"), is_identifier("close-friend"), is_identifier("3d")
    (True, False, False)
    """
    return (candidate[:1].islower() or candidate[:1] == "_") and "-" not in candidate
