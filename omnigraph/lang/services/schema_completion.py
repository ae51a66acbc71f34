"""Completion in `.pg` text: keywords, types, annotations, and the property names that constraints refer to."""

from collections.abc import Iterator
from itertools import pairwise

from omnigraph.lang.schema.parse import DECLARATION_OPENING

from . import schema_words as words
from .cursor import TextToken, find_cursor, scan_tokens
from .expected import Expectation, first_expectation
from .items import Candidate, CompletionItem, rank_candidates
from .query_words import SCALAR_TYPE_MEANINGS

_TAKES_NO_ARGUMENT = frozenset({"key", "unique", "index"})
_COLUMN_CONSTRAINTS = ("@key", "@unique", "@index", "@range", "@check")


def complete_schema(text: str, offset: int) -> tuple[CompletionItem, ...]:
    """Return the completions at an offset."""
    cursor = find_cursor(text, offset, DECLARATION_OPENING)
    if cursor is None:
        return ()
    expectation = first_expectation("schema", _simpler_versions(cursor.before))
    if expectation is None:
        return ()
    tokens = scan_tokens(text, 0, len(text))
    own = [token for token in tokens if cursor.declaration.start <= token.start < cursor.declaration.end]
    return rank_candidates(_candidates(expectation, tokens, own), cursor.typed, cursor.replaced)


def _simpler_versions(before: str) -> Iterator[str]:
    """Yield the text before the cursor, then only its header and last line, and finally only its header."""
    yield before
    brace, line_start = before.find("{"), before.rfind("\n") + 1
    if brace >= 0:
        yield before[: brace + 1] + before[max(line_start, brace + 1) :]
        yield before[: brace + 1]


def _candidates(expectation: Expectation, tokens: list[TextToken], own: list[TextToken]) -> Iterator[Candidate]:
    if not expectation.read or "$END" in expectation.allowed:
        for word in ("node", "edge", "interface"):
            yield Candidate(word, "keyword", words.KEYWORD_MEANINGS[word])
    if "_IMPLEMENTS" in expectation.allowed:
        yield Candidate("implements", "keyword", words.KEYWORD_MEANINGS["implements"])
    if "NAME" in expectation.allowed:
        yield from _name_candidates(expectation, tokens)
    if "WORD" in expectation.allowed:
        yield from _column_candidates(expectation, own)
    yield from _annotation_candidates(expectation)


def _name_candidates(expectation: Expectation, tokens: list[TextToken]) -> Iterator[Candidate]:
    in_body = any(terminal.name == "LBRACE" for terminal in expectation.read)
    last = expectation.last
    if in_body and last in ("COLON", "LSQB"):
        for name, meaning in SCALAR_TYPE_MEANINGS.items():
            if name != "Vector" or "_VECTOR" in expectation.allowed:
                yield Candidate(name, "type", meaning, "Vector(" if name == "Vector" else name)
        yield Candidate("enum", "keyword", words.KEYWORD_MEANINGS["enum"], "enum(")
    elif not in_body and last in ("COLON", "_ARROW"):
        yield from (Candidate(name, "type", f"node {name}") for name in _declared_names(tokens, "node"))
    elif not in_body and last in ("_IMPLEMENTS", "COMMA"):
        yield from (Candidate(name, "type", f"interface {name}") for name in _declared_names(tokens, "interface"))


def _declared_names(tokens: list[TextToken], keyword: str) -> list[str]:
    following = pairwise(tokens)
    return sorted({name.text for word, name in following if word.text == keyword and name.kind == "word"})


def _column_candidates(expectation: Expectation, own: list[TextToken]) -> Iterator[Candidate]:
    names = [terminal.text.replace(" ", "") for terminal in expectation.read]
    opening = max((index for index, name in enumerate(names) if name == "("), default=0)
    if opening and names[opening - 1] in _COLUMN_CONSTRAINTS and names[-1] in ("(", ","):
        for column in _declared_columns(own):
            if column not in names[opening:]:
                yield Candidate(column, "property", "property")


def _declared_columns(own: list[TextToken]) -> list[str]:
    """Return the property names in a declaration, which are the words before `:` between its braces."""
    brace = next((index for index, token in enumerate(own) if token.text == "{"), len(own))
    following = pairwise(own[brace:])
    return [name.text for name, colon in following if name.kind == "word" and colon.text == ":"]


def _annotation_candidates(expectation: Expectation) -> Iterator[Candidate]:
    in_body = any(terminal.name == "LBRACE" for terminal in expectation.read)
    if "ANNOTATION" in expectation.allowed:
        has_property = in_body and expectation.last != "LBRACE"
        table = words.PROPERTY_ANNOTATIONS if has_property else {} if in_body else words.HEADER_ANNOTATIONS
        for name, meaning in table.items():
            inserted = f"@{name}" if name in _TAKES_NO_ARGUMENT else f"@{name}("
            yield Candidate(f"@{name}", "annotation", meaning, inserted)
    if "_CARD" in expectation.allowed:
        yield Candidate("@card", "annotation", words.CARDINALITY["card"], "@card(")
    if "CONSTRAINT" in expectation.allowed:
        for name, meaning in words.CONSTRAINTS.items():
            yield Candidate(f"@{name}(…)", "annotation", meaning, f"@{name}(")
