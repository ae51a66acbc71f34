"""How far a long command is, on standard error, on a terminal, and only when it takes long."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import click

from omnigraph import ids

from .options import settings

_PATIENCE = 0.5  # seconds before anything is shown
_EVERY = 0.1
_WIDTH = 30


@contextmanager
def progress(label: str, *, hidden: bool = False) -> Iterator[Callable[[int, int], None]]:
    """Something to call with what is done and how much there is, as often as one likes."""
    told = settings()
    silent = hidden or told.quiet or told.json or not sys.stderr.isatty()
    due, shown = ids.monotonic() + _PATIENCE, False

    def tell(done: int, total: int) -> None:
        nonlocal due, shown
        if not silent and ids.monotonic() >= due:
            due, shown = ids.monotonic() + _EVERY, True
            click.echo(f"\r{bar(label, done, total)}", nl=False, err=True)

    try:
        yield tell
    finally:
        if shown:
            click.echo(f"\r{' ' * (len(label) + _WIDTH + 10)}\r", nl=False, err=True)


def bar(label: str, done: int, total: int) -> str:
    """A bar of fixed length.

    >>> bar("copy", 1, 2)
    'copy [###############---------------]  50%'
    """
    part = min(1.0, done / total) if total else 1.0
    full = int(part * _WIDTH)
    return f"{label} [{'#' * full}{'-' * (_WIDTH - full)}] {part:4.0%}"
