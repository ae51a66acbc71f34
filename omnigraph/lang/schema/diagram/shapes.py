"""Decide what a diagram shows for each type, and at what size: boxes for node types, labels for edge types.

Text is measured with a fixed width per character, because no font is available. Long names and long property lists are
shortened, and a tooltip shows the full text.
"""

from omnigraph.lang.schema.catalog import Catalog, EdgeType, NodeType, PropertyDefinition
from omnigraph.lang.schema.declared_order import DeclaredOrder
from omnigraph.records.frozen import record

TITLE_HEIGHT, ROW_HEIGHT, SUBTITLE_HEIGHT = 26.0, 17.0, 15.0
LABEL_HEIGHT, LABEL_ROW_HEIGHT = 22.0, 14.0
PADDING = 10.0
LOOP_GAP, LOOP_SIDE = 14.0, 9.0
_TITLE_CHARACTER, _ROW_CHARACTER, _SMALL_CHARACTER = 8.4, 6.7, 6.1
_MAX_ROWS, _MAX_LABEL_ROWS = 14, 5
_MAX_NAME_LENGTH, _MAX_TYPE_LENGTH = 30, 28
_MIN_WIDTH = 90.0


@record
class PropertyRow:
    """One property in a box: its name, its type, and whether it is part of the key."""

    name: str
    type: str
    is_key: bool = False
    tooltip: str = ""


@record
class EdgeLabel:
    """An edge type's name and properties, drawn on the arrow."""

    edge: EdgeType
    title: str
    rows: tuple[str, ...]
    width: float
    height: float


@record
class TypeBox:
    """A node type with its properties. `loops` are the edge types from the type to itself, drawn below the box."""

    node: NodeType
    title: str
    subtitle: str
    rows: tuple[PropertyRow, ...]
    loops: tuple[EdgeLabel, ...]
    width: float
    box_height: float

    @property
    def height(self) -> float:
        """The height of the box and its loops."""
        return self.box_height + sum(loop.height + LOOP_GAP for loop in self.loops)


def short_text(text: str, max_length: int) -> str:
    """Return `text`, shortened to at most `max_length` characters.

    >>> short_text("publication", 6)
    'publi…'
    """
    return text if len(text) <= max_length else text[: max_length - 1] + "…"


def make_boxes(catalog: Catalog, order: DeclaredOrder) -> dict[str, TypeBox]:
    """Return a box for each node type, in file order."""
    loops: dict[str, list[EdgeLabel]] = {}
    for edge in order.sort_types("edge", catalog.edges):
        if edge.source == edge.target:
            loops.setdefault(edge.source, []).append(make_label(edge, order))
    return {
        node.name: _make_box(node, order, tuple(loops.get(node.name, ())))
        for node in order.sort_types("node", catalog.nodes)
    }


def _make_box(node: NodeType, order: DeclaredOrder, loops: tuple[EdgeLabel, ...]) -> TypeBox:
    title = short_text(node.name, _MAX_NAME_LENGTH)
    subtitle = short_text(f"implements {', '.join(node.implements)}", 44) if node.implements else ""
    rows = _property_rows(node, order)
    row_widths = [_ROW_CHARACTER * (len(row.name) + len(row.type) + 3) for row in rows]
    loop_width = max((loop.width + 2 * LOOP_SIDE * (len(loops) + 2) for loop in loops), default=0.0)
    content_width = max(_TITLE_CHARACTER * len(title), _SMALL_CHARACTER * len(subtitle), *row_widths, 0.0)
    width = max(_MIN_WIDTH, content_width + 2 * PADDING, loop_width)
    rows_height = ROW_HEIGHT * len(rows) + (8.0 if rows else 0.0)
    box_height = TITLE_HEIGHT + (SUBTITLE_HEIGHT if subtitle else 0.0) + rows_height
    return TypeBox(node, title, subtitle, rows, loops, width, box_height)


def _property_rows(node: NodeType, order: DeclaredOrder) -> tuple[PropertyRow, ...]:
    """Return a row per property, starting with the key. If some properties do not fit, the last row shows how many."""
    key = node.key or ()
    properties = sorted(order.sort_properties(node), key=lambda prop: prop.name not in key)
    if len(properties) <= _MAX_ROWS:
        return tuple(_property_row(prop, prop.name in key) for prop in properties)
    shown_rows = tuple(_property_row(prop, prop.name in key) for prop in properties[: _MAX_ROWS - 1])
    hidden_names = [prop.name for prop in properties[_MAX_ROWS - 1 :]]
    return (*shown_rows, PropertyRow(f"… {len(hidden_names)} more", "", tooltip=", ".join(hidden_names)[:500]))


def _property_row(prop: PropertyDefinition, is_key: bool) -> PropertyRow:
    description = next((note.value for note in prop.annotations if note.name == "description"), None)
    tooltip = f"{prop.name}: {prop.type.display()}" + (f": {description}" if description else "")
    type_text = short_text(prop.type.display(), _MAX_TYPE_LENGTH)
    return PropertyRow(short_text(prop.name, _MAX_NAME_LENGTH), type_text, is_key, tooltip)


def make_label(edge: EdgeType, order: DeclaredOrder) -> EdgeLabel:
    """Return an edge type's label, with its name, cardinality and properties."""
    title = short_text(edge.name, _MAX_NAME_LENGTH) + _cardinality_suffix(edge)
    rows = [short_text(f"{prop.name}: {prop.type.display()}", 32) for prop in order.sort_properties(edge)]
    if len(rows) > _MAX_LABEL_ROWS:
        rows = [*rows[: _MAX_LABEL_ROWS - 1], f"… {len(rows) - _MAX_LABEL_ROWS + 1} more"]
    content_width = max(_ROW_CHARACTER * 1.06 * len(title), *(_SMALL_CHARACTER * len(row) for row in rows), 0.0)
    height = LABEL_HEIGHT + LABEL_ROW_HEIGHT * len(rows) + (3.0 if rows else 0.0)
    return EdgeLabel(edge, title, tuple(rows), content_width + 2 * PADDING, height)


def _cardinality_suffix(edge: EdgeType) -> str:
    if (edge.min_cardinality, edge.max_cardinality) == (0, None):
        return ""
    return f" {edge.min_cardinality}..{'*' if edge.max_cardinality is None else edge.max_cardinality}"
