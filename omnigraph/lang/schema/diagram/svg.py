"""Draw a schema as an SVG image.

All text is escaped, and the image uses no scripts or external resources. Its colors follow the reader's light or dark
theme.
"""

from collections.abc import Iterator
from html import escape
from itertools import pairwise

from omnigraph.lang.schema.catalog import Catalog, EdgeType, NodeType
from omnigraph.lang.schema.declared_order import DeclaredOrder

from .layout import Drawing, PlacedBox, PlacedLabel, lay_out
from .lines import ARROW_LENGTH, DiagramLine
from .shapes import (
    LABEL_HEIGHT,
    LABEL_ROW_HEIGHT,
    LOOP_GAP,
    LOOP_SIDE,
    PADDING,
    ROW_HEIGHT,
    SUBTITLE_HEIGHT,
    TITLE_HEIGHT,
)

_MONOSPACE = "ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono',monospace"
_STYLE = (
    "<style>"
    ".og-d text{font-family:" + _MONOSPACE + ";font-size:11px;fill:#1e293b}"
    ".og-d .t{font-family:system-ui,'Segoe UI',Roboto,'DejaVu Sans',sans-serif;font-size:13px;font-weight:600}"
    ".og-d .s,.og-d .y{fill:#64748b}.og-d .s{font-size:10px}.og-d .k{font-weight:700;text-decoration:underline}"
    ".og-d .e{font-weight:600}"
    ".og-d .b{fill:#ffffff;stroke:#94a3b8}.og-d .h{fill:#e0e7ff;stroke:#94a3b8}"
    ".og-d .l{fill:#f1f5f9;stroke:#cbd5e1}.og-d .w{fill:none;stroke:#64748b;stroke-width:1.3}.og-d .a{fill:#64748b}"
    "@media(prefers-color-scheme:dark){"
    ".og-d text{fill:#e2e8f0}.og-d .s,.og-d .y{fill:#94a3b8}"
    ".og-d .b{fill:#1e293b;stroke:#64748b}.og-d .h{fill:#3730a3;stroke:#64748b}"
    ".og-d .l{fill:#334155;stroke:#475569}.og-d .w{stroke:#94a3b8}.og-d .a{fill:#94a3b8}}"
    "</style>"
)
_RADIUS = 5.0


def draw_svg(catalog: Catalog, order: DeclaredOrder) -> str:
    """Return the diagram as an SVG document."""
    drawing = lay_out(catalog, order)
    width, height = _number(drawing.width), _number(drawing.height)
    counts = f"{len(catalog.nodes)} node types and {len(catalog.edges)} edge types"
    return "".join(
        (
            f'<svg xmlns="http://www.w3.org/2000/svg" class="og-d" width="{width}" height="{height}"'
            f' viewBox="0 0 {width} {height}" role="img" aria-label="Schema with {counts}">',
            _STYLE,
            *_draw_parts(drawing),
            "</svg>",
        )
    )


def _draw_parts(drawing: Drawing) -> Iterator[str]:
    yield from (_draw_line(line) for line in drawing.lines)
    for label in drawing.labels:
        yield from _draw_label(label)
    for box in drawing.boxes:
        yield from _draw_box(box)


def _draw_line(line: DiagramLine) -> str:
    """Draw a line that runs straight from the first point to the second, curves to the third, and so on."""
    points = line.points
    commands = [f"M{_point(points[0])}"]
    for index, ((before_x, before_y), (x, y)) in enumerate(pairwise(points)):
        is_gap = index % 2 == 1
        if is_gap and abs(before_y - y) > 0.05:
            middle = (before_x + x) / 2
            commands.append(f"C{_point((middle, before_y))} {_point((middle, y))} {_point((x, y))}")
        elif (before_x, before_y) != (x, y):
            commands.append(f"L{_point((x, y))}")
    head = ""
    if line.arrow == "end":
        head = _arrow_head(*points[-1], -ARROW_LENGTH)
    elif line.arrow == "start":
        head = _arrow_head(*points[0], ARROW_LENGTH)
    return f'<path class="w" d="{"".join(commands)}"/>{head}'


def _arrow_head(x: float, y: float, length: float) -> str:
    corners = ((x, y), (x + length, y - 4), (x + length, y + 4))
    return f'<polygon class="a" points="{" ".join(_point(corner) for corner in corners)}"/>'


def _draw_label(placed: PlacedLabel) -> Iterator[str]:
    label, left, top = placed.label, placed.left, placed.top
    center = left + label.width / 2
    yield f"<g><title>{escape(_edge_tooltip(label.edge))}</title>"
    yield _rectangle("l", left, top, label.width, label.height, min(11.0, label.height / 2))
    yield _text("e", center, top + LABEL_HEIGHT / 2 + 4, label.title, anchor="middle")
    for index, row in enumerate(label.rows):
        yield _text("s", center, top + LABEL_HEIGHT + LABEL_ROW_HEIGHT * index + 9, row, anchor="middle")
    yield "</g>"


def _edge_tooltip(edge: EdgeType) -> str:
    return f"edge {edge.name}: {edge.source} -> {edge.target}{_described(edge)}"


def _described(entity_type: NodeType | EdgeType) -> str:
    description = next((note.value for note in entity_type.annotations if note.name == "description"), None)
    return f"\n{description}" if description else ""


def _draw_box(placed: PlacedBox) -> Iterator[str]:
    box, left, top = placed.box, placed.left, placed.top
    yield f"<g><title>{escape(f'node {box.node.name}{_described(box.node)}')}</title>"
    header_height = TITLE_HEIGHT + (SUBTITLE_HEIGHT if box.subtitle else 0.0)
    yield _rectangle("b", left, top, box.width, box.box_height, _RADIUS)
    yield _header(left, top, box.width, header_height, is_whole=not box.rows)
    yield _text("t", left + PADDING, top + 17.5, box.title)
    if box.subtitle:
        yield _text("s", left + PADDING, top + TITLE_HEIGHT + 8, box.subtitle)
    baseline = top + header_height + 16
    for index, row in enumerate(box.rows):
        y = baseline + ROW_HEIGHT * index
        tooltip = f"<title>{escape(row.tooltip)}</title>" if row.tooltip else ""
        yield _text("k" if row.is_key else "", left + PADDING, y, row.name, tooltip=tooltip)
        if row.type:
            yield _text("y", left + box.width - PADDING, y, row.type, anchor="end")
    yield "</g>"
    yield from _draw_loops(placed)


def _header(left: float, top: float, width: float, height: float, *, is_whole: bool) -> str:
    """Draw a box's header, rounded at the top. If there are no properties, the header is the whole box."""
    if is_whole:
        return _rectangle("h", left, top, width, height, _RADIUS)
    right, bottom, radius = left + width, top + height, _RADIUS
    corners = (
        f"M{_point((left, bottom))}V{_number(top + radius)}Q{_point((left, top))} {_point((left + radius, top))}"
        f"H{_number(right - radius)}Q{_point((right, top))} {_point((right, top + radius))}V{_number(bottom)}Z"
    )
    return f'<path class="h" d="{corners}"/>'


def _draw_loops(placed: PlacedBox) -> Iterator[str]:
    """Draw the edge types from a type to itself: a line down from the box, the label, and a line back up."""
    box, bottom = placed.box, placed.top + placed.box.box_height
    center = placed.left + box.width / 2
    half_width = max((loop.width / 2 for loop in box.loops), default=0.0)
    top = bottom + LOOP_GAP
    for index, loop in enumerate(box.loops):
        reach, middle = half_width + LOOP_SIDE * (index + 1), top + loop.height / 2
        label_left, label_right = center - loop.width / 2, center + loop.width / 2
        out = _elbow(center - reach, bottom, middle, label_left)
        back = _elbow(center + reach, bottom, middle, label_right)
        tip_x = center + reach
        yield f'<path class="w" d="{out}"/><path class="w" d="{back}"/>'
        yield f'<polygon class="a" points="{_point((tip_x, bottom))} {_point((tip_x - 4, bottom + ARROW_LENGTH))}'
        yield f' {_point((tip_x + 4, bottom + ARROW_LENGTH))}"/>'
        yield from _draw_label(PlacedLabel(loop, label_left, top))
        top += loop.height + LOOP_GAP


def _elbow(x: float, start_y: float, end_y: float, end_x: float) -> str:
    """Return a path that runs straight down, turns a rounded corner, and then runs sideways."""
    turn = 6.0 if end_x > x else -6.0
    corner = f"V{_number(end_y - 6)}Q{_point((x, end_y))} {_point((x + turn, end_y))}"
    return f"M{_point((x, start_y))}{corner}H{_number(end_x)}"


def _rectangle(css_class: str, left: float, top: float, width: float, height: float, radius: float) -> str:
    return (
        f'<rect class="{css_class}" x="{_number(left)}" y="{_number(top)}" width="{_number(width)}"'
        f' height="{_number(height)}" rx="{_number(radius)}"/>'
    )


def _text(css_class: str, x: float, y: float, text: str, *, anchor: str = "", tooltip: str = "") -> str:
    class_attribute = f' class="{css_class}"' if css_class else ""
    anchor_attribute = f' text-anchor="{anchor}"' if anchor else ""
    position = f'x="{_number(x)}" y="{_number(y)}"'
    return f"<text{class_attribute} {position}{anchor_attribute}>{escape(text)}{tooltip}</text>"


def _point(point: tuple[float, float]) -> str:
    return f"{_number(point[0])},{_number(point[1])}"


def _number(value: float) -> str:
    """Format a coordinate with at most one decimal place.

    >>> _number(12.0), _number(3.14159)
    ('12', '3.1')
    """
    return f"{value:.1f}".removesuffix(".0")
