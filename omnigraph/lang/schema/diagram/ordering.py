"""Order the vertices within each column of a diagram so that few lines cross.

In several sweeps from left to right and back, each column is sorted by the average position of its vertices' neighbors.
The order with the fewest crossings wins. This is the barycenter heuristic for layered graph drawing.
"""

from bisect import bisect_right, insort
from collections.abc import Mapping, Sequence
from itertools import pairwise

Columns = list[list[str]]
Neighbors = Mapping[str, Sequence[str]]
_ROUNDS = 16


def reduce_crossings(columns: Columns, left_of: Neighbors, right_of: Neighbors) -> Columns:
    """Return the columns with their vertices reordered. `left_of` and `right_of` list each vertex's neighbors.

    >>> reduce_crossings([["a", "b"], ["x", "y"]], {"x": ["b"], "y": ["a"]}, {"a": ["y"], "b": ["x"]})
    [['a', 'b'], ['y', 'x']]
    """
    current = best = [list(column) for column in columns]
    fewest = count_crossings(best, right_of)
    for round_number in range(_ROUNDS):
        if fewest == 0:
            break
        current = _sweep(current, left_of) if round_number % 2 == 0 else _sweep(current[::-1], right_of)[::-1]
        crossings = count_crossings(current, right_of)
        if crossings < fewest:
            best, fewest = [list(column) for column in current], crossings
    return best


def count_crossings(columns: Columns, right_of: Neighbors) -> int:
    """Return how many pairs of lines between adjacent columns cross.

    >>> count_crossings([["a", "b"], ["x", "y"]], {"a": ["y"], "b": ["x"]})
    1
    """
    crossings = 0
    for left_column, right_column in pairwise(columns):
        position = {vertex: index for index, vertex in enumerate(right_column)}
        ends: list[int] = []
        for vertex in left_column:
            own_ends = sorted(position[neighbor] for neighbor in right_of.get(vertex, ()) if neighbor in position)
            crossings += sum(len(ends) - bisect_right(ends, end) for end in own_ends)
            for end in own_ends:
                insort(ends, end)
    return crossings


def _sweep(columns: Columns, neighbors: Neighbors) -> Columns:
    swept = [columns[0]]
    for column in columns[1:]:
        position = {vertex: index for index, vertex in enumerate(swept[-1])}
        swept.append(_sort_by_neighbors(column, position, neighbors))
    return swept


def _sort_by_neighbors(column: list[str], position: Mapping[str, int], neighbors: Neighbors) -> list[str]:
    averages: dict[str, float] = {}
    for index, vertex in enumerate(column):
        ends = [position[neighbor] for neighbor in neighbors.get(vertex, ()) if neighbor in position]
        averages[vertex] = sum(ends) / len(ends) if ends else float(index)
    return sorted(column, key=lambda vertex: averages[vertex])
