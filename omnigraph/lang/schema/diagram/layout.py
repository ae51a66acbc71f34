"""Lay out a diagram: compute pixel coordinates for its boxes, labels and lines.

Connected types form a group. A group is drawn in columns, with node types in the even columns and edge labels in the
odd columns. A line that crosses a column gets its own slot in that column, so that no line runs through a box. Groups
are arranged in rows.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from math import sqrt

from omnigraph.lang.schema.catalog import Catalog, EdgeType
from omnigraph.lang.schema.declared_order import DeclaredOrder

from .layers import Arrow, assign_columns, orient_arrows
from .lines import MIN_PORT_DISTANCE, DiagramLine, LineEnd, Waypoint, spread_ports, trace_line
from .ordering import reduce_crossings
from .positions import place_columns
from .shapes import EdgeLabel, TypeBox, make_boxes, make_label

MARGIN = 14.0
_COLUMN_GAP = 38.0
_VERTEX_GAP = 13.0
_BOX_MARGIN = 14.0
_GROUP_GAP = 44.0
_MIN_COLUMN_HEIGHT = 620.0


@dataclass(frozen=True, slots=True)
class PlacedBox:
    """A box and its upper left corner."""

    box: TypeBox
    left: float
    top: float


@dataclass(frozen=True, slots=True)
class PlacedLabel:
    """An edge type's label and its upper left corner."""

    label: EdgeLabel
    left: float
    top: float


@dataclass(frozen=True, slots=True)
class Drawing:
    """A diagram, or part of one, with its width and height in pixels."""

    width: float
    height: float
    boxes: tuple[PlacedBox, ...] = ()
    labels: tuple[PlacedLabel, ...] = ()
    lines: tuple[DiagramLine, ...] = ()

    def moved(self, right: float, down: float) -> "Drawing":
        """Return the drawing at a different position."""
        return Drawing(
            self.width,
            self.height,
            tuple(PlacedBox(item.box, item.left + right, item.top + down) for item in self.boxes),
            tuple(PlacedLabel(item.label, item.left + right, item.top + down) for item in self.labels),
            tuple(line.moved(right, down) for line in self.lines),
        )


@dataclass(slots=True)
class _Group:
    """Connected node types and the labels of their edge types. `chains` lists the vertices along each line."""

    boxes: dict[str, TypeBox]
    labels: dict[str, EdgeLabel]
    columns: list[list[str]] = field(default_factory=list)
    chains: list[tuple[EdgeType, list[str]]] = field(default_factory=list)

    def height(self, vertex: str) -> float:
        if vertex in self.boxes:
            return self.boxes[vertex].height + _BOX_MARGIN
        return self.labels[vertex].height if vertex in self.labels else 0.0

    def width(self, vertex: str) -> float:
        shape = self.boxes.get(vertex) or self.labels.get(vertex)
        return shape.width if shape is not None else 0.0

    def steps(self) -> Iterator[tuple[str, str]]:
        """Return the pairs of vertices that lines connect directly."""
        return ((left, right) for _, chain in self.chains for left, right in pairwise(chain))


def lay_out(catalog: Catalog, order: DeclaredOrder) -> Drawing:
    """Lay out the diagram for a schema."""
    boxes = make_boxes(catalog, order)
    edges = [edge for edge in order.sort_types("edge", catalog.edges) if edge.source != edge.target]
    drawings = []
    for names in _connected_names(list(boxes), edges):
        labels = {_label_key(edge): make_label(edge, order) for edge in edges if edge.source in names}
        drawings.append(_draw_group(_Group({name: boxes[name] for name in boxes if name in names}, labels)))
    return _arrange_in_rows(drawings)


def _label_key(edge: EdgeType) -> str:
    return f"edge:{edge.name}"


def _connected_names(names: Sequence[str], edges: Iterable[EdgeType]) -> list[set[str]]:
    """Return the groups of connected node types, ordered by the first type in each group."""
    group_of = {name: {name} for name in names}
    for edge in edges:
        merged = group_of[edge.source] | group_of[edge.target]
        for name in merged:
            group_of[name] = merged
    return list({id(group_of[name]): group_of[name] for name in names}.values())


def _draw_group(group: _Group) -> Drawing:
    edges = [label.edge for label in group.labels.values()]
    names = list(group.boxes)
    arrows = orient_arrows(names, [(edge.source, edge.target) for edge in edges])
    _grow_busy_boxes(group, arrows)
    heights = {name: group.height(name) + _VERTEX_GAP for name in names}
    area = sum(heights[name] * (group.width(name) + 180.0) for name in names)
    max_height = max(_MIN_COLUMN_HEIGHT, 0.95 * sqrt(area), *heights.values())
    columns = assign_columns(names, arrows, heights, max_height)
    _fill_columns(group, columns, list(zip(edges, arrows, strict=True)))
    left_of, right_of = _neighbors(group)
    group.columns = reduce_crossings(group.columns, left_of, right_of)
    connections = {
        vertex: [
            (other, _weight(group, vertex, other)) for other in (*left_of.get(vertex, ()), *right_of.get(vertex, ()))
        ]
        for column in group.columns
        for vertex in column
    }
    all_heights = {vertex: group.height(vertex) for column in group.columns for vertex in column}
    return _draw_shapes(group, place_columns(group.columns, connections, all_heights, _VERTEX_GAP))


def _grow_busy_boxes(group: _Group, arrows: Sequence[Arrow]) -> None:
    """Make boxes with many lines on one side tall enough to keep the lines apart."""
    for name, box in group.boxes.items():
        line_count = max(sum(left == name for left, _ in arrows), sum(right == name for _, right in arrows))
        box_height = max(box.box_height, MIN_PORT_DISTANCE * (line_count + 2))
        group.boxes[name] = replace(box, box_height=box_height)


def _weight(group: _Group, vertex: str, other: str) -> float:
    """Return how much weight to give to straightening a line.

    Lines between vertices without boxes weigh more, as their bends stand out.
    """
    return 1.0 if vertex in group.boxes or other in group.boxes else 4.0


def _fill_columns(group: _Group, columns: dict[str, int], arrows: Sequence[tuple[EdgeType, tuple[str, str]]]) -> None:
    """Fill the columns with boxes, labels and slots for the lines that cross them."""
    group.columns = [[] for _ in range(2 * max(columns.values()) + 1)]
    for name, column in columns.items():
        group.columns[2 * column].append(name)
    for edge, (left, right) in arrows:
        first, last = 2 * columns[left], 2 * columns[right]
        label_column = min(range(first + 1, last, 2), key=lambda column: _label_cost(group, column, first + last))
        chain = [left]
        for column in range(first + 1, last):
            vertex = _label_key(edge) if column == label_column else f"pass:{edge.name}:{column}"
            group.columns[column].append(vertex)
            chain.append(vertex)
        group.chains.append((edge, [*chain, right]))


def _label_cost(group: _Group, column: int, column_sum: int) -> tuple[int, int]:
    """Return a label's cost in a column: its distance from the line's middle, then the column's label count."""
    label_count = sum(vertex in group.labels for vertex in group.columns[column])
    return abs(2 * column - column_sum), label_count


def _neighbors(group: _Group) -> tuple[dict[str, list[str]], dict[str, list[str]]]:
    left_of: dict[str, list[str]] = {}
    right_of: dict[str, list[str]] = {}
    for left, right in group.steps():
        right_of.setdefault(left, []).append(right)
        left_of.setdefault(right, []).append(left)
    return left_of, right_of


def _draw_shapes(group: _Group, centers: dict[str, float]) -> Drawing:
    top = min(centers[vertex] - group.height(vertex) / 2 for column in group.columns for vertex in column)
    bottom = max(centers[vertex] + group.height(vertex) / 2 for column in group.columns for vertex in column)
    lefts, rights = dict[str, float](), dict[str, float]()
    edges_of_column = _column_edges(group)
    boxes, labels = [], []
    for (start, end), column in zip(edges_of_column, group.columns, strict=True):
        for vertex in column:
            is_shape = vertex in group.boxes or vertex in group.labels
            lefts[vertex] = (start + end - group.width(vertex)) / 2 if is_shape else start
            rights[vertex] = lefts[vertex] + group.width(vertex) if is_shape else end
            if vertex in group.boxes:
                box_top = centers[vertex] - group.boxes[vertex].height / 2 - top
                boxes.append(PlacedBox(group.boxes[vertex], lefts[vertex], box_top))
            elif vertex in group.labels:
                label_top = centers[vertex] - group.labels[vertex].height / 2 - top
                labels.append(PlacedLabel(group.labels[vertex], lefts[vertex], label_top))
    shifted = {vertex: center - top for vertex, center in centers.items()}
    lines = _draw_lines(group, boxes, shifted, lefts, rights)
    return Drawing(edges_of_column[-1][1], bottom - top, tuple(boxes), tuple(labels), lines)


def _column_edges(group: _Group) -> list[tuple[float, float]]:
    """Return the left and right edges of each column."""
    edges, start = [], 0.0
    for column in group.columns:
        width = max(group.width(vertex) for vertex in column)
        edges.append((start, start + width))
        start += width + _COLUMN_GAP
    return edges


def _draw_lines(
    group: _Group,
    boxes: Sequence[PlacedBox],
    centers: dict[str, float],
    lefts: dict[str, float],
    rights: dict[str, float],
) -> tuple[DiagramLine, ...]:
    ends = [
        LineEnd(number, box_name, is_left, centers[next_vertex])
        for number, (_, chain) in enumerate(group.chains)
        for box_name, is_left, next_vertex in ((chain[0], False, chain[1]), (chain[-1], True, chain[-2]))
    ]
    ports = spread_ports(ends, {placed.box.node.name: (placed.top, placed.box.box_height) for placed in boxes})
    column_edges = dict[str, tuple[float, float]]()
    for edges, column in zip(_column_edges(group), group.columns, strict=True):
        column_edges |= dict.fromkeys(column, edges)
    lines = []
    for number, (edge, chain) in enumerate(group.chains):
        heights = [ports[number, False], *(centers[vertex] for vertex in chain[1:-1]), ports[number, True]]
        waypoints = [
            Waypoint(lefts[vertex], rights[vertex], height, *column_edges[vertex], vertex in group.labels)
            for vertex, height in zip(chain, heights, strict=True)
        ]
        lines += trace_line(waypoints, reverse=chain[0] != edge.source)
    return tuple(lines)


def _arrange_in_rows(drawings: Sequence[Drawing]) -> Drawing:
    """Arrange drawings in rows, tallest first. The row width is at least the width of the widest drawing."""
    if not drawings:
        return Drawing(2 * MARGIN, 2 * MARGIN)
    area = sum((drawing.width + _GROUP_GAP) * (drawing.height + _GROUP_GAP) for drawing in drawings)
    widest = max(drawings, key=lambda drawing: drawing.width)
    fills_page = widest.width * widest.height > area / 2
    row_width = widest.width if fills_page else max(widest.width, 1.5 * sqrt(area))
    left = top = MARGIN
    row_height, width = 0.0, 0.0
    placed: list[Drawing] = []
    for drawing in sorted(drawings, key=lambda candidate: -candidate.height):
        if left > MARGIN and left + drawing.width > row_width + MARGIN:
            left, top, row_height = MARGIN, top + row_height + _GROUP_GAP, 0.0
        placed.append(drawing.moved(left, top))
        left += drawing.width + _GROUP_GAP
        row_height, width = max(row_height, drawing.height), max(width, left - _GROUP_GAP)
    return Drawing(
        width + MARGIN,
        top + row_height + MARGIN,
        tuple(box for drawing in placed for box in drawing.boxes),
        tuple(label for drawing in placed for label in drawing.labels),
        tuple(line for drawing in placed for line in drawing.lines),
    )
