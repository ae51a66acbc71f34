"""Diagrams of a schema: Mermaid text and SVG images, computed from a catalog alone.

`shapes` decides what a box shows, `layers`, `ordering` and `positions` decide where it is, and `svg` draws it. The same
schema always has the same diagram. Start reading with `layout`.
"""

from .mermaid import draw_mermaid
from .svg import draw_svg

__all__ = ["draw_mermaid", "draw_svg"]
