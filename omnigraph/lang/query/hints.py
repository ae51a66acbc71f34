"""Wording of syntax errors in `.gq` files: names of terminals, and hints at the likely mistake.

Owns wording only. Nothing here decides whether a text is valid, so a wrong hint never rejects one.
"""

import re
from collections.abc import Callable

from omnigraph.diagnostics import Source, Span

WANTED = "a query (`query name(..) { .. }`)"

NAMES = {
    "_QUERY": "`query`",
    "_MATCH": "`match`",
    "_RETURN": "`return`",
    "_ORDER": "`order`",
    "_LIMIT": "`limit`",
    "_OFFSET": "`offset`",
    "_SET": "`set`",
    "_WHERE": "`where`",
    "AS": "`as`",
    "INSERT": "`insert`",
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
}

_LITERALS = frozenset({"STRING", "FLOAT", "NEGATIVE", "NATURAL", "BOOL", "DATE_FN"})
_VALUES = _LITERALS | {"VAR", "LSQB", "NULL", "NOW"}
_FUNCTIONS = frozenset({"TEXT_FN", "FUZZY", "BM25", "NEAREST", "RRF", "AGGREGATE"})
_WORDS = frozenset({"IDENT", "AND", "OR", "IN", "IS", "NOT", "OPTIONAL", "WORD_OP", "DIRECTION"})
_WORDS |= {"NULL", "INSERT", "UPDATE", "DELETE"}
_OPERATORS = frozenset({"LT", "GT", "OP"})

# The first matching group wins, so larger groups come first.
GROUPS: tuple[tuple[str, frozenset[str]], ...] = (
    ("an expression", _VALUES | _FUNCTIONS | _WORDS),
    ("a property", _WORDS | {"BOOL", "AS"}),
    ("a clause", _VALUES | _FUNCTIONS | {"NOT", "OPTIONAL", "LPAR"}),
    ("a condition", _VALUES | _FUNCTIONS | {"LPAR", "NOT"}),
    ("a condition", _VALUES | _FUNCTIONS | {"LPAR"}),
    ("a value", _VALUES | _FUNCTIONS),
    ("a value", (_VALUES | _FUNCTIONS) - {"VAR"}),
    ("a value", _VALUES),
    ("a literal", _VALUES - {"VAR", "NOW"}),
    ("a literal", _LITERALS | {"NULL"}),
    ("an operator", _OPERATORS | {"IN", "IS", "WORD_OP"}),
    ("an operator", _OPERATORS | {"IN", "IS"}),
    ("an edge", frozenset({"IDENT", "IS"})),
    ("a type", frozenset({"BASE_TYPE", "LSQB", "_VECTOR"})),
    ("a statement", frozenset({"INSERT", "UPDATE", "DELETE"})),
)

Expected = frozenset[str]
_CLAUSE = frozenset({"VAR", "NOT", "OPTIONAL", "LPAR"})

_QUOTES = 'strings use double quotes: ".."'
_CONDITIONS = "write conditions as clauses inside `match { .. }`"
_ROWS = "`where` supports = != < <= > >=, `in`, `is null`, `and`, `or` and `not`"
_SHAPE = (
    "a query is `match`, `return`, `order`, `limit`, `offset` in this order, or a list of "
    "statements"
)
_ARROW = "a traversal is written `$a knows $b`, undirected `$a <knows> $b`"
_TYPES = (
    "the types are String, Bool, I32, I64, U32, U64, F32, F64, Date, DateTime, Blob, a list "
    "such as [String], and Vector(n)"
)
_ALONE = "a traversal is a separate clause, not part of a condition; negate it with `not { .. }`"
_EDGE = "write a type as `$p: Person`, and a traversal of the edge `WorksAt` as `$p worksAt $q`"
_BARE = 'a property is written `$x.name`, a parameter `$name`, a string `"name"`'

# Patterns of the text at an error, with hints that apply whatever was expected. They are compiled
# when a text has an error, not at start-up.
_ANYWHERE: tuple[tuple[str, str], ...] = (
    (r"'", _QUOTES),
    (r"(?<==)=|==", "compare with `=`; there is no `==`"),
    (r"(?<=<)>", "write `!=` for not equal"),
    (r"&", "write `and`"),
    (r"\|\|", "write `or`"),
    (r"!(?!=)", "write `not`"),
    (r"#|--", "a comment begins with `//`"),
    (r"-\[|->|<-|(?<=-)>", _ARROW),
    (r"\$[A-Z]", "a variable begins with a lower-case letter"),
    (r"\$[0-9]", "a variable is `$` followed by a name that begins with a letter"),
    (r"[+/%][ \t0-9$(]|-[ \t$(]|\*[ \t]*[0-9(]", "arithmetic is not supported"),
    (r";", "clauses have no separator; columns are separated by commas"),
    (r"@", "a query may have `@description(..)` and `@instruction(..)` before its `{`"),
)


def advise(source: Source, span: Span, expected: Expected) -> str | None:
    """Return a hint for the text at `span` where only `expected` was allowed, or None."""
    for pattern, hint in _ANYWHERE:
        if re.compile(pattern).match(source.text, span.start):
            return hint
    found = source.text[span.start : span.end]
    return next((hint for fits, hint in _SITUATIONS if fits(found, expected)), None)


def _lower(found: str) -> bool:
    return found[:1].isalpha() and found[:1].islower()


def _open_match(found: str, expected: Expected) -> bool:
    return found in ("return", "order", "limit", "offset") and expected >= _CLAUSE


def _out_of_order(found: str, expected: Expected) -> bool:
    parts = ("match", "return", "order", "limit", "offset", "insert", "update", "delete")
    return found in parts


def _parameter(found: str, expected: Expected) -> bool:
    return {"VAR"} <= expected <= {"VAR", "RPAR"} and _lower(found)


def _braces(found: str, expected: Expected) -> bool:
    return {"LBRACE"} <= expected <= {"LBRACE", "DISTINCT"}


# The first test that holds gives the hint. `f` is the text found, `e` the terminals allowed there.
_SITUATIONS: tuple[tuple[Callable[[str, Expected], bool], str], ...] = (
    (lambda f, e: f == "," and e >= _CLAUSE, "clauses need no commas between them"),
    (lambda f, e: f == "where" and (e >= _CLAUSE or "_RETURN" in e), _CONDITIONS),
    (lambda f, e: f == "not" and "LBRACE" in e, "use parentheses: `not (not ..)`"),
    (lambda f, e: "_RETURN" in e, "`match { .. }` is followed by `return { .. }`"),
    (lambda f, e: e == {"_WHERE"}, "add a `where` condition; no statement changes all rows"),
    (lambda f, e: f in ("contains", "starts_with", ":") and e >= _OPERATORS, _ROWS),
    (lambda f, e: f == "=" and "COLON" in e, "write `:` before a value, as in `age: 3`"),
    (_open_match, "close `match { .. }` first"),
    (_out_of_order, _SHAPE),
    (lambda f, e: f == "}" and e == {"COMMA"}, "write both bounds: `{2,2}`"),
    (lambda f, e: f == "*" and "VBAR" in e, "give the bounds of the hops: `knows{1,3}`"),
    (lambda f, e: _lower(f) and "DOT" in e and e >= _OPERATORS, _ALONE),
    (lambda f, e: f[:1].isupper() and {"DOT", "COLON", "IDENT"} <= e, _EDGE),
    (lambda f, e: _lower(f) and {"VAR", "STRING"} <= e, _BARE),
    (lambda f, e: "BASE_TYPE" in e and f[:1].isalpha(), _TYPES),
    (lambda f, e: e == {"TYPE_NAME"} and _lower(f), "type names begin with an upper-case letter"),
    (_parameter, "a parameter begins with `$`"),
    (_braces, "write this part in braces: `{ .. }`"),
    (lambda f, e: e == {"IDENT"} and f[:1].isupper(), "names begin with a lower-case letter"),
)
