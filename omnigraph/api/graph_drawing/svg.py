"""Render a drawn graph as an SVG image, with colors for light and dark pages.

All text is escaped, and the image uses no scripts or external resources. Edge types are named in the legend and, where
there is room, on the edges themselves. A name never covers a node, a label or another name.
"""

from collections.abc import Iterator, Sequence
from html import escape

from .drawn_graph import UNKNOWN_TYPE, DrawnGraph, DrawnNode
from .edge_curves import Curve, draw_curves
from .legend import LEGEND_ROW_HEIGHT, LegendEntry, lay_out_legend
from .node_positions import place_nodes

RADIUS = 11.0
_MARGIN = 14.0
_LABEL_HEIGHT = 16.0
_CHARACTER_WIDTH = 6.3  # average character width in the label font
_NAME_CHARACTER_WIDTH = 5.2
_NODE_COLORS = ("#4c8bf5", "#e8833a", "#35a36b", "#b565d9", "#c9a227", "#2ba7b0", "#d9534f", "#8a8f3c")
_EDGE_COLORS = ("#7d8797", "#b0703c", "#4f8f6a", "#8d6bb0", "#a08a35", "#4a8a9c", "#b0605c", "#6f7550")
_UNKNOWN_COLOR = "#9aa1ac"
# Viewers other than browsers ignore this color, and use the white that precedes it in the style.
_PAGE = "var(--jp-layout-color0,var(--vscode-editor-background,Canvas))"
_STYLE = (
    "<style>.og-g{color-scheme:light dark}"
    ".og-g text{font:11px system-ui,'Segoe UI',Roboto,'DejaVu Sans',sans-serif;fill:currentColor;"
    f"paint-order:stroke;stroke:#fff;stroke:{_PAGE};stroke-width:3px;stroke-linejoin:round}}"
    ".og-g .e{font-size:9.5px;opacity:.8}.og-g path{fill:none;stroke-width:1.4}</style>"
)
Box = tuple[float, float, float, float]  # left, top, right, bottom


def graph_svg(graph: DrawnGraph) -> str:
    """Return the drawing as an SVG document.

    >>> ada = DrawnNode("Person", "ada", "Person ada")
    >>> graph_svg(DrawnGraph((ada,), ())).count("<circle")
    2
    """
    if not graph.nodes:
        return ""
    sizes = [_needed_size(node) for node in graph.nodes]
    centers = [(float(x), float(y) - _LABEL_HEIGHT / 2) for x, y in place_nodes(sizes, _links(graph))]
    curves = draw_curves(centers, _links(graph), RADIUS)
    occupied = [_node_box(center, size) for center, size in zip(centers, sizes, strict=True)]
    names = list(_place_names(graph, curves, occupied))
    left, top, right, bottom = _bounds(occupied, curves)
    legend = lay_out_legend(_legend_entries(graph), max(right - left, 360.0))
    width = max(right - left, legend.width) + 2 * _MARGIN
    legend_height = legend.row_count * LEGEND_ROW_HEIGHT
    height = bottom - top + legend_height + 3 * _MARGIN
    shift_x, shift_y = _MARGIN - left, _MARGIN - top
    counts = f"nodes: {len(graph.nodes)}, edges: {len(graph.edges)}"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="og-g" width="{width:.0f}" height="{height:.0f}"'
        f' viewBox="0 0 {width:.0f} {height:.0f}" role="img" aria-label="Graph ({counts})">{_STYLE}'
        f'<g transform="translate({shift_x:.1f},{shift_y:.1f})">'
        f"{''.join(_draw_edges(graph, curves))}{''.join(_draw_nodes(graph, centers))}{''.join(names)}</g>"
        f'<g transform="translate({_MARGIN:.1f},{height - legend_height - _MARGIN / 2:.1f})">{legend.svg}</g></svg>'
    )


def _links(graph: DrawnGraph) -> list[tuple[int, int]]:
    return [(edge.source, edge.target) for edge in graph.edges]


def _needed_size(node: DrawnNode) -> tuple[float, float]:
    width = max(2 * RADIUS, len(node.label) * _CHARACTER_WIDTH) + 10
    return width, 2 * RADIUS + _LABEL_HEIGHT + 10


def _node_box(center: tuple[float, float], size: tuple[float, float]) -> Box:
    (x, y), (width, _) = center, size
    return (x - width / 2, y - RADIUS, x + width / 2, y + RADIUS + _LABEL_HEIGHT)


def _bounds(boxes: Sequence[Box], curves: Sequence[Curve]) -> Box:
    points = [point for curve in curves for point in curve.points]
    lefts, tops = [box[0] for box in boxes], [box[1] for box in boxes]
    rights, bottoms = [box[2] for box in boxes], [box[3] for box in boxes]
    xs, ys = [x for x, _ in points], [y for _, y in points]
    return min(lefts + xs), min(tops + ys), max(rights + xs), max(bottoms + ys)


def _colors(type_names: Sequence[str], palette: Sequence[str]) -> dict[str, str]:
    """Assign colors to types in alphabetical order, so that the colors do not depend on the order of the rows."""
    named = sorted({type_name for type_name in type_names if type_name != UNKNOWN_TYPE})
    colors = {type_name: palette[index % len(palette)] for index, type_name in enumerate(named)}
    return {**colors, UNKNOWN_TYPE: _UNKNOWN_COLOR}


def _legend_entries(graph: DrawnGraph) -> list[LegendEntry]:
    node_types, edge_types = [node.type for node in graph.nodes], [edge.type for edge in graph.edges]
    node_colors, edge_colors = _colors(node_types, _NODE_COLORS), _colors(edge_types, _EDGE_COLORS)
    nodes = [
        LegendEntry(type_name or "not in the result", node_colors[type_name], node_types.count(type_name), False)
        for type_name in sorted(set(node_types), key=lambda name: (name == UNKNOWN_TYPE, name))
    ]
    edges = [
        LegendEntry(type_name, edge_colors[type_name], edge_types.count(type_name), True)
        for type_name in sorted(set(edge_types))
    ]
    return nodes + edges


def _draw_edges(graph: DrawnGraph, curves: Sequence[Curve]) -> Iterator[str]:
    colors = _colors([edge.type for edge in graph.edges], _EDGE_COLORS)
    for edge, curve in zip(graph.edges, curves, strict=True):
        color = colors[edge.type]
        yield (
            f'<g><title>{escape(edge.tooltip)}</title><path d="{curve.path}" stroke="{color}"/>'
            f'<polygon points="{curve.arrow}" fill="{color}"/></g>'
        )


def _draw_nodes(graph: DrawnGraph, centers: Sequence[tuple[float, float]]) -> Iterator[str]:
    colors = _colors([node.type for node in graph.nodes], _NODE_COLORS)
    for node, (x, y) in zip(graph.nodes, centers, strict=True):
        yield (
            f'<g><title>{escape(node.tooltip)}</title><circle cx="{x:.1f}" cy="{y:.1f}" r="{RADIUS:.0f}"'
            f' fill="{colors[node.type]}"/>'
            f'<text x="{x:.1f}" y="{y + RADIUS + 12:.1f}" text-anchor="middle">{escape(node.label)}</text></g>'
        )


def _place_names(graph: DrawnGraph, curves: Sequence[Curve], occupied: Sequence[Box]) -> Iterator[str]:
    """Draw the type on each edge that has room for it. If there is only one edge type, only the legend shows it."""
    if len({edge.type for edge in graph.edges}) < 2:
        return
    taken = list(occupied)
    for edge, curve in zip(graph.edges, curves, strict=True):
        half_width = len(edge.type) * _NAME_CHARACTER_WIDTH / 2 + 2
        for x, y in curve.name_points:
            box = (x - half_width, y - 6, x + half_width, y + 6)
            if not any(_overlap(box, other) for other in taken):
                taken.append(box)
                yield f'<text class="e" x="{x:.1f}" y="{y + 3:.1f}" text-anchor="middle">{escape(edge.type)}</text>'
                break


def _overlap(first: Box, second: Box) -> bool:
    return first[0] < second[2] and second[0] < first[2] and first[1] < second[3] and second[1] < first[3]
