"""The catalog of query diagnostics: the code and meaning of each type error and lint finding.

This module contains only data. Every diagnostic has a code from this table, except for a few type errors that have no
code. Codes are stable, but their descriptions may be reworded.
"""

from types import MappingProxyType

TYPE_CODES = MappingProxyType(
    {
        "T1": "a binding refers to an unknown node type or interface",
        "T2": "a binding refers to an unknown property",
        "T3": "a literal is not a valid value for its property or parameter",
        "T4": "unknown edge",
        "T5": "the endpoint types do not match the edge",
        "T6": "a variable is unbound, or a property is unknown",
        "T7": "operands have incompatible types, or a parameter does not match the type of its property",
        "T8": "an aggregate function does not support the type of its argument",
        "T9": "a `not` or `optional` block uses no outer variable, or a column or `having` value is not a group key",
        "T10": "a mutation refers to an unknown type or assigns no property",
        "T11": "a mutation refers to an unknown property or uses a Blob in a condition",
        "T12": "an insert or upsert omits a required property or endpoint, or a patch or upsert omits the key or `id`",
        "T13": "a property is assigned twice in one statement",
        "T14": "a variable is used where a parameter is required",
        "T15": "a traversal has invalid hop bounds, or `nearest` has an invalid property or argument",
        "T16": "an update or a patch assigns a value to an endpoint of an edge",
        "T17": "`nearest` is used without a limit",
        "T18": "`nearest` is combined with an ordering by column name",
        "T19": "`search` or `fuzzy` has invalid arguments or is used where it is not allowed",
        "T20": "`match_text` or `bm25` has invalid arguments or is used where it is not allowed",
        "T21": "`rrf` has invalid arguments or is used without a limit",
        "T22": "an undirected traversal uses an edge between different node types",
        "T23": "an edge variable is used incorrectly",
        "T24": "a Blob is used as a value",
        "T25": "a function is unknown, or is called with the wrong number or type of arguments",
        "T26": "a path is bound or used incorrectly",
        "T30": "the parts of a union return different columns, or a union is not ordered by a column name",
    }
)

LINT_CODES = MappingProxyType(
    {
        "Q000": "the text cannot be parsed",
        "L201": "a nullable property is not assigned by any update in the file",
        "L202": "a parameter is never used",
        "L203": "unconnected parts of a match form a cross product",
        "L204": "a `limit` or `offset` is used without an `order`",
        "L205": "a comparison with null is never true",
        "L206": "an enum is compared with a value that it does not contain",
        "L207": "a ranking has a sort direction, which is ignored",
        "L208": "an argument to `coalesce` is never used",
        "L210": "a `having` condition contains no aggregate, so it belongs in `match`",
    }
)
