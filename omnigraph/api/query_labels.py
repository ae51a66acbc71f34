"""The name given to unnamed queries, and how messages refer to queries.

This module defines only wording. It imports nothing, so any command can use it.
"""

ANONYMOUS = "anonymous"


def describe_origin(query_name: str | None) -> str:
    """Return the part of a message that identifies the query, or an empty string for an unnamed query.

    >>> describe_origin("adults"), describe_origin(ANONYMOUS)
    (' via adults', '')
    """
    return "" if query_name in (None, ANONYMOUS) else f" via {query_name}"


def quote_query(query_name: str) -> str:
    """Return the text that a message uses to refer to a query.

    >>> quote_query("adults"), quote_query(ANONYMOUS)
    ("'adults'", 'this query')
    """
    return "this query" if query_name == ANONYMOUS else f"'{query_name}'"
