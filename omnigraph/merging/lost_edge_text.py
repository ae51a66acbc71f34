"""Describe edges that stay deleted although a merge keeps the node that they were deleted with.

This module imports nothing, so a client of a server can import it quickly.
"""


def describe_lost_edge(type_name: str, edge_id: str, endpoints: tuple[str, str], node_id: str) -> str:
    """Describe an edge and the node that it was deleted with.

    >>> describe_lost_edge("Knows", "e1", ("ada", "bob"), "bob")
    "Knows 'e1' (ada -> bob) was deleted along with 'bob'"
    """
    source, target = endpoints
    return f"{type_name} '{edge_id}' ({source} -> {target}) was deleted along with '{node_id}'"
