"""The lines in a drawing, with arrowheads: straight lines, arcs for parallel edges, and loops."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import atan2, cos, hypot, pi, sin

Point = tuple[float, float]
_BEND = 26.0  # distance between the midpoints of adjacent parallel edges
_ARROW_LENGTH = 7.0
_ARROW_WIDTH = 3.4


@dataclass(frozen=True, slots=True)
class Curve:
    """An edge's SVG path and arrowhead, the points that enclose the path, and the points where a name can be placed."""

    path: str
    arrow: str
    points: tuple[Point, ...]
    name_points: tuple[Point, ...]


def draw_curves(centers: Sequence[Point], edges: Sequence[tuple[int, int]], radius: float) -> list[Curve]:
    """Return a curve for each edge, from the border of its source node to the border of its target node."""
    groups: dict[tuple[int, int], list[int]] = {}
    for index, (source, target) in enumerate(edges):
        groups.setdefault((min(source, target), max(source, target)), []).append(index)
    curves: dict[int, Curve] = {}
    for (low, _), members in groups.items():
        for rank, index in enumerate(members):
            source, target = edges[index]
            if source == target:
                curves[index] = _loop(centers, edges, source, radius, rank)
            else:
                side = 1.0 if source == low else -1.0
                bend = (rank - (len(members) - 1) / 2) * _BEND * side
                curves[index] = _arc(centers[source], centers[target], radius, bend)
    return [curves[index] for index in range(len(edges))]


def _arc(source: Point, target: Point, radius: float, bend: float) -> Curve:
    """Return an arc whose midpoint is `bend` away from the straight line."""
    dx, dy = target[0] - source[0], target[1] - source[1]
    length = hypot(dx, dy) or 1.0
    control = (
        (source[0] + target[0]) / 2 - dy / length * 2 * bend,
        (source[1] + target[1]) / 2 + dx / length * 2 * bend,
    )
    start, tip = _toward(source, control, radius), _toward(target, control, radius + 1)
    end = _toward(tip, control, _ARROW_LENGTH - 1)
    path = f"M{_text(start)}Q{_text(control)} {_text(end)}" if bend else f"M{_text(start)}L{_text(end)}"
    name_points = tuple(_quadratic(start, control, end, share) for share in (0.5, 0.42, 0.58, 0.34, 0.66))
    return Curve(path, _arrow(tip, control), (start, tip, name_points[0]), name_points)


def _loop(centers: Sequence[Point], edges: Sequence[tuple[int, int]], node: int, radius: float, rank: int) -> Curve:
    """Return a loop above a node, in the direction farthest from the node's other lines.

    Each additional loop at the same node is larger.
    """
    angle = _free_angle(centers, edges, node)
    x, y = centers[node]
    reach, spread = radius + 34 + 13 * rank, 0.42 + 0.05 * rank
    outer = [(x + reach * cos(angle + turn), y + reach * sin(angle + turn)) for turn in (-spread, spread)]
    start, tip = _toward((x, y), outer[0], radius), _toward((x, y), outer[1], radius + 1)
    end = _toward(tip, outer[1], _ARROW_LENGTH - 1)
    top = (x + (reach - 8) * cos(angle), y + (reach - 8) * sin(angle))
    path = f"M{_text(start)}C{_text(outer[0])} {_text(outer[1])} {_text(end)}"
    return Curve(path, _arrow(tip, outer[1]), (*outer, top), (top, outer[0], outer[1]))


def _free_angle(centers: Sequence[Point], edges: Sequence[tuple[int, int]], node: int) -> float:
    """Return the upward direction that is farthest from a node's lines. The node's label takes the space below."""
    x, y = centers[node]
    neighbors = {target if source == node else source for source, target in edges if node in (source, target)} - {node}
    taken = [atan2(centers[other][1] - y, centers[other][0] - x) for other in neighbors]
    candidates = [-pi / 2 + turn * pi / 12 for turn in (0, 1, -1, 2, -2, 3, -3, 4, -4)]
    return max(candidates, key=lambda angle: min((_angle_between(angle, used) for used in taken), default=pi))


def _angle_between(first: float, second: float) -> float:
    return round(min((first - second) % (2 * pi), (second - first) % (2 * pi)), 3)


def _toward(start: Point, goal: Point, distance: float) -> Point:
    dx, dy = goal[0] - start[0], goal[1] - start[1]
    length = hypot(dx, dy) or 1.0
    return (start[0] + dx / length * distance, start[1] + dy / length * distance)


def _arrow(tip: Point, origin: Point) -> str:
    base = _toward(tip, origin, _ARROW_LENGTH)
    dx, dy = (tip[0] - base[0]) / _ARROW_LENGTH * _ARROW_WIDTH, (tip[1] - base[1]) / _ARROW_LENGTH * _ARROW_WIDTH
    corners = (tip, (base[0] - dy, base[1] + dx), (base[0] + dy, base[1] - dx))
    return " ".join(_text(corner) for corner in corners)


def _quadratic(start: Point, control: Point, end: Point, share: float) -> Point:
    first, second, third = (1 - share) ** 2, 2 * share * (1 - share), share**2
    return (
        first * start[0] + second * control[0] + third * end[0],
        first * start[1] + second * control[1] + third * end[1],
    )


def _text(point: Point) -> str:
    return f"{point[0]:.1f},{point[1]:.1f}"
