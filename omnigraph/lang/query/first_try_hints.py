"""Hints for SQL and Cypher keywords in a query. Each hint names the keyword and shows the equivalent syntax.

Like `hints`, this module only provides the wording of hints and never affects whether a query is valid.
"""

import re

from omnigraph.errors.diagnostics import SourceText, Span

from .foreign_queries import suggest_own_form

_KEYWORD = re.compile(
    "match|return|having|union|all|order|limit|offset|set|where|as|insert|upsert|patch|update|delete|distinct|asc|desc|optional|not"
    "|and|or|in|is|null|true|false|contains|starts_with|query"
)
_BARE_NAME = re.compile(r"(?<![\w$.])([a-z]\w*)$")
_PROPERTY_NAME = re.compile(r"[a-z]\w*")
_VARIABLE_AND_DOT = re.compile(r"\$([a-z]\w*)\.$")
_MAX_NAME_LENGTH = 100
_TEXT_TESTS = "use `contains` or `starts_with`, `matches(..)` for a regular expression, or `search(..)` for words"

_NODE_HINT = "write a node as `$p: Person` and a traversal as `$p knows $q`, without parentheses"
_CYPHER_LABEL, _OPENED_NODE = re.compile(r":\s*[A-Z]\w*\s*[){]"), re.compile(r"\(\s*\$\w+\s*$")
_CYPHER_NODE = re.compile(r"(?<=\()[a-z]\w*\s*:\s*[A-Z]\w*\s*[){]|(?<=\()[a-z]\w*\s*\)\s*<?-")

# Patterns that match the text at an error, each with a hint. The patterns are compiled only when a query has an error.
_WORD_HINTS: tuple[tuple[str, str], ...] = (
    (r"(?<==)~|~", f"`=~` is not an operator; {_TEXT_TESTS}"),
    (r"(?i:i?like|regexp|rlike|similar)\b", f"`like` is not an operator; {_TEXT_TESTS}"),
    (r"(?i:matches)\b(?!\s*\()", 'write `matches($p.name, "^a")`'),
    (r"(?i:between)\b", "`between` is not an operator; write `$p.age >= 3 and $p.age <= 5`"),
    (r"(?<== )shortest\b", "write `any shortest` or `all shortest`"),
    (
        r"(?i:group)\s+(?i:by)\b",
        "omit `group by`: columns next to an aggregate are the group keys, as in `return { $p.city, count(*) }`",
    ),
    (r"(?<=\border )\s*(?i:by)\b", "write the sort keys in braces: `order { $p.name desc }`"),
    (r"(?i:order)\s+(?i:by)\b", "write the sort keys in braces after `return { .. }`: `order { $p.name desc }`"),
    (r"(?i:skip)\b", "write `offset 10`, after `limit`"),
    (r"(?i:detach)\b", "write `delete $p`, which also deletes the nodes' edges"),
    (r"(?i:create)\b", 'write `insert Person { name: "Ann" }`'),
    (r"(?i:merge)\b", 'write `upsert Person { name: "Ann" }`'),
    (r"(?i:having)\b", "write `having { count(*) > 1 }` after `return { .. }` and before `order`"),
    (r"(?i:union)\b", "`order`, `limit` and `offset` apply to the whole union; write them after its last part"),
)


def suggest_first_try(source: SourceText, span: Span, expected_terminals: frozenset[str]) -> str | None:
    """Return a hint if the text at `span` is a keyword or statement from another language, or None otherwise."""
    own_form = suggest_own_form(source, span, at_file_level="_QUERY" in expected_terminals)
    if own_form is not None:
        return own_form
    found_text = source.text[span.start : span.end]
    for pattern, hint in _WORD_HINTS:
        if re.compile(pattern).match(source.text, span.start):
            return hint
    if _KEYWORD.fullmatch(found_text.lower()) and found_text != found_text.lower():
        return f"keywords are lowercase: write `{found_text.lower()}`"
    if "STRING" in expected_terminals and _CYPHER_NODE.match(source.text, span.start):
        return _NODE_HINT
    if _CYPHER_LABEL.match(source.text, span.start) and _OPENED_NODE.search(source.text[: span.start]):
        return _NODE_HINT
    return _suggest_property(source, span, found_text) or _suggest_variable(found_text, expected_terminals)


def _suggest_property(source: SourceText, span: Span, found_text: str) -> str | None:
    """Return a hint about a missing `$`, as in `p.name`, or about `$p.*`, or None if neither applies."""
    text_before = source.text[max(0, span.start - _MAX_NAME_LENGTH) : span.start]
    if found_text == "." and (bare_name := _BARE_NAME.search(text_before)) is not None:
        property_name = _PROPERTY_NAME.match(source.text, span.end)
        return f"variables begin with `$`: write `${bare_name[1]}.{property_name[0] if property_name else 'name'}`"
    if found_text == "*" and (variable := _VARIABLE_AND_DOT.search(text_before)) is not None:
        return f"list the properties to return; `${variable[1]}` returns the whole node or edge"
    return None


def _suggest_variable(found_text: str, expected_terminals: frozenset[str]) -> str | None:
    """Return a hint about a `*` column or about the target of an update or delete, or None if neither applies."""
    if found_text.startswith("$") and expected_terminals == {"TYPE_NAME"}:
        return f"write the match first: `match {{ {found_text}: Person }} update {found_text} set {{ .. }}`"  # noqa: S608
    if found_text[:1].isupper() and expected_terminals == {"VAR"}:
        return "after `match { .. }`, name the variable to change: `delete $p`, `update $p set { .. }`"
    if found_text == "set" and "_RETURN" in expected_terminals:
        return "write `match { .. } update $p set { age: 3 }`"
    if found_text == "*" and {"STRING", "VAR"} <= expected_terminals:
        return "list the columns to return; `$p` returns the whole node, and `count(*)` counts rows"
    return None
