"""Print results, findings and errors.

Results go to standard output, and everything else goes to standard error. Machine-readable formats never contain
colors. This module is kept small because every command imports it.
"""

import json
import sys
from collections.abc import Iterable
from typing import Any

import click

from omnigraph.errors.counts import format_count
from omnigraph.errors.diagnostics import Diagnostic, DiagnosticSeverity, SourceText, render

from .options import settings

count = format_count

_COLORS: dict[DiagnosticSeverity, str] = {"error": "red", "warning": "yellow", "info": "cyan"}


def result(text: str) -> None:
    """Print a result as text."""
    click.echo(text, color=settings().color)


def confirmation(text: str, *, preview: bool = False) -> None:
    """Print what a command changed, unless `--quiet` is set. A preview is a result, so it is always printed."""
    if preview or not settings().quiet:
        result(text)


def document(value: Any) -> None:
    """Print one JSON document, indented by two spaces."""
    encoding = getattr(sys.stdout, "encoding", None) or ""
    escape_non_ascii = encoding.lower().replace("-", "") != "utf8"
    click.echo(json.dumps(value, indent=2, ensure_ascii=escape_non_ascii))


def verbatim(text: str) -> None:
    """Print a file's text unchanged, including escape sequences."""
    click.echo(text.encode("utf-8", "surrogateescape"), nl=False)


def problem(message: str, hint: str | None) -> None:
    """Print why a command failed, and a hint if there is one."""
    label = click.style("error", fg="red", bold=True)
    click.echo(f"{label}: {message}", err=True, color=settings().color)
    if hint:
        click.echo(f"hint: {hint}", err=True)


def note(text: str) -> None:
    """Print a note to standard error, unless `--quiet` is set."""
    if not settings().quiet:
        click.echo(text, err=True, color=settings().color)


def warnings(messages: Iterable[object]) -> None:
    """Print warnings to standard error, unless `--quiet` is set."""
    label = click.style("warning", fg="yellow", bold=True)
    for message in messages:
        note(f"{label}: {message}")


def findings(diagnostics: Iterable[Diagnostic], source: SourceText, *, err: bool = False) -> None:
    """Print findings with positions and carets, in source order."""
    for diagnostic in sorted(diagnostics, key=lambda diagnostic: (diagnostic.start, diagnostic.end)):
        click.echo(colored_diagnostic(diagnostic, source), err=err, color=settings().color)


def colored_diagnostic(diagnostic: Diagnostic, source: SourceText) -> str:
    """Return a finding as colored text; click strips the colors if the terminal does not support them."""
    headline, *excerpt = render(diagnostic, source).split("\n")
    location, _, message = headline.partition(f": {diagnostic.severity}")
    severity_label = click.style(f"{diagnostic.severity}", fg=_COLORS[diagnostic.severity], bold=True)
    lines = [f"{click.style(location, bold=True)}: {severity_label}{message}"]
    lines += [_tint_carets(line, _COLORS[diagnostic.severity]) for line in excerpt]
    return "\n".join(lines)


def _tint_carets(line: str, color: str) -> str:
    gutter, separator, marked_text = line.partition(" | ")
    if separator and set(marked_text.strip()) == {"^"}:
        return gutter + separator + click.style(marked_text, fg=color, bold=True)
    return line


def summary(diagnostics: Iterable[Diagnostic]) -> str:
    """Count the findings by severity, as in `2 errors, 1 warning`.

    >>> summary([Diagnostic("no"), Diagnostic("hm", severity="warning")])
    '1 error, 1 warning'
    """
    severities = [diagnostic.severity for diagnostic in diagnostics]
    severity_order: tuple[DiagnosticSeverity, ...] = ("error", "warning", "info")
    return (
        ", ".join(count(severities.count(severity), severity) for severity in severity_order if severity in severities)
        or "no findings"
    )
