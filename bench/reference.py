"""The recorded figures of the reference, a compiled graph database on Lance files that the benchmarks do not run.

`reference_figures.json` contains the figures and describes how they were recorded. If the reference gets slower as the
number of commits grows, the figure is a range: from the first hundred commits to about the 380th commit.
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
    """Return the milliseconds as text, by row title in `bench.table`."""
    milliseconds: dict[str, str] = _read_figures()["milliseconds"]
    return milliseconds


def reference_setting() -> str:
    """Return the version of the reference and a description of how its figures were recorded."""
    figures = _read_figures()
    return f"{figures['system']}: {figures['setting']}"
