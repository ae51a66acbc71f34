"""Mechanical corrections for `omnigraph lint --fix`.

This module corrects misspelled names if the checker suggests the correct name, removes words that have no effect, and
formats the text. A correction is kept only if the text then has no more findings than before. If a correction
reveals other findings, these are corrected before the findings are counted: for example, the properties of a node are
checked only once the name of its type is correct.
"""

import re
from collections.abc import Callable, Iterator, Sequence

import click

from omnigraph.errors import LanguageError
from omnigraph.errors.diagnostics import Diagnostic, SourceText

from . import files, show

Linter = Callable[[str], Sequence[Diagnostic]]
_SUGGESTION = re.compile(r"did you mean `([^`]+)`\?")
_QUOTED_WORD = re.compile(r"`([^`]+)`")
_IGNORED_DIRECTION = re.compile(r"\s+(?:asc|desc)\Z")
_IGNORED_DIRECTION_CODE = "L207"
_MAX_FIXES = 1000


def fix_text(text: str, lint: Linter) -> tuple[str, int]:
    """Return the corrected text and the number of corrections.

    >>> def lint(text):
    ...     starts = [match.start() for match in re.finditer("Strin ", text)]
    ...     hint = "did you mean `String`?"
    ...     return [Diagnostic("unknown `Strin`", start=at, end=at + 5, hint=hint) for at in starts]
    >>> fix_text("a: Strin  b: Strin ", lint)
    ('a: String  b: String ', 2)
    """
    fix_count, seen_texts = 0, {text}
    while fix_count < _MAX_FIXES:
        text, diagnostics, reducing_count = _reduce_findings(text, lint, _MAX_FIXES - fix_count)
        revealed = _find_revealing_fix(text, diagnostics, lint, seen_texts)
        fix_count += reducing_count
        if revealed is None:
            break
        text, revealed_count = revealed
        fix_count += revealed_count
    return text, fix_count


def _reduce_findings(text: str, lint: Linter, limit: int) -> tuple[str, Sequence[Diagnostic], int]:
    """Apply corrections as long as each one reduces the number of findings."""
    fix_count, diagnostics = 0, lint(text)
    while fix_count < limit:
        for candidate in _iter_candidates(text, diagnostics):
            remaining = lint(candidate)
            if _weigh(remaining) < _weigh(diagnostics):
                text, diagnostics, fix_count = candidate, remaining, fix_count + 1
                break
        else:
            break
    return text, diagnostics, fix_count


def _find_revealing_fix(
    text: str, diagnostics: Sequence[Diagnostic], lint: Linter, seen_texts: set[str]
) -> tuple[str, int] | None:
    """Apply a correction that reveals other findings, and correct those as well.

    Return the text and the number of corrections, or None if each resulting text has more findings than before.
    `seen_texts` prevents two corrections that undo each other from alternating.
    """
    for candidate in _iter_candidates(text, diagnostics):
        if candidate in seen_texts:
            continue
        seen_texts.add(candidate)
        fixed_text, remaining, fix_count = _reduce_findings(candidate, lint, _MAX_FIXES)
        if _weigh(remaining) <= _weigh(diagnostics):
            return fixed_text, fix_count + 1
    return None


def fix_schema_file(path: str) -> None:
    """Correct and format a schema file in place."""
    from omnigraph.lang.schema import examine_schema, format_schema

    _fix_file(path, lambda text: examine_schema(text, path)[1], format_schema)


def fix_query_files(schema: SourceText, query_paths: Sequence[str]) -> None:
    """Correct and format query files in place; files are left unchanged if the schema has errors."""
    from omnigraph.lang.query import format_queries, lint_queries
    from omnigraph.lang.schema import examine_schema

    catalog, _ = examine_schema(schema.text, schema.name)
    if catalog is None:
        return
    for path in files.expand_directories(query_paths, ".gq"):
        _fix_file(path, lambda text, path=path: lint_queries(text, catalog, path).diagnostics, format_queries)  # type: ignore[misc]


def _fix_file(path: str, lint: Linter, formatter: Callable[[str, str], str]) -> None:
    if path == files.STDIN:
        raise click.UsageError("--fix rewrites files, so it cannot be used with standard input")
    try:
        original_text = files.read_source(path).text
    except LanguageError:
        return  # the check reports the error
    fixed_text, fix_count = fix_text(original_text, lint)
    fixed_text = format_text(fixed_text, formatter, path)
    if fixed_text != original_text:
        files.replace_text(path, fixed_text)
        corrections = f"{show.count(fix_count, 'correction')}, " if fix_count else ""
        show.note(f"fixed {path}: {corrections}formatted")


def format_text(text: str, formatter: Callable[[str, str], str], name: str) -> str:
    """Return the formatted text, or the text itself if it cannot be parsed."""
    try:
        return formatter(text, name)
    except LanguageError:
        return text


def _weigh(diagnostics: Sequence[Diagnostic]) -> tuple[int, int]:
    """Return the number of errors and the total number of findings; lower is better."""
    return sum(diagnostic.severity == "error" for diagnostic in diagnostics), len(diagnostics)


def _iter_candidates(text: str, diagnostics: Sequence[Diagnostic]) -> Iterator[str]:
    """Yield copies of the text, each with one correction applied."""
    for diagnostic in diagnostics:
        marked = text[diagnostic.start : diagnostic.end]
        suggestion = _SUGGESTION.fullmatch(diagnostic.hint or "")
        if diagnostic.code == _IGNORED_DIRECTION_CODE:
            corrected = _IGNORED_DIRECTION.sub("", marked)
        elif suggestion is not None and diagnostic.severity == "error":
            corrected = _replace_word(marked, suggestion[1], diagnostic.message)
        else:
            continue
        if corrected != marked:
            yield text[: diagnostic.start] + corrected + text[diagnostic.end :]


def _replace_word(marked: str, suggestion: str, message: str) -> str:
    """Replace the word that the message quotes, provided that the word occurs exactly once in the marked text."""
    quoted_words = [word for word in _QUOTED_WORD.findall(message) if len(re.findall(re.escape(word), marked)) == 1]
    return marked.replace(quoted_words[-1], suggestion) if quoted_words else marked
