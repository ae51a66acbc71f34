"""The catalogue of query diagnostics: every code of a type error or lint, and its meaning.

This module contains only data. Every diagnostic uses a code from this table, or none for the few type errors that never
had one. Codes are stable; their descriptions may be reworded.
"""

from types import MappingProxyType

TYPE_CODES = MappingProxyType(
    {
        "T1": "unknown node type or interface in a binding",
        "T2": "unknown property in a binding",
        "T3": "a literal does not fit its property or parameter",
        "T4": "unknown edge",
        "T5": "the types of the endpoints do not fit the edge",
        "T6": "property of an unbound variable, or unknown property",
        "T7": "operands of incompatible types, or a parameter that does not fit a property",
        "T8": "an aggregate over a type that it does not support",
        "T9": "`not` or `optional` without an outer variable, or a column that is not a group key",
        "T10": "a mutation of an unknown type, or without assignments",
        "T11": "a mutation names an unknown property, or tests a Blob",
        "T12": "an insert leaves out a required property or endpoint",
        "T13": "a property is assigned twice in one statement",
        "T14": "a variable that must be a parameter is not one",
        "T15": "invalid bounds of a traversal, or invalid target or argument of `nearest`",
        "T16": "an update of an edge type",
        "T17": "`nearest` orders a query without a limit",
        "T18": "`nearest` combined with an ordering by column name",
        "T19": "invalid arguments or position of `search` or `fuzzy`",
        "T20": "invalid arguments or position of `match_text` or `bm25`",
        "T21": "invalid arguments of `rrf`, or `rrf` without a limit",
        "T22": "an undirected traversal of an edge between different types",
        "T23": "misuse of an edge variable",
        "T24": "a Blob used as a value",
        "D2": "a delete together with an insert or update in one query",
    }
)

LINT_CODES = MappingProxyType(
    {
        "Q000": "the text cannot be parsed",
        "L201": "no update in the file assigns this nullable property",
        "L202": "a parameter is never used",
        "L203": "unconnected parts of a match form a cross product",
        "L204": "a limit or offset without an order",
        "L205": "a comparison with null is never true",
        "L206": "a comparison with a value that the enum does not have",
        "L207": "the direction of a ranking is ignored",
    }
)
