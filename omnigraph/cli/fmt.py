"""`omnigraph fmt`: format `.pg` and `.gq` files in the canonical style."""

from pathlib import Path
from typing import Any

import click

from omnigraph.errors import LanguageError
from omnigraph.errors.diagnostics import Diagnostic, SourceText
from omnigraph.records.frozen import record

from . import exits, files, show
from .options import settings, shared_options

_NO_NEWLINE = "\\ No newline at end of file"  # as printed by `diff` and `patch`


@record
class FormattedFile:
    """The result of formatting one file; `status` is `unchanged`, `formatted` or `error`."""

    source: SourceText
    path: str
    status: str
    text: str = ""
    diagnostics: tuple[Diagnostic, ...] = ()

    def to_json(self, *, was_written: bool) -> dict[str, Any]:
        """Return the JSON form; a formatted file that was not written has the status `would_change`."""
        diagnostics = [diagnostic.to_json() for diagnostic in self.diagnostics]
        status = "would_change" if self.status == "formatted" and not was_written else self.status
        members = {"path": self.path, "status": status, "diagnostics": diagnostics}
        includes_text = self.path == files.STDIN and self.status != "error"
        return members | ({"text": self.text} if includes_text else {})


@click.command()
@click.argument("paths", nargs=-1, required=True, type=click.Path(allow_dash=True))
@click.option("--check", is_flag=True, help="Do not change any file; exit with code 5 if a file would change")
@click.option("--diff", is_flag=True, help="Print the changes without applying them")
@click.option("--language", type=click.Choice(["pg", "gq"]), help="Language of standard input")
@shared_options
@click.pass_context
def fmt(context: click.Context, paths: tuple[str, ...], check: bool, diff: bool, language: str | None) -> None:
    """Format schema (.pg) and query (.gq) files in place.

    A directory means all .pg and .gq files under it; `-` reads standard input and prints the result. Comments and
    meaning are preserved, and files with errors are left unchanged.
    """
    files.reject_repeated_stdin(*paths)
    formatted_files = [_format_file(path, language) for path in files.expand_directories(paths, ".pg", ".gq")]
    for formatted in formatted_files:
        _deliver_result(formatted, write=not (check or diff), diff=diff)
    if settings().json:
        show.document({"files": [formatted.to_json(was_written=not (check or diff)) for formatted in formatted_files]})
    elif not diff:
        _print_summary(formatted_files, check)
    context.exit(_exit_code(formatted_files, check))


def _format_file(path: str, language: str | None) -> FormattedFile:
    formatter = _choose_formatter(path, language)
    try:
        source = files.read_source(path)
        text = formatter(source.text, source.name)
    except LanguageError as error:
        error_source = error.source or SourceText(path, "")
        return FormattedFile(error_source, path, "error", diagnostics=error.diagnostics)
    return FormattedFile(source, path, "unchanged" if text == source.text else "formatted", text)


def _choose_formatter(path: str, language: str | None) -> Any:
    suffix: str | None = Path(path).suffix[1:]
    suffix = suffix if suffix in ("pg", "gq") else language
    if suffix == "pg":
        from omnigraph.lang.schema import format_schema

        return format_schema
    if suffix == "gq":
        from omnigraph.lang.query import format_queries

        return format_queries
    hint = "use --language pg or gq" if path == files.STDIN else "expected a .pg or .gq file"
    raise click.UsageError(f"cannot determine the language of {path}: {hint}")


def _deliver_result(formatted: FormattedFile, *, write: bool, diff: bool) -> None:
    if formatted.status == "error":
        if not settings().json:
            show.findings(formatted.diagnostics, formatted.source, err=True)
    elif diff and formatted.status == "formatted" and not settings().json:
        show.verbatim(_unified_diff(formatted))
    elif write and formatted.path == files.STDIN and not settings().json:
        show.verbatim(formatted.text)
    elif write and formatted.path != files.STDIN and formatted.status == "formatted":
        files.replace_text(formatted.path, formatted.text)


def _unified_diff(formatted: FormattedFile) -> str:
    from difflib import unified_diff
    from io import StringIO

    old_lines, new_lines = (StringIO(text).readlines() for text in (formatted.source.text, formatted.text))
    diff_lines = unified_diff(old_lines, new_lines, formatted.path, f"{formatted.path} (formatted)")
    return "".join(line if line[-1] == "\n" else f"{line}\n{_NO_NEWLINE}\n" for line in diff_lines)


def _print_summary(formatted_files: list[FormattedFile], check: bool) -> None:
    verb = "would change" if check else "formatted"
    for formatted in formatted_files:
        if formatted.status == "formatted" and formatted.path != files.STDIN:
            show.note(f"{verb}: {formatted.path}")
    unchanged_count = sum(formatted.status == "unchanged" for formatted in formatted_files)
    if unchanged_count and len(formatted_files) > 1:
        show.note(f"unchanged: {show.count(unchanged_count, 'file')}")


def _exit_code(formatted_files: list[FormattedFile], check: bool) -> int:
    if any(formatted.status == "error" for formatted in formatted_files):
        return exits.FAILED
    has_changes = any(formatted.status == "formatted" for formatted in formatted_files)
    return exits.DIFFERENCES if check and has_changes else exits.OK
