"""The notebook card for a drawn graph: the image, followed by a note about what was left out."""

from html import escape

from .drawn_graph import DrawnGraph
from .svg import graph_svg


def graph_card(graph: DrawnGraph) -> str:
    """Return the drawing as HTML."""
    note = f"<small>{escape(graph.omission_note)}</small>" if graph.omission_note else ""
    return f'<div style="overflow:auto;max-height:900px">{graph_svg(graph)}</div>{note}'
