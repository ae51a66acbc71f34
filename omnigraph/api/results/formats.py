"""Format a result as text: a table, key-value pairs, CSV, JSON, JSON Lines or Markdown.

The command line and `show()` use these formats. Characters that a terminal would interpret (control characters and
bidirectional marks) are always printed as escapes.
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field
from itertools import chain
from typing import TYPE_CHECKING, Any, Literal

from omnigraph.api.query_labels import describe_origin
from omnigraph.errors.diagnostics import character_width
from omnigraph.records.frozen import record

if TYPE_CHECKING:
    import pyarrow as pa

ResultFormat = Literal["table", "kv", "csv", "jsonl", "json", "md", "ndjson"]
CellLayout = Literal["truncate", "wrap"]
_MIN_COLUMN_WIDTH = 8
_CONTROL_CHARACTER = re.compile("[\x00-\x1f\x7f-\x9f\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069]")
# Matches a zero-width joiner together with the emoji that follows it, a skin tone, or a zero-width mark.
_INVISIBLE_PARTS = re.compile(
    "\u200d[\u2600-\u27bf\U0001f000-\U0001faff]|[\U0001f3fb-\U0001f3ff\u200b-\u200d\u2060\ufeff]"
)
_NAMED_ESCAPES = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}


@record
class PlainRows:
    """Rows that were received as JSON. They can be printed like an Arrow table, without importing Arrow."""

    column_names: Sequence[str]
    json_rows: Sequence[Mapping[str, Any]]

    @property
    def num_rows(self) -> int:
        """The number of rows."""
        return len(self.json_rows)

    @property
    def num_columns(self) -> int:
        """The number of columns."""
        return len(self.column_names)


def _iter_rows(table: "pa.Table | PlainRows") -> Iterator[Mapping[str, Any]]:
    """Yield the rows as JSON values by column name, in column order."""
    if isinstance(table, PlainRows):
        return iter(table.json_rows)
    from omnigraph.api.results.json_encoding import iter_json_rows

    return iter_json_rows(table)


@record
class PrintableResult:
    """Rows to print, with the query, branch and commit that they come from."""

    table: "pa.Table | PlainRows"
    query_name: str
    target: Mapping[str, Any] = field(default_factory=lambda: {"branch": "main", "snapshot": None})
    commit_id: str | None = None

    def metadata(self) -> dict[str, Any]:
        """Return the query name, the branch or snapshot, the row count, the column names and the commit id."""
        return {
            "query_name": self.query_name,
            "target": dict(self.target),
            "row_count": self.table.num_rows,
            "columns": list(self.table.column_names),
            "graph_commit_id": self.commit_id,
        }

    def headline(self) -> str:
        """Return the headline, such as `2 rows from branch main via adults`."""
        row_count = self.table.num_rows
        target_kind, target_name = next(
            (candidate_kind, candidate_name)
            for candidate_kind, candidate_name in self.target.items()
            if candidate_name is not None
        )
        rows = f"{row_count} row{'s'[: row_count != 1]}"
        return f"{rows} from {target_kind} {target_name}{describe_origin(self.query_name)}"


@record
class TextStyle:
    """Formatting options: the maximum column width, the cell layout, and how CSV represents null."""

    max_column_width: int = 80
    layout: CellLayout = "truncate"
    csv_null: str = "null"


def render(printable: PrintableResult, form: ResultFormat, style: TextStyle | None = None) -> Iterator[str]:
    """Yield the lines of a formatted result, without line terminators."""
    return _RENDERERS[form](printable, style or TextStyle())


def format_cell(value: Any) -> str:
    r"""Format a JSON value as the text in a cell.

    >>> format_cell(None), format_cell([1, None]), format_cell("two\nlines")
    ('null', '[1,null]', 'two\\nlines')
    """
    return _CONTROL_CHARACTER.sub(_escape_character, _value_text(value))


def _value_text(value: Any) -> str:
    return value if isinstance(value, str) else compact_json(value)


def compact_json(value: Any) -> str:
    """Return JSON on one line, without spaces."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _escape_character(match: "re.Match[str]") -> str:
    character = match.group()
    return _NAMED_ESCAPES.get(character) or (
        f"\\x{ord(character):02x}" if ord(character) < 256 else f"\\u{ord(character):04x}"
    )


# Machine formats ----------------------------------------------------------------------------


def _render_json(printable: PrintableResult, style: TextStyle) -> Iterator[str]:
    metadata = printable.metadata() | {"rows": None}
    text_before, _, text_after = json.dumps(metadata, indent=2, ensure_ascii=False).rpartition("null")
    row_documents = (json.dumps(row, indent=2, ensure_ascii=False) for row in _iter_rows(printable.table))
    first_document = next(row_documents, None)
    if first_document is None:
        yield from f"{text_before}[]{text_after}".split("\n")
        return
    yield from f"{text_before}[".split("\n")
    previous_document = first_document
    for row in row_documents:
        yield from (f"{_indent_document(previous_document)},").split("\n")
        previous_document = row
    yield from _indent_document(previous_document).split("\n")
    yield from f"  ]{text_after}".split("\n")


def _indent_document(document: str) -> str:
    return "\n".join(f"    {document_line}" for document_line in document.split("\n"))


def _render_json_lines(printable: PrintableResult, style: TextStyle) -> Iterator[str]:
    yield compact_json({"kind": "metadata"} | printable.metadata())
    yield from map(compact_json, _iter_rows(printable.table))


def _render_ndjson(printable: PrintableResult, style: TextStyle) -> Iterator[str]:
    return map(compact_json, _iter_rows(printable.table))


def _render_csv(printable: PrintableResult, style: TextStyle) -> Iterator[str]:
    yield ",".join(map(_quote_csv_field, printable.table.column_names))
    for row in _iter_csv_rows(printable.table):
        csv_fields = (
            style.csv_null if value is None else _quote_csv_field(_value_text(value), ("", style.csv_null))
            for value in row.values()
        )
        yield ",".join(csv_fields)


def _iter_csv_rows(table: "pa.Table | PlainRows") -> Iterator[Mapping[str, Any]]:
    if isinstance(table, PlainRows):
        return iter(table.json_rows)
    from omnigraph.api.results.short_floats import iter_short_rows

    return iter_short_rows(table)


def _quote_csv_field(field_text: str, null_texts: Sequence[str] = ()) -> str:
    """Quote text that contains special characters, or that would be read as null without the quotes."""
    if field_text in null_texts or any(special_character in field_text for special_character in ',"\r\n'):
        return '"' + field_text.replace('"', '""') + '"'
    return field_text


# For people ---------------------------------------------------------------------------------


def _render_blocks(printable: PrintableResult, style: TextStyle) -> Iterator[str]:
    yield printable.headline()
    if not printable.table.num_rows:
        yield "(no rows)"
    for row_number, row in enumerate(_iter_rows(printable.table), 1):
        if row_number > 1:
            yield ""
        yield f"row {row_number}"
        yield from (f"{format_cell(column_name)}: {format_cell(value)}" for column_name, value in row.items())


def _render_table(printable: PrintableResult, style: TextStyle) -> Iterator[str]:
    yield printable.headline()
    yield from render_grid(printable.table, style)


def render_grid(table: "pa.Table | PlainRows", style: TextStyle) -> Iterator[str]:
    """Yield a header line with the column names, a horizontal rule, and the aligned rows."""
    header_cells = [format_cell(column_name) for column_name in table.column_names]
    text_rows = [[format_cell(value) for value in row.values()] for row in _iter_rows(table)]
    column_widths = _column_widths([header_cells, *text_rows], style.max_column_width)
    yield from _render_row(header_cells, column_widths, style.layout)
    yield "-+-".join("-" * width for width in column_widths)
    yield from chain.from_iterable(_render_row(row, column_widths, style.layout) for row in text_rows)


def _column_widths(text_rows: Sequence[Sequence[str]], max_column_width: int) -> list[int]:
    width_limit = max(max_column_width, _MIN_COLUMN_WIDTH)
    return [min(width_limit, max(map(display_width, column_cells))) for column_cells in zip(*text_rows, strict=True)]


def _render_row(cell_texts: Sequence[str], column_widths: Sequence[int], layout: CellLayout) -> Iterator[str]:
    split_text = _wrap_text if layout == "wrap" else _truncate_text
    cell_lines = [split_text(cell_text, width) for cell_text, width in zip(cell_texts, column_widths, strict=True)]
    for line_index in range(max(map(len, cell_lines), default=0)):
        line_texts = (text_lines[line_index] if line_index < len(text_lines) else "" for text_lines in cell_lines)
        padded_texts = (
            line_text + " " * (width - display_width(line_text))
            for line_text, width in zip(line_texts, column_widths, strict=True)
        )
        yield " | ".join(padded_texts).rstrip()


def display_width(text: str) -> int:
    """Return the number of terminal columns that a string occupies.

    >>> display_width("ab"), display_width("日本")
    (2, 4)
    """
    if text.isascii():
        return len(text)
    return sum(map(character_width, _INVISIBLE_PARTS.sub("", text)))


def _truncate_text(text: str, width: int) -> list[str]:
    return [text] if display_width(text) <= width else [_split_at_width(text, width - 1)[0] + "…"]


def _wrap_text(text: str, width: int) -> list[str]:
    text_lines = []
    while display_width(text) > width:
        text_line, text = _split_at_width(text, width)
        text_lines.append(text_line)
    return [*text_lines, text]


def _split_at_width(text: str, width: int) -> tuple[str, str]:
    """Split a string after the longest prefix that fits in `width` columns, but after at least one character."""
    split_index = min(len(text), width)
    while split_index > 1 and display_width(text[:split_index]) > width:
        split_index -= 1
    while split_index < len(text) and display_width(text[: split_index + 1]) <= width:
        split_index += 1
    return text[:split_index], text[split_index:]


def _render_markdown(printable: PrintableResult, style: TextStyle) -> Iterator[str]:
    yield _markdown_row(printable.table.column_names)
    yield _markdown_row(["---"] * printable.table.num_columns)
    for row in _iter_rows(printable.table):
        yield _markdown_row([_value_text(value) for value in row.values()])


def _markdown_row(cell_texts: Sequence[str]) -> str:
    escaped_cells = (format_cell(cell_text).replace("\\", "\\\\").replace("|", "\\|") for cell_text in cell_texts)
    return f"| {' | '.join(escaped_cells)} |"


_RENDERERS: dict[ResultFormat, Callable[[PrintableResult, TextStyle], Iterator[str]]] = {
    "json": _render_json,
    "jsonl": _render_json_lines,
    "ndjson": _render_ndjson,
    "csv": _render_csv,
    "kv": _render_blocks,
    "table": _render_table,
    "md": _render_markdown,
}
