"""The recorded figures of the reference: a compiled graph database over Lance files that benchmarks here do not run.

The figures and the setting they were recorded in are in `reference_figures.json`. Where the reference slows down with
the number of commits, a figure is a range: from the first hundred commits to about the 380th.
"""

import json
from functools import cache
from pathlib import Path
from typing import Any

FIGURES_PATH = Path(__file__).parent / "reference_figures.json"


@cache
def _read_figures() -> dict[str, Any]:
    figures: dict[str, Any] = json.loads(FIGURES_PATH.read_text("utf-8"))
    return figures


def reference_milliseconds() -> dict[str, str]:
    """Return the milliseconds by the title of a row of `bench.table`, as text."""
    milliseconds: dict[str, str] = _read_figures()["milliseconds"]
    return milliseconds


def reference_setting() -> str:
    """Return the version of the reference and how its figures were recorded."""
    figures = _read_figures()
    return f"{figures['system']}: {figures['setting']}"
