"""Arguments of annotations: their number and form."""

from omnigraph.lang.schema import model

from .findings import Findings, Stage

_FREE = frozenset({"default", "allow"})


def check_arguments(one: model.Annotation, findings: Findings) -> bool:
    """Return whether the arguments of an annotation are well formed; report them if not."""
    name = one.name.text
    if one.options and not one.arguments:
        message = f"`@{name}`: a named argument must follow a positional one"
        findings.add(Stage.ANNOTATION, one.options[0].name.span, message)
        return False
    if name in _FREE:
        return True
    if len(one.arguments) > 1:
        message = f"`@{name}` takes one positional argument; further arguments must be named"
        findings.add(Stage.ANNOTATION, one.arguments[1].span, message)
        return False
    literals = [*one.arguments, *(option.value for option in one.options)]
    well_formed = [_check_form(name, literal, findings) for literal in literals]
    return all(well_formed)


def required_text(one: model.Annotation, findings: Findings, hint: str | None = None) -> str | None:
    """Return the argument of an annotation; report a missing or blank one."""
    name = one.name.text
    hint = hint or f'write `@{name}("…")`'
    if not one.arguments:
        findings.add(Stage.ANNOTATION, one.span, f"`@{name}` needs a value", hint)
        return None
    text = one.arguments[0].text
    if not text.strip():
        message = f"the value of `@{name}` is blank"
        findings.add(Stage.ANNOTATION, one.arguments[0].span, message, hint)
        return None
    return text


def _check_form(name: str, literal: model.Literal, findings: Findings) -> bool:
    text = literal.text
    if literal.kind in ("int", "float"):
        if text.startswith("-") or "e" in text.lower():
            message = f"`@{name}`: only `@range` bounds and `@default` take a sign or exponent"
            findings.add(Stage.ANNOTATION, literal.span, message, f'put it in quotes: `"{text}"`')
            return False
    elif literal.kind in ("word", "code") and not is_identifier(text):
        message = f"`@{name}`: `{text}` is neither a quoted string nor a lower-case name"
        findings.add(Stage.ANNOTATION, literal.span, message, f'put it in quotes: `"{text}"`')
        return False
    return True


def is_identifier(word: str) -> bool:
    """Return whether a word is a valid property name.

    >>> is_identifier("title"), is_identifier("close-friend"), is_identifier("3d")
    (True, False, False)
    """
    return (word[:1].islower() or word[:1] == "_") and "-" not in word
