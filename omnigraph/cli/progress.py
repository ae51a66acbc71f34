"""Progress bar on standard error, shown only on a terminal and only for long commands."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import click

from omnigraph import ids

from .options import settings

_PATIENCE = 0.5  # seconds before the bar appears
_EVERY = 0.1
_WIDTH = 30


@contextmanager
def progress(label: str, *, hidden: bool = False) -> Iterator["Teller"]:
    """Yield a callback that takes the amount done and the total; it may be called at any rate."""
    told = settings()
    teller = Teller(label, silent=hidden or told.quiet or told.json or not sys.stderr.isatty())
    try:
        yield teller
    finally:
        teller.clear()


class Teller:
    """One line that shows the progress and is rewritten in place."""

    def __init__(self, label: str, *, silent: bool) -> None:
        self.label, self.silent = label, silent
        self.due, self.width = ids.monotonic() + _PATIENCE, 0

    def __call__(self, done: int, total: int) -> None:
        """Show how much of the total is done."""
        self._show(bar(self.label, done, total))

    def step(self, one: Any) -> None:
        """Show the current step of a load on Spark."""
        shown = bar(f"{self.label}: {one.name}", one.done, max(one.total, 1))
        self._show(f"{shown}  ~{one.rate:,.0f} rows/s" if one.rate >= 1 else shown)

    def clear(self) -> None:
        """Erase the line."""
        if self.width:
            click.echo(f"\r{' ' * self.width}\r", nl=False, err=True)
            self.width = 0

    def _show(self, text: str) -> None:
        if not self.silent and ids.monotonic() >= self.due:
            self.due = ids.monotonic() + _EVERY
            self.width = max(self.width, len(text))
            click.echo(f"\r{text.ljust(self.width)}", nl=False, err=True)


def bar(label: str, done: int, total: int) -> str:
    """Render a bar of fixed length.

    >>> bar("copy", 1, 2)
    'copy [###############---------------]  50%'
    """
    part = min(1.0, done / total) if total else 1.0
    full = int(part * _WIDTH)
    return f"{label} [{'#' * full}{'-' * (_WIDTH - full)}] {part:4.0%}"
