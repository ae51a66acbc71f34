"""The meanings of the keywords and functions in `.gq`, for completion and hover text.

A test checks that this module has an entry for every keyword and function in the language.
"""

from omnigraph.records.frozen import record

KEYWORD_MEANINGS = {
    "query": "declares a query or a mutation",
    "match": "the patterns and conditions that select rows",
    "return": "the result columns",
    "having": "keeps the groups that satisfy a condition",
    "union": "combines the rows of two parts, without duplicates",
    "all": "after `union`: keep duplicates; before `shortest`: every shortest path",
    "any": "before `shortest`: one shortest path per pair of endpoints",
    "shortest": "binds paths with the fewest edges or the lowest cost",
    "walk": "a path that may repeat nodes and edges",
    "trail": "a path that repeats no edge",
    "acyclic": "a path that repeats no node",
    "simple": "a path that repeats no node, except that it may end where it starts",
    "order": "sorts the result",
    "limit": "the maximum number of rows",
    "offset": "the number of rows to skip",
    "set": "the new values in an update",
    "where": "a condition on the changed or deleted entities, or on the edges of a traversal",
    "by": "the edge property that path costs are computed from",
    "as": "sets the name of a column",
    "insert": "adds an entity; fails with `KeyConflict` if the key exists",
    "upsert": "adds an entity; if the key exists, changes the assigned properties and keeps the others",
    "patch": "changes the assigned properties of an existing entity",
    "update": "changes all entities that satisfy a condition",
    "delete": "deletes all entities that satisfy a condition",
    "distinct": "removes duplicate rows, or counts each distinct value in an aggregate once",
    "asc": "ascending order",
    "desc": "descending order",
    "optional": "patterns that may match nothing; their variables are then null",
    "not": "negates a condition, or excludes rows for which a block matches",
    "and": "true if both conditions are true",
    "or": "true if either condition is true",
    "in": "tests whether a list contains a value",
    "is": "tests for null: `is null`, `is not null`",
    "null": "a missing value; to test for null, use `is null`",
    "true": "the Bool value true",
    "false": "the Bool value false",
    "contains": "tests for a substring or a list element",
    "starts_with": "tests for a prefix",
    "case": "chooses a value: `case when condition then value else value end`",
    "when": "a condition in a `case`",
    "then": "the value of `case` if the condition before it is true",
    "else": "the value of `case` if no condition is true",
    "end": "ends `case`",
}


@record
class FunctionSignature:
    """A function's arguments and result type, and a description of the result."""

    arguments: str
    result: str
    meaning: str

    def display(self, name: str) -> str:
        """Return the signature as it is shown to users."""
        return f"{name}({self.arguments}): {self.result}"


SCALAR_FUNCTIONS = {
    "lower": FunctionSignature("text", "String", "the text in lowercase"),
    "upper": FunctionSignature("text", "String", "the text in uppercase"),
    "length": FunctionSignature("text, list or path", "I64", "the number of code points, elements or edges"),
    "substring": FunctionSignature("text, start, count?", "String", "part of the text; the first position is 1"),
    "replace": FunctionSignature("text, old, new", "String", "the text with every `old` replaced by `new`"),
    "split": FunctionSignature("text, separator", "[String]", "the parts of the text between the separators"),
    "matches": FunctionSignature("text, pattern", "Bool", "whether the text contains a match for an RE2 pattern"),
    "coalesce": FunctionSignature("value, …", "the common type", "the first value that is not null"),
    "abs": FunctionSignature("number", "I64 or F64", "the absolute value"),
    "round": FunctionSignature(
        "number, digits?", "I64 or F64", "the rounded number; halves are rounded away from zero"
    ),
    "floor": FunctionSignature("number", "I64 or F64", "the number rounded down to an integer"),
    "ceil": FunctionSignature("number", "I64 or F64", "the number rounded up to an integer"),
    "year": FunctionSignature("date", "I64", "the year of a Date or DateTime"),
    "month": FunctionSignature("date", "I64", "the month of a Date or DateTime"),
    "day": FunctionSignature("date", "I64", "the day of the month of a Date or DateTime"),
    "hour": FunctionSignature("datetime", "I64", "the hour in UTC"),
    "minute": FunctionSignature("datetime", "I64", "the minute"),
    "second": FunctionSignature("datetime", "I64", "the second"),
}
PATH_FUNCTIONS = {
    "nodes": FunctionSignature("path", "[String]", "the ids of the nodes on a path"),
    "edges": FunctionSignature("path", "[String]", "the ids of the edges on a path"),
    "cost": FunctionSignature("path", "F64", "the total cost of a path"),
}
AGGREGATES = {
    "count": FunctionSignature("* or value", "I64", "the number of rows, or of values that are not null"),
    "sum": FunctionSignature("number", "I64 or F64", "the total"),
    "avg": FunctionSignature("number", "F64", "the average"),
    "min": FunctionSignature("value", "the same type", "the smallest value"),
    "max": FunctionSignature("value", "the same type", "the largest value"),
    "collect": FunctionSignature("value", "a list", "the values that are not null"),
}
VALUE_FUNCTIONS = {
    "now": FunctionSignature("", "DateTime", "the time of the request"),
    "date": FunctionSignature('"2024-02-29"', "Date", "a Date literal"),
    "datetime": FunctionSignature('"2024-02-29T12:00:00Z"', "DateTime", "a DateTime literal"),
}
TEXT_CONDITIONS = {
    "search": FunctionSignature("$x.property, text", "Bool", "whether the property contains any token from the text"),
    "match_text": FunctionSignature(
        "$x.property, text", "Bool", "whether the property contains all tokens from the text in sequence"
    ),
    "fuzzy": FunctionSignature(
        "$x.property, text, edits?", "Bool", "like `search`, but any token within the given number of edits matches"
    ),
}
RANKINGS = {
    "bm25": FunctionSignature("$x.property, text", "F64", "the relevance score of a text property"),
    "nearest": FunctionSignature("$x.vector, vector or text", "F64", "the distance to the given vector or text"),
    "rrf": FunctionSignature("ranking, ranking, k?", "F64", "two rankings combined by reciprocal rank fusion"),
}
FUNCTIONS = SCALAR_FUNCTIONS | PATH_FUNCTIONS | AGGREGATES | VALUE_FUNCTIONS | TEXT_CONDITIONS | RANKINGS

SCALAR_TYPE_MEANINGS = {
    "String": "Unicode text",
    "Blob": "bytes, stored outside the row",
    "Bool": "true or false",
    "I32": "a 32-bit integer",
    "I64": "a 64-bit integer",
    "U32": "an unsigned 32-bit integer",
    "U64": "an unsigned 64-bit integer",
    "F32": "a 32-bit floating-point number",
    "F64": "a 64-bit floating-point number",
    "Date": "a calendar date",
    "DateTime": "an instant in UTC",
    "Vector": "a fixed number of F32 values, as in `Vector(384)`",
}
