"""Hints for text in another query language. Each hint names the language and shows an equivalent query.

After a syntax error, this module checks whether the text is Cypher, SQL or Gremlin. The hint shows a translation if the
parser accepts it, or an example otherwise. Only short statements are translated, so the cost of a hint is bounded.
"""

import re

from omnigraph.errors.diagnostics import SourceText, Span

from .cypher_translation import translate_cypher
from .sql_translation import translate_sql

_MAX_STATEMENT_LENGTH = 300
_MAX_PARTS = 8  # maximum number of parts in a statement; the translation patterns may try every combination of parts
_PART_WORD = re.compile(r"\b(?:from|where|return|group|having|order|skip|limit|set|values)\b", re.IGNORECASE)
_MAX_LOOK_BACK = 60
_STATEMENT_OPENING = re.compile(
    r"\b(?:match\s*|insert\s+|insert\s+into\s+|delete\s+|update\s+\w+\s+set\s+)$", re.IGNORECASE
)
_CYPHER = re.compile(r"(?:optional\s+)?(?:match|create|merge)\s*\(|(?:unwind|call)\s", re.IGNORECASE)
_SQL = re.compile(
    r"select\s|insert\s+into\s|delete\s+from\s|update\s+\w+\s+set\s+\w+\s*=|with\s+\w+\s+as\s*\(", re.IGNORECASE
)
_CREATE_TYPE = re.compile(r"create\s+(?:table|node|rel|type|graph)\b", re.IGNORECASE)
_GREMLIN = re.compile(r"g\s*\.\s*[VE]\s*\(")

_READ_EXAMPLE = "match { $p: Person  $p knows $q  $q.age > 30 } return { $p.name, $q }"
_INSERT_EXAMPLE = 'insert Person { name: "Ann" }'
_WRITE_EXAMPLES = {
    "merge": 'upsert Person { name: "Ann" }',
    "update": 'update Person set { age: 3 } where name = "Ann"',
    "delete": "delete Person where age > 30",
}
_REGULAR_EXPRESSION_HINT = "; instead of `=~`, use `contains` or `starts_with`"
_TYPES_HINT = "types are declared in a schema file (.pg), as in `node Person { name: String @key }`"


def suggest_own_form(source: SourceText, span: Span, *, at_file_level: bool) -> str | None:
    """Return a hint that translates the statement at `span` or shows an example, or None if no language is recognized.

    If `at_file_level` is true, the statement is outside a query, so the hint must include a query header.
    """
    statement = _statement_at(source.text, span.start)
    if _CREATE_TYPE.match(statement):
        return _TYPES_HINT
    language = _recognize_language(statement)
    if language is None:
        return None
    translate = {"Cypher": translate_cypher, "SQL": translate_sql}.get(language, lambda _: None)
    is_short = len(statement) < _MAX_STATEMENT_LENGTH and len(_PART_WORD.findall(statement)) <= _MAX_PARTS
    translation = translate(statement) if is_short else None
    if translation is not None and _is_valid_body(translation):
        return f"this is {language}; write `{_as_query(translation, at_file_level)}`"
    opening = re.match(r"insert|create|merge|update|delete", statement, re.IGNORECASE)
    example = _READ_EXAMPLE if opening is None else _WRITE_EXAMPLES.get(opening[0].lower(), _INSERT_EXAMPLE)
    hint = f"this is {language}; for example, write `{_as_query(example, at_file_level)}`"
    return hint + _REGULAR_EXPRESSION_HINT * ("=~" in statement)


def _statement_at(text: str, error_start: int) -> str:
    """Return the statement that contains the error, including the part before the error position."""
    look_back_start = max(0, error_start - _MAX_LOOK_BACK)
    opening = _STATEMENT_OPENING.search(text[look_back_start:error_start])
    start = error_start if opening is None else look_back_start + opening.start()
    statement = re.split(r"\n\s*\n", text[start : start + _MAX_STATEMENT_LENGTH], maxsplit=1)[0].strip()
    if statement.count("}") > statement.count("{"):  # the last brace closes the query around the statement
        statement = statement.rpartition("}")[0].rstrip()
    return statement


def _recognize_language(statement: str) -> str | None:
    if _CYPHER.match(statement):
        return "Cypher"
    if _SQL.match(statement):
        return "SQL"
    return "Gremlin" if _GREMLIN.match(statement) else None


def _as_query(body: str, at_file_level: bool) -> str:
    return f"query name() {{ {body} }}" if at_file_level else body


def _is_valid_body(body: str) -> bool:
    from omnigraph.lang.lalr_parser import UnexpectedText
    from omnigraph.lang.saved_parsers import load_parser

    try:
        load_parser("query").parse(_as_query(body, at_file_level=True))
    except UnexpectedText:
        return False
    return True
