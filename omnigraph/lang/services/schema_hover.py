"""Hover text for `.pg`: types, annotations, scalar types and keywords."""

from omnigraph.errors.diagnostics import Span
from omnigraph.lang.schema import diagnose_schema
from omnigraph.lang.schema.parse import DECLARATION_OPENING

from . import schema_words as words
from .cursor import find_cursor, scan_tokens, token_at
from .describe import describe_type
from .items import HoverText
from .query_words import SCALAR_TYPE_MEANINGS
from .variables import entity_type


def hover_schema(text: str, offset: int) -> HoverText | None:
    """Return an explanation of the word at an offset, or None. Types are explained only if the schema is valid."""
    if find_cursor(text, offset, DECLARATION_OPENING) is None:
        return None
    tokens = scan_tokens(text, 0, len(text))
    index = token_at(tokens, offset)
    if index is None:
        return None
    token = tokens[index]
    contents = _explain(text, token.text)
    return None if contents is None else HoverText(contents, Span(token.start, token.end))


def _explain(text: str, word: str) -> str | None:
    if word.startswith("@"):
        meaning = words.ANNOTATIONS.get(word[1:])
    else:
        meaning = words.KEYWORD_MEANINGS.get(word) or SCALAR_TYPE_MEANINGS.get(word)
    if meaning is not None:
        return f"`{word}`: {meaning}"
    declared = entity_type(diagnose_schema(text)[0], word)
    return None if declared is None else describe_type(declared)
