"""Schema diagrams, as Mermaid text or SVG images, drawn from a catalog alone.

`shapes` decides what each box shows; `layers`, `ordering` and `positions` decide where it goes; and `svg` draws it. The
same schema always produces the same diagram. Read `layout` first.
"""

from .mermaid import draw_mermaid
from .svg import draw_svg

__all__ = ["draw_mermaid", "draw_svg"]
