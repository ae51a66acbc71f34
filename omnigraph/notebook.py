"""Notebook cards: static HTML of bounded size, with all text escaped.

Owns how results, receipts and graphs look in a notebook. No scripts and no external resources;
colours follow the reader's theme. Long content is truncated, and the card says so.
"""

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from itertools import islice
from math import isfinite
from typing import Any

import pyarrow as pa

from omnigraph.encode import encoded
from omnigraph.errors.conflict import plain_value
from omnigraph.formats import one_line
from omnigraph.history.entities import EntityChange

ROWS = 20
COLUMNS = 50
_CELL = 120  # characters of a cell; 20 rows of 50 such cells stay below 200 kB
_CAPTION = 200

_STYLE = (
    "<style>.og{font-family:sans-serif;font-size:90%;color-scheme:light dark}"
    ".og table{border-collapse:collapse}"
    ".og th,.og td{text-align:left;padding:2px 8px;border-bottom:1px solid #8884;"
    "vertical-align:top;unicode-bidi:isolate}"
    ".og small,.og .n{color:#888;font-weight:normal}</style>"
)


_SIDES = (
    "<style>.og .i{background:#3ba55d33}.og .d{background:#d8403b33;text-decoration:line-through}"
    ".og .u{background:#c7a01f33}</style>"
)
_SIGNS = {"insert": ("+", "i"), "update": ("~", "u"), "delete": ("−", "d")}


def cut(value: Any, limit: int = _CELL) -> str:
    """Return a JSON value as short escaped text.

    >>> cut("<b>"), cut("x" * 200, 5)
    ('&lt;b&gt;', 'xxxx…')
    """
    text = one_line(value[: 4 * limit] if isinstance(value, str | list) else value)
    return escape(text if len(text) <= limit else text[: limit - 1] + "…")


def table_card(table: pa.Table, caption: str) -> str:
    """Return a card with the first rows of a table, column types below the names."""
    shown = table.slice(0, ROWS).select(range(min(COLUMNS, table.num_columns)))
    head = "".join(
        f"<th>{cut(field.name)}<br><small>{cut(str(field.type), 40)}</small></th>"
        for field in shown.schema
    )
    columns = [_cells(column) for column in shown.columns]
    rows = "".join(f"<tr>{''.join(row)}</tr>" for row in zip(*columns, strict=True))
    left = _left(table)
    body = f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"
    return f'<div class="og">{_STYLE}{body}<small>{cut(caption, _CAPTION)}{left}</small></div>'


def facts_card(title: str, facts: Mapping[str, Any]) -> str:
    """Return a card with one name and value per line."""
    rows = "".join(
        f"<tr><th>{cut(name)}</th><td>{cut(value, _CAPTION)}</td></tr>"
        for name, value in facts.items()
    )
    return f'<div class="og">{_STYLE}<b>{cut(title, _CAPTION)}</b><table>{rows}</table></div>'


def diff_card(changes: Iterable[EntityChange], caption: str) -> str:
    """Return a card with the first changes, old and new values side by side."""
    rows = "".join(_changed(one) for one in islice(changes, ROWS))
    head = "<tr><th></th><th>type</th><th>id</th><th>what changed</th></tr>"
    body = f"<table><thead>{head}</thead><tbody>{rows}</tbody></table>"
    return f'<div class="og">{_STYLE}{_SIDES}{body}<small>{cut(caption, _CAPTION)}</small></div>'


def _changed(one: EntityChange) -> str:
    sign, word = _SIGNS[one.op]
    was = {**(one.before or {}), **(one.endpoints_before or {})}
    now = {**(one.after or {}), **(one.endpoints_after or {})}
    names = one.changed if one.op == "update" else [n for n in {**was, **now} if (now or was)[n]]
    cells = []
    for name in names[:COLUMNS]:
        old = f'<span class="d">{_plain(was.get(name))}</span> ' if one.op != "insert" else ""
        new = f'<span class="i">{_plain(now.get(name))}</span>' if one.op != "delete" else ""
        cells.append(f"{cut(name)}: {old}{new}")
    told = "; ".join(cells)
    return (
        f'<tr><td class="{word}">{sign}</td><td>{cut(one.type)}</td><td>{cut(one.id)}</td>'
        f"<td>{told}</td></tr>"
    )


def _plain(value: Any) -> str:
    return f"{len(value)} bytes" if isinstance(value, bytes) else cut(plain_value(value), 60)


def _left(table: pa.Table) -> str:
    rows, columns = table.num_rows - ROWS, table.num_columns - COLUMNS
    more = [f"{n} more {word}" for n, word in ((rows, "rows"), (columns, "columns")) if n > 0]
    return f"; {', '.join(more)} not shown" if more else ""


def _cells(column: Any) -> Iterable[str]:
    if pa.types.is_fixed_size_list(column.type):
        return [f"<td>{_vector(value)}</td>" for value in column.to_pylist()]
    if pa.types.is_binary(column.type):
        return [f"<td>{_bytes(value)}</td>" for value in column.to_pylist()]
    return [_cell(value) for value in encoded(column)]


def _cell(value: Any) -> str:
    return '<td class="n">null</td>' if value is None else f"<td>{cut(value)}</td>"


def _bytes(value: bytes | None) -> str:
    return '<span class="n">null</span>' if value is None else f"{len(value)} bytes"


def _vector(value: Sequence[float | None] | None) -> str:
    """Return a vector as a bar chart of its first values, and its dimension."""
    if value is None:
        return '<span class="n">null</span>'
    shown = [x for x in value[:32] if x is not None and isfinite(x)]
    low, high = min(shown, default=0.0), max(shown, default=0.0)
    step = (high - low) / 7 or 1.0
    bars = "".join("▁▂▃▄▅▆▇█"[max(0, min(7, int((x - low) / step)))] for x in shown)
    return f"{bars} <small>{len(value)}</small>"
