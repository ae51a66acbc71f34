"""Place the vertices of ordered columns vertically: close to their neighbors and without overlaps.

`place_in_order` finds the optimal positions in one column (least squares with minimum distances). `place_columns`
applies it to all columns, from left to right and back, several times, which makes the lines nearly straight.
"""

from collections.abc import Mapping, Sequence
from itertools import pairwise

_ROUNDS = 12
_OUTER_WEIGHT = 1.0


def place_in_order(wanted: Sequence[float], distances: Sequence[float], weights: Sequence[float]) -> list[float]:
    """Return the positions that are closest to the desired positions and respect the minimum distances.

    `distances[i]` is the minimum distance between items `i` and `i + 1`.

    >>> place_in_order([0.0, 0.0], [10.0], [1.0, 1.0])
    [-5.0, 5.0]
    """
    offsets = [0.0]
    for distance in distances:
        offsets.append(offsets[-1] + distance)
    blocks: list[tuple[float, float, int]] = []  # position of the first item without offsets, weight, number of items
    for position, offset, weight in zip(wanted, offsets, weights, strict=True):
        blocks.append((position - offset, weight, 1))
        while len(blocks) > 1 and blocks[-2][0] > blocks[-1][0]:
            (upper, upper_weight, upper_count), (lower, lower_weight, lower_count) = blocks[-2:]
            total = upper_weight + lower_weight
            blocks[-2:] = [((upper * upper_weight + lower * lower_weight) / total, total, upper_count + lower_count)]
    starts = [start for start, _, count in blocks for _ in range(count)]
    return [start + offset for start, offset in zip(starts, offsets, strict=True)]


def place_columns(
    columns: Sequence[Sequence[str]],
    neighbors: Mapping[str, Sequence[tuple[str, float]]],
    heights: Mapping[str, float],
    gap: float,
) -> dict[str, float]:
    """Return each vertex's center. `neighbors` maps each vertex to its neighbors and the weights of the connections."""
    centers: dict[str, float] = {}
    for column in columns:
        wanted = _stacked_centers(column, heights, gap)
        centers |= dict(zip(column, wanted, strict=True))
    for round_number in range(_ROUNDS):
        ordered = columns if round_number % 2 == 0 else list(columns)[::-1]
        for column in ordered:
            _place_column(column, neighbors, heights, gap, centers)
    return centers


def _stacked_centers(column: Sequence[str], heights: Mapping[str, float], gap: float) -> list[float]:
    total = sum(heights[vertex] + gap for vertex in column)
    centers, top = [], -total / 2
    for vertex in column:
        centers.append(top + heights[vertex] / 2)
        top += heights[vertex] + gap
    return centers


def _place_column(
    column: Sequence[str],
    neighbors: Mapping[str, Sequence[tuple[str, float]]],
    heights: Mapping[str, float],
    gap: float,
    centers: dict[str, float],
) -> None:
    wanted, weights = [], []
    for vertex in column:
        connections = neighbors.get(vertex, ())
        total = sum(weight for _, weight in connections)
        if total:
            wanted.append(sum(centers[other] * weight for other, weight in connections) / total)
            weights.append(total)
        else:
            wanted.append(centers[vertex])
            weights.append(_OUTER_WEIGHT)
    distances = [(heights[upper] + heights[lower]) / 2 + gap for upper, lower in pairwise(column)]
    centers |= dict(zip(column, place_in_order(wanted, distances, weights), strict=True))
