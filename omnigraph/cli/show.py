"""Output of results, findings and errors.

Results go to standard output, everything else to standard error. Machine-readable formats never
contain colors. Kept light: every command imports it.
"""

import json
import sys
from collections.abc import Iterable
from typing import Any

import click

from omnigraph.diagnostics import Diagnostic, Severity, Source, render

from .options import settings

_COLORS: dict[Severity, str] = {"error": "red", "warning": "yellow", "info": "cyan"}


def result(text: str) -> None:
    """Print a result for people."""
    click.echo(text, color=settings().color)


def document(value: Any) -> None:
    """Print one JSON document, indented by two spaces."""
    encoding = getattr(sys.stdout, "encoding", None) or ""
    plain = encoding.lower().replace("-", "") != "utf8"
    click.echo(json.dumps(value, indent=2, ensure_ascii=plain))


def verbatim(text: str) -> None:
    """Print the text of a file as it is, including escape sequences."""
    click.echo(text.encode("utf-8", "surrogateescape"), nl=False)


def problem(message: str, hint: str | None) -> None:
    """Print why a command failed, and what might help."""
    word = click.style("error", fg="red", bold=True)
    click.echo(f"{word}: {message}", err=True, color=settings().color)
    if hint:
        click.echo(f"hint: {hint}", err=True)


def note(text: str) -> None:
    """Print a note to standard error, unless `--quiet`."""
    if not settings().quiet:
        click.echo(text, err=True, color=settings().color)


def warnings(found: Iterable[object]) -> None:
    """Print warnings to standard error, unless `--quiet`."""
    word = click.style("warning", fg="yellow", bold=True)
    for one in found:
        note(f"{word}: {one}")


def findings(found: Iterable[Diagnostic], source: Source, *, err: bool = False) -> None:
    """Print findings with positions and carets, in the order of the text."""
    for one in sorted(found, key=lambda one: (one.start, one.end)):
        click.echo(colored(one, source), err=err, color=settings().color)


def colored(one: Diagnostic, source: Source) -> str:
    """Return a finding as colored text; click strips the colors if the terminal has none."""
    head, *picture = render(one, source).split("\n")
    place, _, rest = head.partition(f": {one.severity}")
    word = click.style(f"{one.severity}", fg=_COLORS[one.severity], bold=True)
    lines = [f"{click.style(place, bold=True)}: {word}{rest}"]
    lines += [_tinted(line, _COLORS[one.severity]) for line in picture]
    return "\n".join(lines)


def _tinted(line: str, color: str) -> str:
    head, bar, tail = line.partition(" | ")
    if bar and set(tail.strip()) == {"^"}:
        return head + bar + click.style(tail, fg=color, bold=True)
    return line


def summary(diagnostics: Iterable[Diagnostic]) -> str:
    """Count the findings by severity: `2 errors, 1 warning`.

    >>> summary([Diagnostic("no"), Diagnostic("hm", severity="warning")])
    '1 error, 1 warning'
    """
    found = [one.severity for one in diagnostics]
    kinds: tuple[Severity, ...] = ("error", "warning", "info")
    return ", ".join(count(found.count(k), k) for k in kinds if k in found) or "no findings"


def count(number: int, noun: str) -> str:
    """Return a number with its noun: `1 error`, `2 errors`.

    >>> count(2, "query")
    '2 queries'
    """
    if number == 1:
        return f"1 {noun}"
    if noun.endswith("ch"):
        return f"{number} {noun}es"
    return f"{number} {noun[:-1]}ies" if noun.endswith("ry") else f"{number} {noun}s"
