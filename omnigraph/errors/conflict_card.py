"""Render merge conflicts as an HTML card for notebooks, with base, ours and theirs side by side.

The card is static HTML with a bounded size, and all of its text is escaped. Rendering requires neither pyarrow nor
pandas.
"""

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from .conflict import to_json_value
from .counts import format_count
from .merge_conflict import EntityConflict

_MAX_CONFLICTS = 20
_MAX_TEXT_LENGTH = 80
_STYLE = (
    "<style>.og{font-family:sans-serif;font-size:90%;color-scheme:light dark}"
    ".og table{border-collapse:collapse}.og th,.og td{text-align:left;padding:2px 8px;"
    "border-bottom:1px solid #8884;vertical-align:top}.og small{color:#888}"
    ".og .o{background:#3b7dd833}.og .t{background:#d8703b33}</style>"
)
_HEADER_CELLS = "".join(
    f"<th>{name}</th>" for name in ("entity", "conflict", "property", "base", "ours", "theirs", "why")
)


def conflict_card(conflicts: Sequence[EntityConflict], caption: str | None = None) -> str:
    """Return an HTML table of the first conflicts, with one row per conflicting property."""
    table_rows = "".join(_render_conflict(conflict) for conflict in conflicts[:_MAX_CONFLICTS])
    hidden_count = len(conflicts) - _MAX_CONFLICTS
    hidden_note = f"; {hidden_count} more not shown" if hidden_count > 0 else ""
    count_text = f"{len(conflicts)} conflict{'s'[: len(conflicts) != 1]}{hidden_note}"
    caption_html = f"<br>{_escape_clipped(caption)}" if caption else ""
    return (
        f'<div class="og">{_STYLE}<table><thead><tr>{_HEADER_CELLS}</tr></thead>'
        f"<tbody>{table_rows}</tbody></table><small>{count_text}{caption_html}</small></div>"
    )


def _render_conflict(conflict: EntityConflict) -> str:
    property_names = conflict.changed or ("",)
    rowspan = f' rowspan="{len(property_names)}"' if len(property_names) > 1 else ""
    entity_label = _escape_clipped(f"{conflict.entity_kind} {conflict.type_name} {conflict.entity_id or ''}".strip())
    entity_cells = f"<td{rowspan}>{entity_label}</td><td{rowspan}>{_escape_clipped(conflict.kind)}</td>"
    html_rows = []
    for row_index, property_name in enumerate(property_names):
        side_images = (("", conflict.base), (' class="o"', conflict.ours), (' class="t"', conflict.theirs))
        value_cells = "".join(
            f"<td{cell_class}>{_render_value(image, property_name)}</td>" for cell_class, image in side_images
        )
        reason_cell = f"<td{rowspan}>{_escape_clipped(conflict.message, 300)}</td>" if row_index == 0 else ""
        name_cell = f"<td>{_escape_clipped(property_name)}</td>"
        leading_cells = entity_cells if row_index == 0 else ""
        html_rows.append(f"<tr>{leading_cells}{name_cell}{value_cells}{reason_cell}</tr>")
    return "".join(html_rows)


def _render_value(image: Mapping[str, Any] | None, property_name: str) -> str:
    if image is None:
        return "<small>absent</small>"
    if not property_name:
        return ""
    value = image.get(property_name)
    if isinstance(value, bytes):
        return format_count(len(value), "byte")
    return "<small>null</small>" if value is None else _escape_clipped(str(to_json_value(value)))


def _escape_clipped(text: str, max_length: int = _MAX_TEXT_LENGTH) -> str:
    return escape(text if len(text) <= max_length else f"{text[: max_length - 1]}…")
