"""`omnigraph fmt`: canonical formatting of `.pg` and `.gq` files."""

from pathlib import Path
from typing import Any

import click

from omnigraph.diagnostics import Diagnostic, Source
from omnigraph.errors import LanguageError
from omnigraph.record import record

from . import exits, files, show
from .options import settings, shared_options

_NO_NEWLINE = "\\ No newline at end of file"  # as printed by `diff` and `patch`


@record
class Formatted:
    """The result for one file: `unchanged`, `formatted` or `error`."""

    source: Source
    path: str
    status: str
    text: str = ""
    diagnostics: tuple[Diagnostic, ...] = ()

    def to_json(self, *, written: bool) -> dict[str, Any]:
        """Return the JSON form; the status of a file that was not written is `would_change`."""
        found = [one.to_json() for one in self.diagnostics]
        status = "would_change" if self.status == "formatted" and not written else self.status
        facts = {"path": self.path, "status": status, "diagnostics": found}
        shown = self.path == files.STDIN and self.status != "error"
        return facts | ({"text": self.text} if shown else {})


@click.command()
@click.argument("paths", nargs=-1, required=True, type=click.Path(allow_dash=True))
@click.option("--check", is_flag=True, help="Do not write; exit 5 if a file would change")
@click.option("--diff", is_flag=True, help="Do not write; print the changes")
@click.option("--language", type=click.Choice(["pg", "gq"]), help="Language of standard input")
@shared_options
@click.pass_context
def fmt(
    context: click.Context, paths: tuple[str, ...], check: bool, diff: bool, language: str | None
) -> None:
    """Format schema (.pg) and query (.gq) files in place.

    A directory stands for all such files below it; `-` reads standard input and prints the result.
    Comments are kept, the meaning never changes, and files with errors are left alone.
    """
    files.once(*paths)
    done = [_format(path, language) for path in files.expand(paths, ".pg", ".gq")]
    for one in done:
        _deliver(one, write=not (check or diff), diff=diff)
    if settings().json:
        show.document({"files": [one.to_json(written=not (check or diff)) for one in done]})
    elif not diff:
        _summarise(done, check)
    context.exit(_exit_code(done, check))


def _format(path: str, language: str | None) -> Formatted:
    formatter = _formatter(path, language)
    try:
        source = files.read_source(path)
        text = formatter(source.text, source.name)
    except LanguageError as error:
        bad = error.source or Source(path, "")
        return Formatted(bad, path, "error", diagnostics=error.diagnostics)
    return Formatted(source, path, "unchanged" if text == source.text else "formatted", text)


def _formatter(path: str, language: str | None) -> Any:
    suffix: str | None = Path(path).suffix[1:]
    suffix = suffix if suffix in ("pg", "gq") else language
    if suffix == "pg":
        from omnigraph.lang.schema import format_schema

        return format_schema
    if suffix == "gq":
        from omnigraph.lang.query import format_queries

        return format_queries
    hint = "use --language pg or gq" if path == files.STDIN else "expected a .pg or .gq file"
    raise click.UsageError(f"unknown language of {path}: {hint}")


def _deliver(one: Formatted, *, write: bool, diff: bool) -> None:
    if one.status == "error":
        if not settings().json:
            show.findings(one.diagnostics, one.source, err=True)
    elif diff and one.status == "formatted" and not settings().json:
        show.verbatim(_difference(one))
    elif write and one.path == files.STDIN and not settings().json:
        show.verbatim(one.text)
    elif write and one.path != files.STDIN and one.status == "formatted":
        files.replace_text(one.path, one.text)


def _difference(one: Formatted) -> str:
    from difflib import unified_diff
    from io import StringIO

    before, after = (StringIO(text).readlines() for text in (one.source.text, one.text))
    found = unified_diff(before, after, one.path, f"{one.path} (formatted)")
    return "".join(line if line[-1] == "\n" else f"{line}\n{_NO_NEWLINE}\n" for line in found)


def _summarise(done: list[Formatted], check: bool) -> None:
    verb = "would change" if check else "formatted"
    for one in done:
        if one.status == "formatted" and one.path != files.STDIN:
            show.note(f"{verb}: {one.path}")
    same = sum(one.status == "unchanged" for one in done)
    if same and len(done) > 1:
        show.note(f"unchanged: {show.count(same, 'file')}")


def _exit_code(done: list[Formatted], check: bool) -> int:
    if any(one.status == "error" for one in done):
        return exits.FAILED
    changed = any(one.status == "formatted" for one in done)
    return exits.DIFFERENCES if check and changed else exits.OK
