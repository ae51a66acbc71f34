"""Describe edges that were deleted along with a node. This module imports nothing, so clients can use it."""


def describe_lost_edge(type_name: str, edge_id: str, endpoints: tuple[str, str], node_id: str) -> str:
    """Describe an edge that stays deleted.

    >>> describe_lost_edge("Knows", "e1", ("ada", "bob"), "bob")
    "Knows 'e1' (ada -> bob) was deleted with 'bob'"
    """
    source, target = endpoints
    return f"{type_name} '{edge_id}' ({source} -> {target}) was deleted with '{node_id}'"
