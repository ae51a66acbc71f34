"""Restore the names of files and the numbers of lines in errors about the parts of a load.

A server knows the files of a form only by their numbers, and counts lines from the start of the piece that it received.
This module replaces both, so that an error reads as if the files had been loaded directly.
"""

import re
from collections.abc import Callable, Sequence
from typing import Any

from omnigraph.errors import OmnigraphError
from omnigraph.records.frozen import record

_FILE = re.compile(r"<(?:file (\d+)|body)>(: )?")
_LINE = re.compile(r"\bline (\d+)\b")
_POSITIONS = ("line", "first_input_position", "second_input_position")
LineNumbers = Callable[[int], int]


def _same_line(line_number: int) -> int:
    return line_number


@record(eq=False)
class SentFile:
    """A file in a request: its name on this machine, and a function that maps its line numbers to the original ones."""

    label: str | None
    line_number: LineNumbers = _same_line


def restore_positions(error: OmnigraphError, files: Sequence[SentFile], *, names_files: bool) -> None:
    """Put the original file names and line numbers into an error and its problems.

    The name of a file precedes a message only if `names_files` is set, because a load of a single file needs no name.
    """
    file = _find_file(error.message, files)
    error.message = _restore_text(error.message, files, file)
    if error.hint is not None:
        error.hint = _restore_names(error.hint, files)
    if names_files and file.label is not None and error.message.startswith(f"{file.label}: "):
        _set_fact(error, "file", file.label)
    for name in _POSITIONS:
        if isinstance(error.details.get(name), int):
            _set_fact(error, name, file.line_number(error.details[name]))
    for problem in error.details.get("problems", ()):
        _restore_problem(problem, files)


def _restore_problem(problem: dict[str, Any], files: Sequence[SentFile]) -> None:
    file = _find_file(str(problem.get("file") or ""), files)
    if isinstance(problem.get("line"), int):
        problem["line"] = file.line_number(problem["line"])
    problem["reason"] = _restore_text(str(problem.get("reason", "")), files, file)
    problem["file"] = file.label


def _find_file(text: str, files: Sequence[SentFile]) -> SentFile:
    match = _FILE.search(text)
    number = 1 if match is None or match[1] is None else int(match[1])
    return files[number - 1] if 0 < number <= len(files) else files[0]


def _restore_text(text: str, files: Sequence[SentFile], file: SentFile) -> str:
    return _LINE.sub(lambda match: f"line {file.line_number(int(match[1]))}", _restore_names(text, files))


def _restore_names(text: str, files: Sequence[SentFile]) -> str:
    def name_file(match: re.Match[str]) -> str:
        label = _find_file(match[0], files).label
        return "" if label is None else f"{label}{match[2] or ''}"

    return _FILE.sub(name_file, text)


def _set_fact(error: OmnigraphError, name: str, value: Any) -> None:
    error.details[name] = value
    if hasattr(type(error), name):
        setattr(error, name, value)
