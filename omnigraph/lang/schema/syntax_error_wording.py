"""The wording of syntax errors: readable names for terminals, and hints for syntax from other languages."""

import re

from omnigraph.errors.diagnostics import SourceText, Span

EXPECTED_DECLARATION = "a declaration (`node`, `edge` or `interface`)"
TERMINAL_GROUPS = (
    (EXPECTED_DECLARATION, frozenset({"_NODE", "_EDGE", "_INTERFACE"})),
    ("a property", frozenset({"NAME", "_STRAY"})),
    ("a type", frozenset({"NAME", "LSQB", "_ENUM", "_VECTOR"})),
    ("a value", frozenset({"STRING", "NUMBER", "WORD", "_DOTS"})),
    ("a value", frozenset({"STRING", "NUMBER", "WORD"})),
)
TERMINAL_NAMES = {
    "_INTERFACE": "`interface`",
    "_NODE": "`node`",
    "_EDGE": "`edge`",
    "_IMPLEMENTS": "`implements`",
    "_CARD": "`@card(…)`",
    "_ENUM": "`enum(…)`",
    "_VECTOR": "`Vector(…)`",
    "_ARROW": "`->`",
    "_DOTS": "`..`",
    "NAME": "a name",
    "WORD": "a word",
    "NUMBER": "a number",
    "STRING": "a quoted string",
    "CONSTRAINT": "a constraint",
    "ANNOTATION": "an annotation",
    "NULLABLE": "`?`",
    "COLON": "`:`",
    "COMMA": "`,`",
    "EQUAL": "`=`",
    "LBRACE": "`{`",
    "RBRACE": "`}`",
    "LPAR": "`(`",
    "RPAR": "`)`",
    "LSQB": "`[`",
    "RSQB": "`]`",
}

_GLUED_KEYWORD = re.compile(r"(node|edge|interface)([A-Z]\w*)")
_HINT_BY_TOKEN = {
    "#": "comments start with `//`",
    ";": "remove the separator; properties do not need one",
    "?": "one `?` is enough",
    "'": "strings are written in double quotes",
    "enum": "declare an enum on its property: `status: enum(draft, published)`",
    "extends": "interfaces cannot extend each other; a node must list every interface that it implements",
    "implements": "`implements` must come after a node's annotations",
    "type": "write `node` for entities and `edge` for connections between them",
    "struct": "write `node` for entities and `edge` for connections between them",
}


def suggest_fix(source: SourceText, span: Span, expected: frozenset[str]) -> str | None:
    """Return a hint for the text at a syntax error, or None if no hint applies.

    >>> suggest_fix(SourceText("a.pg", "nodePerson {}"), Span(0, 10), frozenset({"_NODE"}))
    'write `node Person`'
    """
    unexpected_text = source.text[span.start : span.end]
    glued_match = _GLUED_KEYWORD.fullmatch(unexpected_text)
    if glued_match is not None:
        return f"write `{glued_match[1]} {glued_match[2]}`"
    return _HINT_BY_TOKEN.get(unexpected_text)
