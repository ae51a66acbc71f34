"""Render a migration plan as an HTML table for notebooks, with one row per step."""

from collections.abc import Iterable
from html import escape

from .describe_steps import describe_step
from .steps import MigrationStep, UnsupportedChange

_COLORS = {"safe": "#3ba55d33", "validated": "#c7a01f33", "destructive": "#d8403b33"}
_CELL_STYLE = "text-align:left;padding:2px 8px"


def plan_table(steps: Iterable[MigrationStep]) -> str:
    """Return the steps as a table. Steps that cannot be applied are marked as refused."""
    rows = "".join(_step_row(step) for step in steps)
    if not rows:
        return "<p>nothing to change</p>"
    header = "".join(f'<th style="{_CELL_STYLE}">{name}</th>' for name in ("change", "tier", "code"))
    return f"<table><thead><tr>{header}</tr></thead><tbody>{rows}</tbody></table>"


def _step_row(step: MigrationStep) -> str:
    is_refused = isinstance(step, UnsupportedChange)
    tier = "refused" if is_refused else step.tier
    color = _COLORS["destructive" if is_refused else step.tier]
    description = describe_step(step).removesuffix(f" [{step.code}]")
    cells = (
        f'<td style="{_CELL_STYLE}">{escape(description)}</td>'
        f'<td style="{_CELL_STYLE};background:{color}">{tier}</td>'
        f'<td style="{_CELL_STYLE}">{escape(step.code or "")}</td>'
    )
    return f"<tr>{cells}</tr>"
