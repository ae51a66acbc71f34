"""A result as text: table, key-value blocks, CSV, JSON, JSON lines, Markdown.

Owns what the command line prints and what `show()` shows. Characters that a terminal would act on
(control characters, bidirectional marks) are printed as escapes, never passed through.
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, Literal

import pyarrow as pa

from omnigraph.encode import json_rows

Form = Literal["table", "kv", "csv", "jsonl", "json", "md"]
Layout = Literal["truncate", "wrap"]
_NARROWEST = 8
_OBEYED = re.compile("[\x00-\x1f\x7f-\x9f\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069]")
_NAMED = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}


@dataclass(frozen=True, slots=True)
class Page:
    """Rows and where they come from."""

    table: pa.Table
    query_name: str
    target: Mapping[str, Any] = field(default_factory=lambda: {"branch": "main", "snapshot": None})
    commit_id: str | None = None

    def facts(self) -> dict[str, Any]:
        """Return the metadata of the rows."""
        return {
            "query_name": self.query_name,
            "target": dict(self.target),
            "row_count": self.table.num_rows,
            "columns": self.table.column_names,
            "graph_commit_id": self.commit_id,
        }

    def headline(self) -> str:
        """Return the headline, such as `2 rows from branch main via adults`."""
        count = self.table.num_rows
        kind, name = next((k, v) for k, v in self.target.items() if v is not None)
        return f"{count} row{'s'[: count != 1]} from {kind} {name} via {self.query_name}"


@dataclass(frozen=True, slots=True)
class Style:
    """How wide a table column may be, and the text of null in CSV."""

    widest: int = 80
    layout: Layout = "truncate"
    csv_null: str = "null"


def render(page: Page, form: Form, style: Style | None = None) -> Iterator[str]:
    """Yield the text of a result line by line, without line ends."""
    return _FORMS[form](page, style or Style())


def one_line(value: Any) -> str:
    r"""Return a JSON value as the text of a cell.

    >>> one_line(None), one_line([1, None]), one_line("two\nlines")
    ('null', '[1,null]', 'two\\nlines')
    """
    return _OBEYED.sub(_escaped, _text(value))


def _text(value: Any) -> str:
    return value if isinstance(value, str) else compact(value)


def compact(value: Any) -> str:
    """Return JSON on one line, without spaces."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _escaped(found: "re.Match[str]") -> str:
    mark = found.group()
    return _NAMED.get(mark) or (f"\\x{ord(mark):02x}" if ord(mark) < 256 else f"\\u{ord(mark):04x}")


# Machine formats ----------------------------------------------------------------------------


def _json(page: Page, style: Style) -> Iterator[str]:
    facts = page.facts() | {"rows": None}
    head, _, tail = json.dumps(facts, indent=2, ensure_ascii=False).rpartition("null")
    rows = (json.dumps(row, indent=2, ensure_ascii=False) for row in json_rows(page.table))
    first = next(rows, None)
    if first is None:
        yield from f"{head}[]{tail}".split("\n")
        return
    yield from f"{head}[".split("\n")
    before = first
    for row in rows:
        yield from (f"{_indented(before)},").split("\n")
        before = row
    yield from _indented(before).split("\n")
    yield from f"  ]{tail}".split("\n")


def _indented(text: str) -> str:
    return "\n".join(f"    {line}" for line in text.split("\n"))


def _jsonl(page: Page, style: Style) -> Iterator[str]:
    yield compact({"kind": "metadata"} | page.facts())
    yield from map(compact, json_rows(page.table))


def _csv(page: Page, style: Style) -> Iterator[str]:
    yield ",".join(map(_quoted, page.table.column_names))
    for row in json_rows(page.table):
        cells = (style.csv_null if v is None else _quoted(_text(v)) for v in row.values())
        yield ",".join(cells)


def _quoted(text: str) -> str:
    if any(mark in text for mark in ',"\r\n'):
        return '"' + text.replace('"', '""') + '"'
    return text


# For people ---------------------------------------------------------------------------------


def _kv(page: Page, style: Style) -> Iterator[str]:
    yield page.headline()
    if not page.table.num_rows:
        yield "(no rows)"
    for number, row in enumerate(json_rows(page.table), 1):
        if number > 1:
            yield ""
        yield f"row {number}"
        yield from (f"{one_line(name)}: {one_line(value)}" for name, value in row.items())


def _table(page: Page, style: Style) -> Iterator[str]:
    yield page.headline()
    yield from grid(page.table, style)


def grid(table: pa.Table, style: Style) -> Iterator[str]:
    """Yield the column names, a rule, and the rows in columns."""
    names = [one_line(name) for name in table.column_names]
    rows = [[one_line(value) for value in row.values()] for row in json_rows(table)]
    widths = _widths([names, *rows], style.widest)
    yield from _lines(names, widths, style.layout)
    yield "-+-".join("-" * width for width in widths)
    yield from chain.from_iterable(_lines(row, widths, style.layout) for row in rows)


def _widths(rows: Sequence[Sequence[str]], widest: int) -> list[int]:
    limit = max(widest, _NARROWEST)
    return [min(limit, max(map(cells, column))) for column in zip(*rows, strict=True)]


def _lines(row: Sequence[str], widths: Sequence[int], layout: Layout) -> Iterator[str]:
    split = _wrapped if layout == "wrap" else _truncated
    parts = [split(text, width) for text, width in zip(row, widths, strict=True)]
    for at in range(max(map(len, parts), default=0)):
        shown = (part[at] if at < len(part) else "" for part in parts)
        padded = (t + " " * (width - cells(t)) for t, width in zip(shown, widths, strict=True))
        yield " | ".join(padded).rstrip()


def cells(text: str) -> int:
    """Return how many terminal columns a text takes.

    >>> cells("ab"), cells("日本")
    (2, 4)
    """
    if text.isascii():
        return len(text)
    from rich.cells import cell_len

    return cell_len(text)


def _truncated(text: str, width: int) -> list[str]:
    return [text] if cells(text) <= width else [_fit(text, width - 1)[0] + "…"]


def _wrapped(text: str, width: int) -> list[str]:
    parts = []
    while cells(text) > width:
        part, text = _fit(text, width)
        parts.append(part)
    return [*parts, text]


def _fit(text: str, width: int) -> tuple[str, str]:
    """Split after the longest start that fits `width` columns, at least one character."""
    end = min(len(text), width)
    while end > 1 and cells(text[:end]) > width:
        end -= 1
    while end < len(text) and cells(text[: end + 1]) <= width:
        end += 1
    return text[:end], text[end:]


def _markdown(page: Page, style: Style) -> Iterator[str]:
    yield _md_row(page.table.column_names)
    yield _md_row(["---"] * page.table.num_columns)
    for row in json_rows(page.table):
        yield _md_row([_text(value) for value in row.values()])


def _md_row(texts: Sequence[str]) -> str:
    shown = (one_line(text).replace("\\", "\\\\").replace("|", "\\|") for text in texts)
    return f"| {' | '.join(shown)} |"


_FORMS: dict[Form, Callable[[Page, Style], Iterator[str]]] = {
    "json": _json,
    "jsonl": _jsonl,
    "csv": _csv,
    "kv": _kv,
    "table": _table,
    "md": _markdown,
}
