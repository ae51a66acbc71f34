"""The lines in a diagram: where they leave and enter boxes, and how they curve between columns.

A line crosses columns horizontally and bends only in the gaps between them, so it never touches a box that it does not
belong to.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from .positions import place_in_order

_PORT_DISTANCE = 13.0
_PORT_MARGIN = 12.0
MIN_PORT_DISTANCE = 8.0
ARROW_LENGTH = 8.0
Point = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Waypoint:
    """A point along a line: the left and right edges of its shape and of its column, and the line's height there."""

    left: float
    right: float
    height: float
    column_left: float
    column_right: float
    is_label: bool = False


@dataclass(frozen=True, slots=True)
class DiagramLine:
    """A line that alternates between straight segments and curves. `arrow` specifies which end has an arrowhead."""

    points: tuple[Point, ...]
    arrow: str = ""

    def moved(self, right: float, down: float) -> "DiagramLine":
        """Return the line at a different position."""
        return DiagramLine(tuple((x + right, y + down) for x, y in self.points), self.arrow)


@dataclass(frozen=True, slots=True)
class LineEnd:
    """One end of a line: the box and the side that it touches, and the height of the next vertex."""

    line_number: int
    box_name: str
    is_left: bool
    next_height: float


def spread_ports(ends: Sequence[LineEnd], boxes: Mapping[str, tuple[float, float]]) -> dict[tuple[int, bool], float]:
    """Return the height at which each line meets its box, with lines spread evenly along the side of the box.

    `boxes` contains the top and height of each box. The result is keyed by line number and by whether the end is on the
    left side of a box.
    """
    ends_by_side: dict[tuple[str, bool], list[LineEnd]] = {}
    for end in ends:
        ends_by_side.setdefault((end.box_name, end.is_left), []).append(end)
    ports: dict[tuple[int, bool], float] = {}
    for (box_name, is_left), side_ends in ends_by_side.items():
        top, height = boxes[box_name]
        side_ends.sort(key=lambda end: (end.next_height, end.line_number))
        heights = _spread_heights([end.next_height for end in side_ends], top, height)
        ports |= {(end.line_number, is_left): port for end, port in zip(side_ends, heights, strict=True)}
    return ports


def _spread_heights(wanted: Sequence[float], top: float, height: float) -> list[float]:
    margin = min(_PORT_MARGIN, height / 3)
    room = height - 2 * margin
    distance = min(_PORT_DISTANCE, room / max(1, len(wanted) - 1))
    clamped = [min(max(position, top + margin), top + height - margin) for position in wanted]
    heights = place_in_order(clamped, [distance] * (len(wanted) - 1), [1.0] * len(wanted))
    lowest = [max(position, top + margin + index * distance) for index, position in enumerate(heights)]
    below = reversed(range(len(wanted)))
    bottom = top + height - margin
    return [min(position, bottom - count * distance) for position, count in zip(lowest, below, strict=True)]


def trace_line(waypoints: Sequence[Waypoint], *, reverse: bool) -> list[DiagramLine]:
    """Return a line through the waypoints, interrupted at labels. `reverse` puts the arrowhead at the start."""
    lines, points = list[DiagramLine](), list[Point]()
    for number, waypoint in enumerate(waypoints):
        if number > 0:
            points += [(waypoint.column_left, waypoint.height), (waypoint.left, waypoint.height)]
        if number == len(waypoints) - 1:
            break
        if waypoint.is_label:
            lines.append(DiagramLine(tuple(points)))
            points = []
        points += [(waypoint.right, waypoint.height), (waypoint.column_right, waypoint.height)]
    lines.append(DiagramLine(tuple(points)))
    if reverse:
        return [DiagramLine(lines[0].points, "start"), *lines[1:]]
    return [*lines[:-1], DiagramLine(lines[-1].points, "end")]
