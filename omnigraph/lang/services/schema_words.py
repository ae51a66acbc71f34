"""The meanings of the keywords and annotations in `.pg`, for completion and hover text."""

KEYWORD_MEANINGS = {
    "node": "declares a node type",
    "edge": "declares an edge type between two node types",
    "interface": "declares properties that several node types share",
    "implements": "lists the interfaces that a node type implements",
    "enum": "a String with fixed values, as in `enum(draft, final)`",
}
HEADER_ANNOTATIONS = {
    "description": "describes the type",
    "instruction": "instructions for programs that write queries",
    "rename_from": "the previous name of the type",
    "allow": "suppresses a lint finding",
}
CARDINALITY = {"card": "the number of edges per source node, as in `@card(0..1)`"}
PROPERTY_ANNOTATIONS = {
    "key": "identifies an entity and determines its id",
    "unique": "rejects entities with equal values",
    "index": "declares an index",
    "default": "the value to store if an entity does not specify one",
    "description": "describes the property",
    "embed": "computes the vector from a String property",
    "rename_from": "the previous name of the property",
    "allow": "suppresses a lint finding",
}
CONSTRAINTS = {
    "key": "the columns that identify an entity and determine its id",
    "unique": "rejects entities with equal values in all of these columns",
    "index": "an index on these columns",
    "range": "the inclusive bounds of a number, as in `@range(age, 0..150)`",
    "check": "an RE2 pattern that must match part of each value",
}
ANNOTATIONS = CONSTRAINTS | HEADER_ANNOTATIONS | CARDINALITY | PROPERTY_ANNOTATIONS
