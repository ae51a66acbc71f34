"""Order the vertices within each column of a diagram so that few lines cross.

Sweeping from left to right and back several times, each column is sorted by the average position of its vertices'
neighbours. The order with the fewest crossings wins. This is the barycentre heuristic for layered graph drawing.
"""

from bisect import bisect_right, insort
from collections.abc import Mapping, Sequence
from itertools import pairwise

Columns = list[list[str]]
Neighbours = Mapping[str, Sequence[str]]
_ROUNDS = 16


def reduce_crossings(columns: Columns, left_of: Neighbours, right_of: Neighbours) -> Columns:
    """Return the columns with their vertices reordered. `left_of` and `right_of` list each vertex's neighbours.

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


def count_crossings(columns: Columns, right_of: Neighbours) -> int:
    """Return how many pairs of lines between adjacent columns cross.

    >>> count_crossings([["a", "b"], ["x", "y"]], {"a": ["y"], "b": ["x"]})
    1
    """
    crossings = 0
    for left_column, right_column in pairwise(columns):
        position = {vertex: index for index, vertex in enumerate(right_column)}
        ends: list[int] = []
        for vertex in left_column:
            own_ends = sorted(position[neighbour] for neighbour in right_of.get(vertex, ()) if neighbour in position)
            crossings += sum(len(ends) - bisect_right(ends, end) for end in own_ends)
            for end in own_ends:
                insort(ends, end)
    return crossings


def _sweep(columns: Columns, neighbours: Neighbours) -> Columns:
    swept = [columns[0]]
    for column in columns[1:]:
        position = {vertex: index for index, vertex in enumerate(swept[-1])}
        swept.append(_sort_by_neighbours(column, position, neighbours))
    return swept


def _sort_by_neighbours(column: list[str], position: Mapping[str, int], neighbours: Neighbours) -> list[str]:
    averages: dict[str, float] = {}
    for index, vertex in enumerate(column):
        ends = [position[neighbour] for neighbour in neighbours.get(vertex, ()) if neighbour in position]
        averages[vertex] = sum(ends) / len(ends) if ends else float(index)
    return sorted(column, key=lambda vertex: averages[vertex])
