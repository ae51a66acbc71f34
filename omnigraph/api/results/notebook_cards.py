"""Notebook cards: static HTML of bounded size, with all text escaped.

This module defines how results, receipts and graphs look in notebooks. Cards use no scripts or external resources, and
their colors follow the reader's theme. If a card's content is truncated, the card says so.
"""

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from itertools import islice
from math import isfinite
from typing import Any

import pyarrow as pa

from omnigraph.api.results.formats import format_cell
from omnigraph.api.results.json_encoding import encode_column
from omnigraph.errors.conflict import to_json_value
from omnigraph.errors.counts import format_count
from omnigraph.history.commit import Commit
from omnigraph.history.entities import EntityChange
from omnigraph.values.table_key import TableKey

MAX_ROWS = 20
MAX_COLUMNS = 50
_MAX_TYPES = 200
_MAX_CELL_LENGTH = 120  # maximum number of characters per cell, so that 20 rows with 50 cells stay below 200 kB
_MAX_CAPTION_LENGTH = 200

_CARD_STYLE = (
    "<style>.og{font-family:sans-serif;font-size:90%;color-scheme:light dark}"
    ".og table{border-collapse:collapse}"
    ".og th,.og td{text-align:left;padding:2px 8px;border-bottom:1px solid #8884;"
    "vertical-align:top;unicode-bidi:isolate}"
    ".og small,.og .n{color:#888;font-weight:normal}</style>"
)


_DIFF_STYLE = (
    "<style>.og .i{background:#3ba55d33}.og .d{background:#d8403b33;text-decoration:line-through}"
    ".og .u{background:#c7a01f33}.og td.d{text-decoration:none}"
    ".og .c{text-decoration:none;padding:0 5px;border-radius:3px}</style>"
)
_ENDPOINT_LABELS = {"src": "from", "dst": "to"}
_OP_SIGNS = {"insert": ("+", "i"), "update": ("~", "u"), "delete": ("−", "d")}


def escape_short(value: Any, max_length: int = _MAX_CELL_LENGTH) -> str:
    """Return a JSON value as escaped text, shortened if necessary.

    >>> escape_short("<b>"), escape_short("x" * 200, 5)
    ('&lt;b&gt;', 'xxxx…')
    """
    cell_text = format_cell(value[: 4 * max_length] if isinstance(value, str | list) else value)
    return escape(cell_text if len(cell_text) <= max_length else cell_text[: max_length - 1] + "…")


def table_card(table: pa.Table, caption: str) -> str:
    """Return a card with the first rows of a table. Column types are shown below the column names."""
    visible_table = table.slice(0, MAX_ROWS).select(range(min(MAX_COLUMNS, table.num_columns)))
    header_html = "".join(
        f"<th>{escape_short(field.name)}<br><small>{escape_short(str(field.type), 40)}</small></th>"
        for field in visible_table.schema
    )
    cell_columns = [_column_cells(column) for column in visible_table.columns]
    rows_html = "".join(f"<tr>{''.join(row_cells)}</tr>" for row_cells in zip(*cell_columns, strict=True))
    caption_html = f"{_escape_caption(caption)}{_omission_note(table)}"
    table_html = f"<table><thead><tr>{header_html}</tr></thead><tbody>{rows_html}</tbody></table>"
    return f'<div class="og">{_CARD_STYLE}{table_html}<small>{caption_html}</small></div>'


def facts_card(title: str, facts: Mapping[str, Any]) -> str:
    """Return a card with one name-value pair per line."""
    rows_html = "".join(
        f"<tr><th>{escape_short(name)}</th><td>{_escape_caption(value)}</td></tr>" for name, value in facts.items()
    )
    title_html = f"<b>{_escape_caption(title)}</b>"
    return f'<div class="og">{_CARD_STYLE}{title_html}<table>{rows_html}</table></div>'


def graph_card(uri: str, branch_name: str, head: Commit, row_counts: Mapping[TableKey, int]) -> str:
    """Return a card with a graph's branch, head and row counts."""
    when, author = f"{head.published:%Y-%m-%d %H:%M:%S} UTC", head.actor or "unknown actor"
    facts: dict[str, Any] = {"branch": branch_name, "head": f"{head.id} by {author}, {when}"}
    return facts_card(uri, facts | dict(sorted(row_counts.items())[:_MAX_TYPES]))


def diff_card(changes: Iterable[EntityChange], caption: str, counts: Mapping[str, Any] | None = None) -> str:
    """Return a card with counts per type, and the first changes with old and new values side by side.

    `counts` is the diff's summary.
    """
    rows_html = "".join(_change_row(change) for change in islice(changes, MAX_ROWS))
    header_html = "<tr><th></th><th>type</th><th>id</th><th>what changed</th></tr>"
    table_html = f"<table><thead>{header_html}</thead><tbody>{rows_html}</tbody></table>"
    hidden_count = 0 if counts is None else counts["inserts"] + counts["updates"] + counts["deletes"] - MAX_ROWS
    hidden_note = f"; {hidden_count} more changes not shown" if hidden_count > 0 else ""
    caption_html = f"<small>{_escape_caption(caption)}{hidden_note}</small>"
    counts_html = "" if counts is None else _counts_html(counts["types"])
    return f'<div class="og">{_CARD_STYLE}{_DIFF_STYLE}{counts_html}{table_html}{caption_html}</div>'


def _counts_html(counts_by_type: Mapping[str, Mapping[str, int]]) -> str:
    """Return one line per type, with colored counts of inserts, updates and deletes."""
    lines = []
    for type_name, type_counts in list(counts_by_type.items())[:MAX_ROWS]:
        numbers = "".join(
            f' <span class="c {css_class}">{sign}{type_counts[op]}</span>'
            for op, (sign, css_class) in _OP_SIGNS.items()
            if type_counts.get(op)
        )
        lines.append(f"<div><b>{escape_short(type_name)}</b>{numbers}</div>")
    return "".join(lines)


def _change_row(change: EntityChange) -> str:
    sign, css_class = _OP_SIGNS[change.op]
    old_values = {**(change.before or {}), **(change.endpoints_before or {})}
    new_values = {**(change.after or {}), **(change.endpoints_after or {})}
    property_names = (
        change.changed
        if change.op == "update"
        else [
            candidate_name
            for candidate_name in {**old_values, **new_values}
            if (new_values or old_values)[candidate_name] is not None
        ]
    )
    property_cells = []
    for property_name in property_names[:MAX_COLUMNS]:
        values = [("d", old_values)] * (change.op != "insert") + [("i", new_values)] * (change.op != "delete")
        values_html = " ".join(
            f'<span class="{css}">{_value_html(row.get(property_name))}</span>' for css, row in values
        )
        label = _ENDPOINT_LABELS.get(property_name, property_name) if change.endpoints else property_name
        property_cells.append(f"{escape_short(label)}: {values_html}")
    changes_html = "; ".join(property_cells)
    return (
        f'<tr><td class="{css_class}">{sign}</td><td>{escape_short(change.type)}</td>'
        f"<td>{escape_short(change.id)}</td><td>{changes_html}</td></tr>"
    )


def _value_html(value: Any) -> str:
    return format_count(len(value), "byte") if isinstance(value, bytes) else escape_short(to_json_value(value), 60)


def _escape_caption(value: Any) -> str:
    return escape_short(value, _MAX_CAPTION_LENGTH)


def _omission_note(table: pa.Table) -> str:
    hidden_rows, hidden_columns = table.num_rows - MAX_ROWS, table.num_columns - MAX_COLUMNS
    hidden_counts = [
        f"{hidden_count} more {noun}"
        for hidden_count, noun in ((hidden_rows, "rows"), (hidden_columns, "columns"))
        if hidden_count > 0
    ]
    return f"; {', '.join(hidden_counts)} not shown" if hidden_counts else ""


def _column_cells(column: Any) -> Iterable[str]:
    if pa.types.is_fixed_size_list(column.type):
        return [f"<td>{_vector_html(value)}</td>" for value in column.to_pylist()]
    if pa.types.is_binary(column.type):
        return [f"<td>{_bytes_html(value)}</td>" for value in column.to_pylist()]
    return [_value_cell(value) for value in encode_column(column)]


def _value_cell(value: Any) -> str:
    return '<td class="n">null</td>' if value is None else f"<td>{escape_short(value)}</td>"


def _bytes_html(value: bytes | None) -> str:
    return '<span class="n">null</span>' if value is None else format_count(len(value), "byte")


def _vector_html(vector: Sequence[float | None] | None) -> str:
    """Return a bar chart of a vector's first values, labeled with the vector's dimension."""
    if vector is None:
        return '<span class="n">null</span>'
    finite_values = [component for component in vector[:32] if component is not None and isfinite(component)]
    lowest, highest = min(finite_values, default=0.0), max(finite_values, default=0.0)
    bar_step = (highest - lowest) / 7 or 1.0
    bars = "".join("▁▂▃▄▅▆▇█"[max(0, min(7, int((component - lowest) / bar_step)))] for component in finite_values)
    return f"{bars} <small>{len(vector)}</small>"
