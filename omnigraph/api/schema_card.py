"""The notebook card for a schema: its diagram, followed by its text. All text is escaped, and there are no scripts."""

from html import escape
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from omnigraph.api.schema import Schema

_MAX_SOURCE_LENGTH = 20_000
_MAX_TYPES = 150  # a diagram with more types would be too big and hard to read


def schema_card(schema: "Schema") -> str:
    """Return the schema as HTML: the diagram, and the text in a collapsible section."""
    counts = f"{len(schema.node_types)} node types, {len(schema.edge_types)} edge types"
    diagram = schema.diagram("svg") if len(schema) <= _MAX_TYPES else ""
    source = schema.source
    shown_source = source if len(source) <= _MAX_SOURCE_LENGTH else f"{source[:_MAX_SOURCE_LENGTH]}\n…"
    return (
        f'<div class="og" style="color-scheme:light dark"><div style="overflow:auto;max-height:900px">{diagram}</div>'
        f"<details><summary><small>{counts}</small></summary><pre>{escape(shown_source)}</pre></details></div>"
    )
