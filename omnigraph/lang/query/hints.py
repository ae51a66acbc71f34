"""The wording of syntax errors in `.gq` files: readable names for terminals, and hints about likely mistakes.

Hints never determine whether a query is valid, so a wrong hint can never cause a query to be rejected.
"""

import re
from collections.abc import Callable

from omnigraph.errors.diagnostics import SourceText, Span

DECLARATION_FORM = "a query (`query name(..) { .. }`)"

TERMINAL_NAMES = {
    "_QUERY": "`query`",
    "MATCH": "`match`",
    "_RETURN": "`return`",
    "_HAVING": "`having`",
    "UNION": "`union`",
    "ALL": "`all`",
    "_ORDER": "`order`",
    "_LIMIT": "`limit`",
    "_OFFSET": "`offset`",
    "_SET": "`set`",
    "_WHERE": "`where`",
    "AS": "`as`",
    "BY": "`by`",
    "PATH_CHOICE": "`any` or `all`",
    "PATH_SEARCH": "`shortest`",
    "PATH_MODE": "`walk`, `trail`, `acyclic` or `simple`",
    "INSERT": "`insert`",
    "UPSERT": "`upsert`",
    "PATCH": "`patch`",
    "UPDATE": "`update`",
    "DELETE": "`delete`",
    "DISTINCT": "`distinct`",
    "DIRECTION": "`asc` or `desc`",
    "OPTIONAL": "`optional`",
    "NOT": "`not`",
    "AND": "`and`",
    "OR": "`or`",
    "IN": "`in`",
    "IS": "`is`",
    "NULL": "`null`",
    "BOOL": "`true` or `false`",
    "WORD_OP": "`contains` or `starts_with`",
    "CASE": "`case`",
    "WHEN": "`when`",
    "THEN": "`then`",
    "ELSE": "`else`",
    "END": "`end`",
    "FUNCTION": "a function",
    "NOW": "`now()`",
    "DATE_FN": "a date",
    "TEXT_FN": "`search(..)`",
    "FUZZY": "`fuzzy(..)`",
    "BM25": "`bm25(..)`",
    "NEAREST": "`nearest(..)`",
    "RRF": "`rrf(..)`",
    "AGGREGATE": "an aggregate",
    "NOTE": "`@description`, `@instruction`",
    "BASE_TYPE": "a scalar type",
    "_VECTOR": "`Vector(..)`",
    "TYPE_NAME": "a type name",
    "IDENT": "a name",
    "VAR": "a variable",
    "STRING": "a quoted string",
    "FLOAT": "a number",
    "NEGATIVE": "a number",
    "NATURAL": "a whole number",
    "NULLABLE": "`?`",
    "OP": "a comparison",
    "EQ": "`=`",
    "LT": "`<`",
    "GT": "`>`",
    "PLUS": "`+`",
    "MINUS": "`-`",
    "SIGN": "`-`",
    "SLASH": "`/`",
    "PERCENT": "`%`",
    "LBRACE": "`{`",
    "RBRACE": "`}`",
    "LPAR": "`(`",
    "RPAR": "`)`",
    "LSQB": "`[`",
    "RSQB": "`]`",
    "COMMA": "`,`",
    "COLON": "`:`",
    "DOT": "`.`",
    "VBAR": "`|`",
    "STAR": "`*`",
}

_LITERAL_TERMINALS = frozenset({"STRING", "FLOAT", "NEGATIVE", "NATURAL", "BOOL", "DATE_FN"})
_VALUE_TERMINALS = _LITERAL_TERMINALS | {"VAR", "LSQB", "NULL", "NOW"}
_FUNCTION_TERMINALS = frozenset({"TEXT_FN", "FUZZY", "BM25", "NEAREST", "RRF", "AGGREGATE"})
_WORD_TERMINALS = frozenset({"IDENT", "AND", "OR", "IN", "IS", "NOT", "OPTIONAL", "WORD_OP", "DIRECTION"})
_WORD_TERMINALS |= {"NULL", "INSERT", "UPSERT", "PATCH", "UPDATE", "DELETE", "MATCH"}
_WORD_TERMINALS |= {"WHEN", "THEN", "ELSE", "END", "BY"}
_OPERATOR_TERMINALS = frozenset({"LT", "GT", "OP"})
_OPERAND_TERMINALS = (_VALUE_TERMINALS - {"NEGATIVE"}) | _FUNCTION_TERMINALS | {"SIGN", "LPAR", "CASE", "FUNCTION"}
_FACTOR_TERMINALS = _OPERAND_TERMINALS - {"NULL", "TEXT_FN", "FUZZY", "BM25", "NEAREST", "RRF"}
_ROW_VALUE_TERMINALS = (_FACTOR_TERMINALS - {"BOOL"}) | {"IDENT"}
_ARITHMETIC_TERMINALS = frozenset({"PLUS", "MINUS", "STAR", "SLASH", "PERCENT"})

# The first matching group wins, so larger groups come first.
TERMINAL_GROUPS: tuple[tuple[str, frozenset[str]], ...] = (
    ("an expression", _OPERAND_TERMINALS | _WORD_TERMINALS),
    ("a property", _WORD_TERMINALS | {"BOOL", "AS"}),
    ("a clause", _OPERAND_TERMINALS | {"NOT", "OPTIONAL"}),
    ("a condition", _OPERAND_TERMINALS | {"NOT"}),
    ("a value", _OPERAND_TERMINALS),
    ("a value", _OPERAND_TERMINALS - {"VAR"}),
    ("a condition", _ROW_VALUE_TERMINALS | {"NOT"}),
    ("a value", _ROW_VALUE_TERMINALS | {"BOOL", "NULL"}),
    ("a value", _ROW_VALUE_TERMINALS),
    ("a value", _ROW_VALUE_TERMINALS - {"SIGN"}),
    ("a value", _FACTOR_TERMINALS),
    ("a value", _FACTOR_TERMINALS - {"SIGN"}),
    ("a value", _VALUE_TERMINALS),
    ("a literal", _VALUE_TERMINALS - {"VAR", "NOW"}),
    ("a literal", _LITERAL_TERMINALS | {"NULL"}),
    ("an operator", _OPERATOR_TERMINALS | {"IN", "IS", "WORD_OP"} | _ARITHMETIC_TERMINALS),
    ("an operator", _OPERATOR_TERMINALS | {"IN", "IS", "WORD_OP"}),
    ("an operator", _OPERATOR_TERMINALS | {"IN", "IS"}),
    ("an operator", _ARITHMETIC_TERMINALS),
    ("an operator", frozenset({"STAR", "SLASH", "PERCENT"})),
    ("an edge", frozenset({"IDENT", "IS"})),
    ("a type", frozenset({"BASE_TYPE", "LSQB", "_VECTOR"})),
    ("a statement", frozenset({"INSERT", "UPSERT", "PATCH", "UPDATE", "DELETE"})),
)

ExpectedTerminals = frozenset[str]
_STATEMENT_KEYWORDS = ("insert", "upsert", "patch", "update", "delete")
_CLAUSE_TERMINALS = frozenset({"VAR", "NOT", "OPTIONAL", "LPAR"})

_QUOTES_HINT = 'strings use double quotes: ".."'
_CONDITIONS_HINT = "write conditions as clauses inside `match { .. }`"
_ROW_FILTER_HINT = "`where` supports = != < <= > >=, `in`, `contains`, `starts_with`, `is null`, `and`, `or` and `not`"
_QUERY_SHAPE_HINT = (
    "a query consists of `match`, `return`, `having`, `order`, `limit` and `offset`, in this order, or of statements"
)
_TRAVERSAL_HINT = "write a traversal as `$a knows $b`, or as `$a <knows> $b` to ignore direction"
_TYPES_HINT = (
    "valid types are String, Bool, I32, I64, U32, U64, F32, F64, Date, DateTime, Blob, a list "
    "such as [String], and Vector(n)"
)
_SEPARATE_TRAVERSAL_HINT = "a traversal is a separate clause, not part of a condition; negate it with `not { .. }`"
_TYPE_OR_EDGE_HINT = "write a type as `$p: Person`, and a traversal of the edge `WorksAt` as `$p worksAt $q`"
_BARE_WORD_HINT = 'write a property as `$x.name`, a parameter as `$name`, and a string as `"name"`'

# Patterns for the text at an error, each with a hint that applies regardless of which terminals are allowed there. The
# patterns are compiled only when a query has an error, not at start-up.
_PATTERN_HINTS: tuple[tuple[str, str], ...] = (
    (r"'", _QUOTES_HINT),
    (r"(?<==)=|==", "use `=` to compare; there is no `==`"),
    (r"(?<=<)>", "use `!=` to test for inequality"),
    (r"&", "write `and`"),
    (r"\|\|", "write `or`; join strings with `+`"),
    (r"!(?!=)", "write `not`"),
    (r"#|--", "a comment begins with `//`"),
    (r"-\[|->|<-|(?<=-)>|(?<=-\[)|(?<=-)[a-z]\w*[ \t]*->", _TRAVERSAL_HINT),
    (r"\$[A-Z]", "variable names begin with a lowercase letter"),
    (r"\$[0-9]", "a variable is `$` followed by a name that begins with a letter"),
    (r"\+", "a value cannot have a leading `+`"),
    (r"-[ \t]*-", "write `-(-x)` for a double sign"),
    (r";", "clauses are not separated by `;`; columns are separated by commas"),
    (r"@", "a query may have `@description(..)` and `@instruction(..)` before its `{`"),
)


def suggest_hint(source: SourceText, span: Span, expected_terminals: ExpectedTerminals) -> str | None:
    """Return a hint for the text at `span`, or None if there is none. Only `expected_terminals` are allowed there."""
    # Imported here, because its patterns are needed only when a query has an error.
    from .first_try_hints import suggest_first_try

    first_try_hint = suggest_first_try(source, span, expected_terminals)
    if first_try_hint is not None:
        return first_try_hint
    for pattern, hint in _PATTERN_HINTS:
        if re.compile(pattern).match(source.text, span.start):
            return hint
    found_text = source.text[span.start : span.end]
    return next((hint for applies, hint in _SITUATION_HINTS if applies(found_text, expected_terminals)), None)


def _starts_lower_case(found_text: str) -> bool:
    return found_text[:1].isalpha() and found_text[:1].islower()


def _expects_clause(expected_terminals: ExpectedTerminals) -> bool:
    return expected_terminals >= _CLAUSE_TERMINALS and "IDENT" not in expected_terminals


def _is_unclosed_match(found_text: str, expected_terminals: ExpectedTerminals) -> bool:
    part_words = ("return", "having", "order", "limit", "offset", "union")
    return found_text in part_words and _expects_clause(expected_terminals)


def _is_part_keyword(found_text: str, expected_terminals: ExpectedTerminals) -> bool:
    part_keywords = ("match", "return", "order", "limit", "offset", *_STATEMENT_KEYWORDS)
    return found_text in part_keywords


def _is_missing_dollar(found_text: str, expected_terminals: ExpectedTerminals) -> bool:
    return {"VAR"} <= expected_terminals <= {"VAR", "RPAR"} and _starts_lower_case(found_text)


def _is_missing_brace(found_text: str, expected_terminals: ExpectedTerminals) -> bool:
    return {"LBRACE"} <= expected_terminals <= {"LBRACE", "DISTINCT"}


# The first test that succeeds determines the hint. `f` is the text at the error, and `e` is the set of terminals that
# are allowed there.
_SITUATION_HINTS: tuple[tuple[Callable[[str, ExpectedTerminals], bool], str], ...] = (
    (lambda f, e: f == "," and _expects_clause(e), "clauses are not separated by commas"),
    (lambda f, e: f == "where" and _expects_clause(e), "drop `where`: a condition is a clause inside `match { .. }`"),
    (lambda f, e: f == "where" and "_RETURN" in e, _CONDITIONS_HINT),
    (lambda f, e: f == "not" and "LBRACE" in e, "use parentheses: `not (not ..)`"),
    (lambda f, e: "_RETURN" in e, "`match { .. }` must be followed by `return { .. }`, `update` or `delete`"),
    (lambda f, e: e == {"_WHERE"}, "add a `where` condition; `update` and `delete` require one"),
    (lambda f, e: f == ":" and e >= _OPERATOR_TERMINALS, _ROW_FILTER_HINT),
    (lambda f, e: f == "=" and "COLON" in e, "write `:` before a value, as in `age: 3`"),
    (_is_unclosed_match, "close `match { .. }` first"),
    (_is_part_keyword, _QUERY_SHAPE_HINT),
    (lambda f, e: f == "}" and e == {"COMMA"}, "write both bounds: `{2,2}`"),
    (lambda f, e: f == "*" and "VBAR" in e, "specify the hop bounds: `knows{1,3}`"),
    (lambda f, e: _starts_lower_case(f) and "DOT" in e and e >= _OPERATOR_TERMINALS, _SEPARATE_TRAVERSAL_HINT),
    (lambda f, e: f[:1].isupper() and {"DOT", "COLON", "IDENT"} <= e, _TYPE_OR_EDGE_HINT),
    (lambda f, e: _starts_lower_case(f) and {"VAR", "STRING"} <= e, _BARE_WORD_HINT),
    (lambda f, e: "BASE_TYPE" in e and f[:1].isalpha(), _TYPES_HINT),
    (lambda f, e: e == {"TYPE_NAME"} and _starts_lower_case(f), "type names begin with an uppercase letter"),
    (_is_missing_dollar, "parameter names begin with `$`"),
    (_is_missing_brace, "enclose this part in braces: `{ .. }`"),
    (lambda f, e: e == {"IDENT"} and f[:1].isupper(), "names begin with a lowercase letter"),
)
