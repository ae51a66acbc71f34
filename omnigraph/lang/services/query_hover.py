"""Hover text for `.gq`: variables, properties, types, edges, functions and keywords."""

from omnigraph.errors.diagnostics import Span
from omnigraph.lang.query.parse import QUERY_OPENING
from omnigraph.lang.schema.catalog import Catalog

from . import query_words as words
from .cursor import TextToken, find_cursor, scan_tokens, token_at
from .describe import describe_type, explain_property
from .expected import read_prefix
from .items import HoverText
from .query_blocks import find_block
from .variables import InferredVariable, entity_type, infer_variables, properties_of


def hover_query(text: str, offset: int, catalog: Catalog | None) -> HoverText | None:
    """Return an explanation of the word at an offset, or None if there is nothing to explain."""
    cursor = find_cursor(text, offset, QUERY_OPENING)
    if cursor is None:
        return None
    tokens = scan_tokens(text, cursor.declaration.start, cursor.declaration.end)
    index = token_at(tokens, offset)
    if index is None:
        return None
    variables = infer_variables(tokens, catalog)
    contents = _explain(text[cursor.declaration.start : tokens[index].start], tokens, index, variables, catalog)
    return None if contents is None else HoverText(contents, Span(tokens[index].start, tokens[index].end))


def _explain(
    before: str,
    tokens: list[TextToken],
    index: int,
    variables: dict[str, InferredVariable],
    catalog: Catalog | None,
) -> str | None:
    token = tokens[index]
    if token.kind == "variable":
        return _explain_variable(variables.get(token.text[1:]))
    previous = tokens[index - 1].text if index else ""
    following = tokens[index + 1].text if index + 1 < len(tokens) else ""
    if previous == ".":
        owner = variables.get(tokens[index - 2].text[1:]) if index > 1 else None
        return _explain_property(catalog, owner.type_name if owner is not None else None, token.text)
    if token.text[:1].isupper():
        return _explain_type(catalog, token.text)
    if following == "(" and token.text in words.FUNCTIONS:
        signature = words.FUNCTIONS[token.text]
        return f"`{signature.display(token.text)}`: {signature.meaning}"
    return _explain_word(before, token.text, catalog)


def _explain_variable(variable: InferredVariable | None) -> str | None:
    if variable is None:
        return None
    return f"`${variable.name}`: {variable.role}" + (f" of type {variable.type_name}" if variable.type_name else "")


def _explain_type(catalog: Catalog | None, name: str) -> str | None:
    declared = entity_type(catalog, name)
    if declared is not None:
        return describe_type(declared)
    meaning = words.SCALAR_TYPE_MEANINGS.get(name)
    return None if meaning is None else f"`{name}`: {meaning}"


def _explain_property(catalog: Catalog | None, type_name: str | None, name: str) -> str | None:
    declared = entity_type(catalog, type_name)
    definition = next((prop for prop in properties_of(declared) if prop.name == name), None)
    return None if declared is None or definition is None else explain_property(declared, definition)


def _explain_word(before: str, word: str, catalog: Catalog | None) -> str | None:
    expectation = read_prefix("query", before)
    block = find_block(expectation.read) if expectation is not None else None
    if block is not None and block.kind in ("assign", "row"):
        explanation = _explain_property(catalog, block.owner, word)
        if explanation is not None:
            return explanation
    edge = catalog.edge_ignoring_case(word) if catalog is not None else None
    if edge is not None and expectation is not None and expectation.last in ("VAR", "COLON", "VBAR", "LT"):
        return describe_type(edge)
    meaning = words.KEYWORD_MEANINGS.get(word)
    return None if meaning is None else f"`{word}`: {meaning}"
