"""The notebook view of an explained plan: an indented table of operators, with bars for rows and times.

The card is static HTML that needs no scripts or external resources, and all text in it is escaped.
"""

from html import escape
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .explain import ExplainedPlan, ExplainedStep

_MAX_STEPS = 200
_MAX_DESCRIPTION_LENGTH = 300
_BAR_WIDTH = 90
_STYLE = (
    "<style>.og{font-family:sans-serif;font-size:90%;color-scheme:light dark}.og table{border-collapse:collapse}"
    ".og th,.og td{text-align:left;padding:2px 8px;border-bottom:1px solid #8884;vertical-align:middle}"
    ".og .r{text-align:right;white-space:nowrap}.og small{color:#888}.og .p{font-family:monospace}"
    ".og .b{display:inline-block;height:9px;border-radius:2px;margin-left:6px}"
    ".og .x{background:#4c8bf5aa}.og .m{background:#e8833aaa}</style>"
)


def explain_card(plan: "ExplainedPlan") -> str:
    """Return the plan as an HTML table; measured rows and times have bars that compare the operators."""
    is_measured = plan.rows is not None
    names = ["estimated rows", *(["rows", "ms"] if is_measured else [])]
    header = "<th>operator</th>" + "".join(f'<th class="r">{name}</th>' for name in names)
    most_rows = max((step.stats.rows for step in plan.steps if step.stats), default=0)
    most_millis = max((step.stats.milliseconds for step in plan.steps if step.stats), default=0.0)
    rows = "".join(_step_row(step, is_measured, most_rows, most_millis) for step in plan.steps[:_MAX_STEPS])
    hidden_count = len(plan.steps) - _MAX_STEPS
    hidden_note = f"; {hidden_count} more operators not shown" if hidden_count > 0 else ""
    table = f"<table><thead><tr>{header}</tr></thead><tbody>{rows}</tbody></table>"
    return f'<div class="og">{_STYLE}{table}<small>{escape(plan.headline[:200])}{hidden_note}</small></div>'


def _step_row(step: "ExplainedStep", is_measured: bool, most_rows: int, most_millis: float) -> str:
    description = escape(step.description[:_MAX_DESCRIPTION_LENGTH])
    cells = f'<td class="p" style="padding-left:{8 + 18 * step.depth}px">{description}</td>'
    cells += f'<td class="r">{step.estimated_rows:,}</td>'
    if is_measured and step.stats is not None:
        cells += _bar_cell(f"{step.stats.rows:,}", step.stats.rows / (most_rows or 1), "x")
        cells += _bar_cell(f"{step.stats.milliseconds:.2f}", step.stats.milliseconds / (most_millis or 1.0), "m")
    elif is_measured:
        cells += "<td></td><td></td>"
    return f"<tr>{cells}</tr>"


def _bar_cell(text: str, share: float, css_class: str) -> str:
    """Return a table cell with a number and a bar; the bars in a column are left-aligned."""
    width = max(1, round(share * _BAR_WIDTH)) if share > 0 else 0
    bar = f'<span class="b {css_class}" style="width:{width}px;margin-right:{_BAR_WIDTH - width}px"></span>'
    return f'<td class="r">{text}{bar}</td>'
