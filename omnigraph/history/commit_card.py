"""The notebook view of a commit: its metadata and the tables that it changed. All text is escaped."""

from html import escape
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .commit import Commit

_MAX_TABLES = 20
_MAX_TEXT_LENGTH = 200
_STYLE = (
    "<style>.og{font-family:sans-serif;font-size:90%;color-scheme:light dark}.og table{border-collapse:collapse}"
    ".og th,.og td{text-align:left;padding:2px 8px;border-bottom:1px solid #8884;vertical-align:top}"
    ".og .r{text-align:right}.og small{color:#888}.og code{font-size:100%}</style>"
)


def commit_card(commit: "Commit") -> str:
    """Return the commit as HTML."""
    facts = {
        "operation": commit.operation,
        "message": commit.message,
        "branch": commit.branch,
        "actor": commit.actor,
        "published": f"{commit.published:%Y-%m-%d %H:%M:%S} UTC",
        "parents": ", ".join(commit.parents) or None,
    }
    rows = "".join(f"<tr><th>{name}</th><td>{_text(value)}</td></tr>" for name, value in facts.items() if value)
    title = f"<b>Commit <code>{_text(commit.id)}</code></b>"
    return f'<div class="og">{_STYLE}{title}<table>{rows}</table>{_tables_html(commit)}</div>'


def _tables_html(commit: "Commit") -> str:
    if not commit.tables:
        return ""
    rows = "".join(
        f'<tr><td>{_text(str(table_key))}</td><td class="r">{"dropped" if entry is None else f"{entry.row_count:,}"}'
        "</td></tr>"
        for table_key, entry in sorted(commit.tables.items())[:_MAX_TABLES]
    )
    hidden_count = len(commit.tables) - _MAX_TABLES
    note = f"<small>{hidden_count} more tables not shown</small>" if hidden_count > 0 else ""
    return f'<table><thead><tr><th>changed table</th><th class="r">rows</th></tr></thead>{rows}</table>{note}'


def _text(value: str) -> str:
    return escape(value if len(value) <= _MAX_TEXT_LENGTH else f"{value[: _MAX_TEXT_LENGTH - 1]}…")
