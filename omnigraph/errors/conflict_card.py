"""Renders merge conflicts as an HTML card for notebooks: base, ours and theirs side by side.

Static HTML of bounded size in which every text is escaped. Needs no data library.
"""

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from .conflict import EntityConflict, plain_value

_SHOWN = 20
_LONGEST = 80
_STYLE = (
    "<style>.og{font-family:sans-serif;font-size:90%;color-scheme:light dark}"
    ".og table{border-collapse:collapse}.og th,.og td{text-align:left;padding:2px 8px;"
    "border-bottom:1px solid #8884;vertical-align:top}.og small{color:#888}"
    ".og .o{background:#3b7dd833}.og .t{background:#d8703b33}</style>"
)
_HEAD = "".join(
    f"<th>{name}</th>"
    for name in ("entity", "conflict", "property", "base", "ours", "theirs", "why")
)


def conflict_card(conflicts: Sequence[EntityConflict], caption: str | None = None) -> str:
    """Return an HTML table of the first conflicts, with one row per conflicting property."""
    rows = "".join(_rows(one) for one in conflicts[:_SHOWN])
    left = len(conflicts) - _SHOWN
    more = f"; {left} more not shown" if left > 0 else ""
    told = f"{len(conflicts)} conflict{'s'[: len(conflicts) != 1]}{more}"
    note = f"<br>{_cut(caption)}" if caption else ""
    return (
        f'<div class="og">{_STYLE}<table><thead><tr>{_HEAD}</tr></thead><tbody>{rows}</tbody>'
        f"</table><small>{told}{note}</small></div>"
    )


def _rows(one: EntityConflict) -> str:
    names = one.changed or ("",)
    span = f' rowspan="{len(names)}"' if len(names) > 1 else ""
    entity = _cut(f"{one.entity_kind} {one.type_name} {one.entity_id or ''}".strip())
    first = f"<td{span}>{entity}</td><td{span}>{_cut(one.kind)}</td>"
    lines = []
    for at, name in enumerate(names):
        sides = (("", one.base), (' class="o"', one.ours), (' class="t"', one.theirs))
        cells = "".join(f"<td{style}>{_value(image, name)}</td>" for style, image in sides)
        why = f"<td{span}>{_cut(one.message, 300)}</td>" if at == 0 else ""
        lines.append(f"<tr>{first if at == 0 else ''}<td>{_cut(name)}</td>{cells}{why}</tr>")
    return "".join(lines)


def _value(image: Mapping[str, Any] | None, name: str) -> str:
    if image is None:
        return "<small>absent</small>"
    if not name:
        return ""
    value = image.get(name)
    if isinstance(value, bytes):
        return f"{len(value)} bytes"
    return "<small>null</small>" if value is None else _cut(str(plain_value(value)))


def _cut(text: str, limit: int = _LONGEST) -> str:
    return escape(text if len(text) <= limit else f"{text[: limit - 1]}…")
