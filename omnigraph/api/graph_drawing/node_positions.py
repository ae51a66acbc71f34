"""Place the nodes of a drawing so that distances on the page reflect distances in the graph.

Each connected part is laid out by stress majorization, rotated so that it is wider than it is tall, and adjusted so
that labels do not overlap. The parts are then packed in rows. No randomness is involved, so a graph always gets the
same layout.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

Edge = tuple[int, int]
Array = np.ndarray[Any, np.dtype[np.float64]]
_EDGE_LENGTH = 92.0
_ITERATIONS = 60
_POWER_ROUNDS = 30
_SEPARATION_ROUNDS = 120
_PART_GAP = 26.0
_MIN_ROW_WIDTH = 620.0


def place_nodes(sizes: Sequence[tuple[float, float]], edges: Sequence[Edge]) -> Array:
    """Return each node's center. `sizes` contains the width and height that each node and its label need."""
    positions = np.zeros((len(sizes), 2))
    boxes = np.array(sizes, dtype=np.float64).reshape(-1, 2)
    parts = _connected_parts(len(sizes), edges)
    for part in parts:
        positions[part] = _lay_out_part(part, edges, boxes[part])
    _pack(parts, positions, boxes)
    return positions


def _connected_parts(node_count: int, edges: Sequence[Edge]) -> list[list[int]]:
    """Return the connected parts, largest first, each with its nodes in ascending order."""
    roots = list(range(node_count))

    def find_root(node: int) -> int:
        while roots[node] != node:
            roots[node] = roots[roots[node]]
            node = roots[node]
        return node

    for source, target in edges:
        first, second = sorted((find_root(source), find_root(target)))
        roots[second] = first
    parts: dict[int, list[int]] = {}
    for node in range(node_count):
        parts.setdefault(find_root(node), []).append(node)
    return sorted(parts.values(), key=lambda part: (-len(part), part[0]))


def _lay_out_part(part: list[int], edges: Sequence[Edge], boxes: Array) -> Array:
    if len(part) == 1:
        return np.zeros((1, 2))
    local = {node: index for index, node in enumerate(part)}
    links = {(local[s], local[t]) for s, t in edges if s in local and t in local and s != t}
    positions = _minimize_stress(_distances(len(part), links))
    turned = _turn(positions, sorted(links))
    turned[:, 0] *= 1.2  # labels are wider than they are tall
    return _separate(turned, boxes)


def _distances(node_count: int, links: set[Edge]) -> Array:
    """Return the lengths of the shortest paths. Edges to nodes with many neighbors are treated as longer."""
    adjacent = np.zeros((node_count, node_count), dtype=bool)
    for source, target in links:
        adjacent[source, target] = adjacent[target, source] = True
    degrees = adjacent.sum(axis=0)
    crowding = np.clip(np.maximum.outer(degrees, degrees) * 0.085, 1.0, 2.6)
    distances = np.where(adjacent, _EDGE_LENGTH * crowding, np.inf)
    np.fill_diagonal(distances, 0.0)
    for middle in range(node_count):
        distances = np.minimum(distances, distances[:, middle, None] + distances[None, middle, :])
    return distances


def _minimize_stress(distances: Array) -> Array:
    """Return positions whose distances match `distances` as closely as possible (stress majorization)."""
    node_count = len(distances)
    weights = 1.0 / np.where(distances > 0, distances, 1.0) ** 2
    np.fill_diagonal(weights, 0.0)
    laplacian = np.diag(weights.sum(axis=1)) - weights
    inverse = np.linalg.inv(laplacian + 1.0 / node_count) - 1.0 / node_count
    targets = weights * distances
    positions = _first_positions(distances)
    for _ in range(_ITERATIONS):
        between = np.linalg.norm(positions[:, None, :] - positions[None, :, :], axis=2)
        ratios = targets / np.maximum(between, 1e-3)
        positions = inverse @ (ratios.sum(axis=1)[:, None] * positions - ratios @ positions)
    return positions


def _first_positions(distances: Array) -> Array:
    """Return initial positions: classical scaling, plus a spiral that separates nodes with identical distances."""
    node_count = len(distances)
    squared = distances**2
    scalar_products = -0.5 * (squared - squared.mean(axis=0) - squared.mean(axis=1)[:, None] + squared.mean())
    angles = np.arange(node_count) * 2.399963  # the golden angle
    spiral = np.column_stack((np.cos(angles), np.sin(angles))) * np.sqrt(np.arange(node_count) + 1.0)[:, None]
    vectors = spiral
    for _ in range(_POWER_ROUNDS):  # the eigenvectors with the two largest eigenvalues
        vectors = scalar_products @ vectors
        vectors[:, 0] /= np.sqrt((vectors[:, 0] ** 2).sum()) or 1.0
        vectors[:, 1] -= vectors[:, 0] * (vectors[:, 0] * vectors[:, 1]).sum()
        vectors[:, 1] /= np.sqrt((vectors[:, 1] ** 2).sum()) or 1.0
    guess: Array = vectors * distances.max() * node_count**0.5 / 2 + spiral * 6.0
    return guess


def _turn(positions: Array, links: Sequence[Edge]) -> Array:
    """Turn or mirror a part so that it is wide, most edges point right, and its first node is in the top half."""
    centerd = positions - positions.mean(axis=0)
    x, y = centerd[:, 0], centerd[:, 1]
    angle = 0.5 * np.arctan2(2 * (x * y).sum(), (x * x).sum() - (y * y).sum())
    turned: Array = np.column_stack((x * np.cos(angle) + y * np.sin(angle), y * np.cos(angle) - x * np.sin(angle)))
    rightward = sum(np.sign(round(turned[target, 0] - turned[source, 0], 3)) for source, target in links)
    turned[:, 0] *= -1.0 if rightward < 0 or (rightward == 0 and turned[0, 0] > 0) else 1.0
    turned[:, 1] *= -1.0 if turned[0, 1] > 0 else 1.0
    return turned


def _separate(positions: Array, boxes: Array) -> Array:
    """Move nodes apart until their boxes no longer overlap, or until the limit on rounds is reached."""
    needed = (boxes[:, None, :] + boxes[None, :, :]) / 2
    order = np.sign(np.arange(len(boxes))[:, None] - np.arange(len(boxes))[None, :]).astype(np.float64)
    for round_number in range(1, _SEPARATION_ROUNDS + 1):
        offsets = positions[:, None, :] - positions[None, :, :]
        overlaps = needed - np.abs(offsets)
        colliding = (overlaps > 0.01).all(axis=2) & (order != 0)
        if not colliding.any():
            break
        if round_number % 20 == 0:  # spread out a crowded part, such as a long chain with wide labels
            positions = positions * 1.1
            continue
        directions = np.where(np.abs(offsets) > 1e-6, np.sign(offsets), order[:, :, None])
        horizontal = overlaps[:, :, 0] < overlaps[:, :, 1]
        chosen = np.stack((colliding & horizontal, colliding & ~horizontal), axis=2)
        positions = positions + (np.where(chosen, overlaps * directions, 0.0)).sum(axis=1) * 0.5
    return positions


def _pack(parts: Sequence[list[int]], positions: Array, boxes: Array) -> None:
    """Pack the parts into rows, from left to right and top to bottom, without overlaps."""
    row_width = _MIN_ROW_WIDTH
    left = top = row_height = 0.0
    for part in parts:
        low = (positions[part] - boxes[part] / 2).min(axis=0)
        width, height = (positions[part] + boxes[part] / 2).max(axis=0) - low
        if left and left + width > row_width:
            left, top, row_height = 0.0, top + row_height + _PART_GAP, 0.0
        positions[part] += np.array((left, top)) - low
        left, row_height, row_width = left + width + _PART_GAP, max(row_height, height), max(row_width, width)
