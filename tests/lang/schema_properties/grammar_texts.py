"""Texts generated from the grammars, one declaration each, for both languages."""

from typing import Any

from hypothesis import strategies as st
from hypothesis.extra.lark import from_lark
from lark import Lark

from omnigraph.lang import saved_parsers

Texts = st.SearchStrategy[str]

# A terminal that looks ahead cannot be drawn from its pattern; a space keeps words apart.
_WORDS = {
    "schema": {
        "_INTERFACE": "interface",
        "_NODE": "node",
        "_EDGE": "edge",
        "_IMPLEMENTS": "implements",
        "_ENUM": "enum",
        "_VECTOR": "Vector",
        "NAME": "A B1 Node a implements I32 String",
        "WORD": "a 3d - true",
        "NUMBER": "1 -2.5 1e3",
        "STRING": r'"a" "\n" "//"',
        "CONSTRAINT": "@key @range @check",
        "_CARD": "@card",
        "ANNOTATION": "@x @index @allow",
    },
    "query": {
        "_QUERY": "query",
        "MATCH": "match",
        "_RETURN": "return",
        "_HAVING": "having",
        "UNION": "union",
        "ALL": "all",
        "_ORDER": "order",
        "_LIMIT": "limit",
        "_OFFSET": "offset",
        "_SET": "set",
        "_WHERE": "where",
        "BY": "by",
        "PATH_CHOICE": "any all",
        "PATH_SEARCH": "shortest",
        "PATH_MODE": "walk trail acyclic simple",
        "AS": "as",
        "INSERT": "insert",
        "UPSERT": "upsert",
        "PATCH": "patch",
        "UPDATE": "update",
        "DELETE": "delete",
        "DISTINCT": "distinct",
        "DIRECTION": "asc desc",
        "OPTIONAL": "optional",
        "NOT": "not",
        "AND": "and",
        "OR": "or",
        "IN": "in",
        "IS": "is",
        "NULL": "null",
        "BOOL": "true false",
        "WORD_OP": "contains starts_with",
        "CASE": "case",
        "WHEN": "when",
        "THEN": "then",
        "ELSE": "else",
        "END": "end",
        "FUNCTION": "lower f",
        "NOW": "now",
        "DATE_FN": "date datetime",
        "TEXT_FN": "search match_text",
        "FUZZY": "fuzzy",
        "BM25": "bm25",
        "NEAREST": "nearest",
        "RRF": "rrf",
        "AGGREGATE": "count sum avg min max collect",
        "NOTE": "@description @instruction",
        "BASE_TYPE": "String I32 Date",
        "_VECTOR": "Vector",
        "TYPE_NAME": "A Person",
        "IDENT": "a name _b",
        "VAR": "$a $b",
        "STRING": r'"a" "\n" "//"',
        "FLOAT": "1.5 2e3",
        "NEGATIVE": "-1 -2e3",
        "NATURAL": "1 23",
        "OP": "= != <= >=",
        "EQ": "=",
        "LT": "<",
        "GT": ">",
    },
}
_SIMPLER_RULES = {
    "negation_of: SIGN (VAR | basic)": 'negation_of: "(" SIGN (VAR | field | literal) ")"',
    'parenthesized: "(" (VAR | sum) ")"': 'parenthesized: "(" (VAR | field) ")"',
    'FUNCTION "(" (operand ("," operand)*)? ")"': 'FUNCTION "(" ((field | null) ("," (VAR | literal))*)? ")"',
    "case: CASE branch+ [ELSE operand] END": "case: CASE branch [ELSE (VAR | null)] END",
    "branch: WHEN condition THEN operand": "branch: WHEN (pair | is_null) THEN (field | literal)",
    "addition: (VAR | product) ((PLUS | MINUS) product_or_var)+": "addition: (VAR | product) (PLUS | MINUS) field",
    "multiplication: (VAR | signed) ((STAR | SLASH | PERCENT) signed_or_var)+": (
        "multiplication: (VAR | signed) (STAR | SLASH | PERCENT) (VAR | literal)"
    ),
    "row_negation: SIGN row_basic": 'row_negation: "(" SIGN (VAR | row_word) ")"',
    'row_parenthesized: "(" row_sum ")"': 'row_parenthesized: "(" (VAR | row_word) ")"',
    'FUNCTION "(" (row_operand ("," row_operand)*)? ")"': 'FUNCTION "(" (row_word ("," (VAR | row_literal))*)? ")"',
    "row_case: CASE row_branch+ [ELSE row_operand] END": "row_case: CASE row_branch [ELSE (VAR | null)] END",
    "row_branch: WHEN row_condition THEN row_operand": "row_branch: WHEN row_truth THEN (row_word | row_literal)",
    "row_addition: row_product ((PLUS | MINUS) row_product)+": "row_addition: row_product (PLUS | MINUS) row_word",
    "row_multiplication: row_signed ((STAR | SLASH | PERCENT) row_signed)+": (
        "row_multiplication: row_signed (STAR | SLASH | PERCENT) (VAR | row_literal)"
    ),
}
_NOISE = (" ", "// a\n", "/* b */")


def texts(language: str) -> Texts:
    """Texts of one declaration, with comments of all kinds."""
    # The grammar lets a stray comma through for the sake of its message: half of all members. A sign after an
    # operand is a subtraction, so signs are drawn in parentheses. Deep expressions are left to random trees.
    rules = saved_parsers._read_grammar(language).replace("| stray_comma", "")
    for rule, drawn in _SIMPLER_RULES.items():
        assert language != "query" or rule in rules
        rules = rules.replace(rule, drawn)
    grammar = Lark(rules, start="declaration")
    given: dict[str, Any] = {name: _spaced(words) for name, words in _WORDS[language].items()}
    given |= dict(zip(grammar.ignore_tokens, map(st.just, _NOISE), strict=True))
    return from_lark(grammar, start="declaration", explicit=given)


def _spaced(words: str) -> Texts:
    return st.sampled_from([f"{word} " for word in words.split()])
