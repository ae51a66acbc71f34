"""A progress bar on standard error, shown only on a terminal and only for long commands."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import click

from omnigraph.values import clock_and_ids

from .options import settings

_INITIAL_DELAY = 0.5  # seconds before the bar appears
_UPDATE_INTERVAL = 0.1
_WIDTH = 30


@contextmanager
def show_progress(label: str, *, hidden: bool = False) -> Iterator["ProgressBar"]:
    """Yield a callback that takes the completed amount and the total. The callback may be called frequently."""
    current_settings = settings()
    progress_bar = ProgressBar(
        label, silent=hidden or current_settings.quiet or current_settings.json or not sys.stderr.isatty()
    )
    try:
        yield progress_bar
    finally:
        progress_bar.clear()


class ProgressBar:
    """A progress line that is rewritten in place."""

    def __init__(self, label: str, *, silent: bool) -> None:
        self.label, self.silent = label, silent
        self.next_update, self.shown_width = clock_and_ids.monotonic() + _INITIAL_DELAY, 0

    def __call__(self, completed: int, total: int) -> None:
        """Show how much of the total is complete."""
        self._display_text(render_bar(self.label, completed, total))

    def step(self, step: Any) -> None:
        """Show the current step in a Spark load."""
        bar_text = render_bar(f"{self.label}: {step.name}", step.done, max(step.total, 1))
        self._display_text(f"{bar_text}  ~{step.rate:,.0f} rows/s" if step.rate >= 1 else bar_text)

    def show_text(self, text: str) -> None:
        """Show the current activity instead of a bar, for work whose total amount is unknown."""
        self._display_text(f"{self.label}: {text}")

    def clear(self) -> None:
        """Erase the line."""
        if self.shown_width:
            click.echo(f"\r{' ' * self.shown_width}\r", nl=False, err=True)
            self.shown_width = 0

    def _display_text(self, text: str) -> None:
        if not self.silent and clock_and_ids.monotonic() >= self.next_update:
            self.next_update = clock_and_ids.monotonic() + _UPDATE_INTERVAL
            self.shown_width = max(self.shown_width, len(text))
            click.echo(f"\r{text.ljust(self.shown_width)}", nl=False, err=True)


def render_bar(label: str, completed: int, total: int) -> str:
    """Render a bar of fixed length.

    >>> render_bar("copy", 1, 2)
    'copy [###############---------------]  50%'
    """
    fraction = min(1.0, completed / total) if total else 1.0
    filled = int(fraction * _WIDTH)
    return f"{label} [{'#' * filled}{'-' * (_WIDTH - filled)}] {fraction:4.0%}"
