"""The name of a query that is written without a name, and how messages refer to queries.

This module defines wording only, and imports nothing, so any command can use it.
"""

ANONYMOUS = "anonymous"


def describe_origin(query_name: str | None) -> str:
    """Return the part of a message that names the query, which is empty for a query without a name.

    >>> describe_origin("adults"), describe_origin(ANONYMOUS)
    (' via adults', '')
    """
    return "" if query_name in (None, ANONYMOUS) else f" via {query_name}"


def quote_query(query_name: str) -> str:
    """Return the subject of a message about a query.

    >>> quote_query("adults"), quote_query(ANONYMOUS)
    ("'adults'", 'this query')
    """
    return "this query" if query_name == ANONYMOUS else f"'{query_name}'"
