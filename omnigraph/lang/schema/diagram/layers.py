"""Assign a diagram's vertices to columns, so that arrows point from left to right where possible.

Cycles are broken by drawing some arrows from right to left. Columns have a maximum height, and types that do not fit
move to the next column. The result is deterministic, because ties are broken by the order of the vertices.
"""

from collections.abc import Mapping, Sequence

Arrow = tuple[str, str]  # from the left vertex to the right vertex


def orient_arrows(vertices: Sequence[str], arrows: Sequence[Arrow]) -> list[Arrow]:
    """Return the arrows with cycles removed. An arrow that would close a cycle is reversed.

    >>> orient_arrows(["a", "b"], [("a", "b"), ("b", "a")])
    [('a', 'b'), ('a', 'b')]
    """
    position = {vertex: index for index, vertex in enumerate(_order_vertices(vertices, arrows))}
    return [arrow if position[arrow[0]] < position[arrow[1]] else (arrow[1], arrow[0]) for arrow in arrows]


def _order_vertices(vertices: Sequence[str], arrows: Sequence[Arrow]) -> list[str]:
    """Order the vertices so that few arrows point backward (the greedy heuristic by Eades, Lin and Smyth)."""
    remaining, first, last = list(vertices), list[str](), list[str]()
    while remaining:
        inside = set(remaining)
        inner_arrows = [(left, right) for left, right in arrows if left in inside and right in inside]
        sinks = [vertex for vertex in remaining if all(left != vertex for left, _ in inner_arrows)]
        sources = [vertex for vertex in remaining if all(right != vertex for _, right in inner_arrows)]
        if sinks and len(sinks) < len(remaining):
            last = sinks + last
            remaining = [vertex for vertex in remaining if vertex not in sinks]
            continue
        chosen = sources or [max(remaining, key=lambda vertex: _surplus(vertex, inner_arrows))]
        first += chosen
        remaining = [vertex for vertex in remaining if vertex not in chosen]
    return first + last


def _surplus(vertex: str, arrows: Sequence[Arrow]) -> int:
    return sum((left == vertex) - (right == vertex) for left, right in arrows)


def assign_columns(
    vertices: Sequence[str], arrows: Sequence[Arrow], heights: Mapping[str, float], max_height: float
) -> dict[str, int]:
    """Return each vertex's column. Every arrow points to a later column, and no column exceeds `max_height`.

    >>> assign_columns(["a", "b", "c"], [("a", "b"), ("a", "c")], dict.fromkeys("abc", 10.0), 15.0)
    {'a': 0, 'b': 1, 'c': 2}
    """
    columns: dict[str, int] = {}
    used: dict[int, float] = {}
    for vertex in _topological_order(vertices, arrows):
        column = max((columns[left] + 1 for left, right in arrows if right == vertex), default=0)
        while used.get(column) and used[column] + heights[vertex] > max_height:
            column += 1
        columns[vertex] = column
        used[column] = used.get(column, 0.0) + heights[vertex]
    _pull_toward_targets(vertices, arrows, heights, max_height, columns)
    return _without_empty_columns(columns)


def _topological_order(vertices: Sequence[str], arrows: Sequence[Arrow]) -> list[str]:
    """Sort the vertices topologically.

    Vertices that can come next are ordered by their number of connections, highest first.
    """
    degree = {vertex: sum(vertex in arrow for arrow in arrows) for vertex in vertices}
    pending, ordered = list(vertices), list[str]()
    while pending:
        blocked = {right for left, right in arrows if left in pending}
        ready = [vertex for vertex in pending if vertex not in blocked]
        ready.sort(key=lambda vertex: -degree[vertex])
        ordered += ready
        pending = [vertex for vertex in pending if vertex in blocked]
    return ordered


def _pull_toward_targets(
    vertices: Sequence[str],
    arrows: Sequence[Arrow],
    heights: Mapping[str, float],
    max_height: float,
    columns: dict[str, int],
) -> None:
    """Move each vertex with more outgoing than incoming arrows as far right as possible."""
    for vertex in sorted(vertices, key=lambda name: -columns[name]):
        targets = [columns[right] for left, right in arrows if left == vertex]
        source_count = sum(right == vertex for _, right in arrows)
        if len(targets) <= source_count:
            continue
        for column in range(min(targets) - 1, columns[vertex], -1):
            used = sum(heights[other] for other in vertices if columns[other] == column)
            if used == 0 or used + heights[vertex] <= max_height:
                columns[vertex] = column
                break


def _without_empty_columns(columns: Mapping[str, int]) -> dict[str, int]:
    renumbered = {column: index for index, column in enumerate(sorted(set(columns.values())))}
    return {vertex: renumbered[column] for vertex, column in columns.items()}
