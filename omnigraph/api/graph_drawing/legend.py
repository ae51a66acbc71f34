"""A drawing's legend: the colors and counts of node and edge types, in rows of bounded width."""

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

LEGEND_ROW_HEIGHT = 18.0
_MAX_ENTRIES = 24
_CHARACTER_WIDTH = 6.3
_MARK_WIDTH = 24.0
_GAP = 16.0


@dataclass(frozen=True, slots=True)
class LegendEntry:
    """A type, with its color and the number of nodes or edges drawn."""

    name: str
    color: str
    count: int
    is_edge: bool


@dataclass(frozen=True, slots=True)
class Legend:
    """A legend as SVG elements, with its size."""

    svg: str
    width: float
    row_count: int


def lay_out_legend(entries: Sequence[LegendEntry], max_width: float) -> Legend:
    """Lay out the first entries, up to a maximum number. An entry that does not fit in a row moves to the next row."""
    parts, left, row, widest = [], 0.0, 0, 0.0
    for entry in entries[:_MAX_ENTRIES]:
        text = f"{entry.name[:40]} ({entry.count})"
        width = _MARK_WIDTH + len(text) * _CHARACTER_WIDTH
        if left and left + width > max_width:
            left, row = 0.0, row + 1
        parts.append(_draw_entry(entry, text, left, row * LEGEND_ROW_HEIGHT))
        left += width + _GAP
        widest = max(widest, left - _GAP)
    return Legend("".join(parts), widest, row + 1)


def _draw_entry(entry: LegendEntry, text: str, left: float, top: float) -> str:
    if entry.is_edge:
        tip, base = left + 19, left + 12
        corners = f"{tip:.1f},{top:.1f} {base:.1f},{top - 3.4:.1f} {base:.1f},{top + 3.4:.1f}"
        mark = (
            f'<path d="M{left:.1f},{top:.1f}h13" stroke="{entry.color}"/>'
            f'<polygon points="{corners}" fill="{entry.color}"/>'
        )
    else:
        mark = f'<circle cx="{left + 13:.1f}" cy="{top:.1f}" r="5.5" fill="{entry.color}"/>'
    return f'{mark}<text x="{left + _MARK_WIDTH:.1f}" y="{top + 4:.1f}">{escape(text)}</text>'
