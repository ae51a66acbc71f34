"""Completion in `.gq` text.

The parser decides which terminals may follow, and the block around the cursor determines which names and keywords make
sense there. Completions are never checked against the rest of the query.
"""

from collections.abc import Iterator
from itertools import pairwise

from omnigraph.lang.query.parse import QUERY_OPENING
from omnigraph.lang.schema.catalog import Catalog
from omnigraph.records.frozen import record

from . import query_words as words
from .cursor import Cursor, TextToken, find_cursor, scan_tokens
from .describe import describe_header, describe_property
from .expected import Expectation, ReadTerminal, first_expectation, keyword_terminals
from .items import Candidate, CompletionItem, rank_candidates
from .query_blocks import Block, find_block, simpler_versions
from .variables import InferredVariable, entity_type, infer_variables, other_endpoint, properties_of

_VALUE_ENDS = frozenset(
    {"VAR", "IDENT", "STRING", "NATURAL", "FLOAT", "NEGATIVE", "BOOL", "NULL", "RPAR", "RSQB", "END"}
)
_TEXT_TERMINALS = frozenset({"TEXT_FN", "FUZZY"})
_RANKING_TERMINALS = frozenset({"BM25", "NEAREST", "RRF"})
_CASE_TERMINALS = frozenset({"WHEN", "THEN", "ELSE", "END"})
_TEST_TERMINALS = frozenset({"AND", "OR", "IN", "IS", "WORD_OP"})
_STATEMENT_TERMINALS = frozenset({"INSERT", "UPSERT", "PATCH", "UPDATE", "DELETE", "MATCH"})
_FUNCTION_TERMINALS = frozenset({"NOW", "DATE_FN", "AGGREGATE"}) | _TEXT_TERMINALS | _RANKING_TERMINALS
_CLAUSE_BLOCKS = frozenset({"match", "where"})


@record
class _Context:
    """The facts about the cursor that determine the completions."""

    expectation: Expectation
    block: Block
    variables: dict[str, InferredVariable]
    catalog: Catalog | None
    tokens: list[TextToken]


def complete_query(text: str, offset: int, catalog: Catalog | None) -> tuple[CompletionItem, ...]:
    """Return the completions at an offset."""
    cursor = find_cursor(text, offset, QUERY_OPENING)
    if cursor is None:
        return ()
    context = _read_context(text, cursor, catalog)
    candidates = () if context is None else tuple(_candidates(context))
    return rank_candidates(candidates, cursor.typed, cursor.replaced)


def _read_context(text: str, cursor: Cursor, catalog: Catalog | None) -> _Context | None:
    tokens = scan_tokens(text, cursor.declaration.start, cursor.declaration.end)
    variables = infer_variables([token for token in tokens if token.start != cursor.replaced.start], catalog)
    expectation = first_expectation("query", simpler_versions(cursor.before))
    if expectation is None:
        return None
    return _Context(expectation, find_block(expectation.read), variables, catalog, tokens)


def _candidates(context: _Context) -> Iterator[Candidate]:
    allowed = context.expectation.allowed
    if not context.expectation.read or "$END" in allowed:
        yield Candidate("query", "keyword", words.KEYWORD_MEANINGS["query"])
    if not context.expectation.read:  # the source may also be the body of a query
        for word in ("match", "insert", "upsert", "patch", "update", "delete"):
            yield Candidate(word, "keyword", words.KEYWORD_MEANINGS[word])
        return
    if "IDENT" in allowed:
        yield from _name_candidates(context)
    if "TYPE_NAME" in allowed:
        yield from _type_candidates(context)
    if "VAR" in allowed:
        yield from _variable_candidates(context)
    yield from _function_candidates(context)
    yield from _keyword_candidates(context)


def _name_candidates(context: _Context) -> Iterator[Candidate]:
    read, block = context.expectation.read, context.block
    last = context.expectation.last
    if last == "DOT":
        yield from _properties_of_variable(context, read[-2].text[1:])
    elif block.kind == "match" and last in ("VAR", "VBAR", "LT", "COLON"):
        yield from _edge_candidates(context)
    elif (block.kind == "assign" and last != "COLON") or (block.kind == "row" and last not in _VALUE_ENDS):
        owner = block.owner
        variable = context.variables.get(owner[1:]) if owner.startswith("$") else None
        yield from _property_candidates(context, variable.type_name if variable is not None else owner, block)
    elif block.kind in ("order", "having") and last not in _VALUE_ENDS:
        yield from (Candidate(alias, "property", "column") for alias in _aliases(context.tokens))


def _properties_of_variable(context: _Context, name: str) -> Iterator[Candidate]:
    variable = context.variables.get(name)
    declared = entity_type(context.catalog, variable.type_name if variable is not None else None)
    for definition in properties_of(declared):
        if _is_query_name(definition.name):
            yield Candidate(definition.name, "property", describe_property(declared, definition))


def _property_candidates(context: _Context, type_name: str | None, block: Block) -> Iterator[Candidate]:
    declared = entity_type(context.catalog, type_name)
    is_edge = type_name is not None and context.catalog is not None and context.catalog.edge(type_name) is not None
    names = ["from", "to"] if block.is_insert and is_edge else []
    yield from (Candidate(name, "property", "endpoint", f"{name}: ") for name in names)
    for definition in properties_of(declared):
        if _is_query_name(definition.name) and definition.name not in block.used_names:
            inserted = definition.name if block.kind == "row" else f"{definition.name}: "
            yield Candidate(definition.name, "property", describe_property(declared, definition), inserted)


def _edge_candidates(context: _Context) -> Iterator[Candidate]:
    if context.catalog is None:
        return
    variable = context.variables.get(_traversal_source(context.expectation.read))
    type_name = variable.type_name if variable is not None else None
    for edge in context.catalog.edges:
        if other_endpoint(context.catalog, edge, type_name) is not None:
            yield Candidate(edge.name[:1].lower() + edge.name[1:], "edge", describe_header(edge))


def _traversal_source(read: tuple[ReadTerminal, ...]) -> str:
    """Return the source variable of the traversal that ends at the cursor, without its `$`."""
    index = len(read) - 1
    while index > 0 and read[index].name != "VAR":
        index -= 1
    if index > 0 and read[-1].name == "COLON" and read[index - 1].name == "VAR":
        index -= 1  # the edge variable follows the source
    return read[index].text[1:]


def _type_candidates(context: _Context) -> Iterator[Candidate]:
    catalog = context.catalog
    if catalog is None:
        return
    in_pattern = context.expectation.last == "COLON"
    for declared in (*catalog.nodes, *(catalog.interfaces if in_pattern else catalog.edges)):
        yield Candidate(declared.name, "type", describe_header(declared))


def _variable_candidates(context: _Context) -> Iterator[Candidate]:
    only_parameters = context.expectation.last in ("_LIMIT", "_OFFSET") or context.block.kind == "row"
    in_parameters = context.block.kind == "parameters"
    for variable in () if in_parameters else context.variables.values():
        is_parameter = variable.role == "parameter"
        if is_parameter or not only_parameters:
            yield Candidate(
                f"${variable.name}", "parameter" if is_parameter else "variable", variable.type_name or variable.role
            )


def _function_candidates(context: _Context) -> Iterator[Candidate]:
    allowed, kind = context.expectation.allowed, context.block.kind
    tables = []
    if "AGGREGATE" in allowed and kind in ("return", "order", "having"):
        tables.append(words.AGGREGATES)
    if "FUNCTION" in allowed:
        tables.append(
            words.SCALAR_FUNCTIONS if kind in ("row", "assign") else words.SCALAR_FUNCTIONS | words.PATH_FUNCTIONS
        )
    if "TEXT_FN" in allowed and kind in _CLAUSE_BLOCKS:
        tables.append(words.TEXT_CONDITIONS)
    if "BM25" in allowed and kind in ("return", "order"):
        tables.append(words.RANKINGS)
    if "NOW" in allowed:
        tables.append(words.VALUE_FUNCTIONS)
    for table in tables:
        for name, signature in table.items():
            yield Candidate(name, "function", signature.display(name), "now()" if name == "now" else f"{name}(")


def _keyword_candidates(context: _Context) -> Iterator[Candidate]:
    for terminal, keyword_texts in keyword_terminals("query").items():
        if terminal not in context.expectation.allowed or not _makes_sense(terminal, context):
            continue
        for text in keyword_texts:
            if text in words.SCALAR_TYPE_MEANINGS:
                inserted = "Vector(" if text == "Vector" else text
                yield Candidate(text, "type", words.SCALAR_TYPE_MEANINGS[text], inserted)
            else:
                inserted = "case when" if text == "case" else text
                yield Candidate(text, "keyword", words.KEYWORD_MEANINGS.get(text, ""), inserted)
    if "NOTE" in context.expectation.allowed:
        yield Candidate("@description", "annotation", "describes the query", '@description("')
        yield Candidate("@instruction", "annotation", "tells programs when to use the query", '@instruction("')


def _makes_sense(terminal: str, context: _Context) -> bool:
    """Return whether a keyword makes sense at the cursor.

    The grammar allows more, because most keywords can be column names.
    """
    block, after_value = context.block, context.expectation.last in _VALUE_ENDS
    if terminal in _FUNCTION_TERMINALS or context.expectation.last in ("DOT", "AS"):
        return False
    if block.kind == "assign" and not block.in_case and context.expectation.last != "COLON":
        return False  # a property name follows
    if terminal in _CASE_TERMINALS:
        return block.in_case
    if terminal in _STATEMENT_TERMINALS:
        return block.kind == "body"
    if terminal in _TEST_TERMINALS:
        return after_value and (block.in_case or block.kind in ("match", "where", "having", "row"))
    return _fits_block(terminal, block.kind, after_value=after_value, in_case=block.in_case)


def _fits_block(terminal: str, kind: str, *, after_value: bool, in_case: bool) -> bool:
    match terminal:
        case "NULL" | "BOOL":
            return not after_value or kind == "match"
        case "NOT":
            return in_case or kind in ("match", "where", "having", "row")
        case "OPTIONAL" | "BY":
            return kind == "match"
        case "DIRECTION":
            return kind == "order" and after_value
        case "AS":
            return kind == "return" and after_value
    return True


def _aliases(tokens: list[TextToken]) -> list[str]:
    following = pairwise(tokens)
    return [name.text for word, name in following if word.text == "as" and name.kind == "word"]


def _is_query_name(name: str) -> bool:
    return name[:1].islower() or name.startswith("_")
