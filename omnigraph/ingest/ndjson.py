"""Strict NDJSON: one object per line, no duplicate members at any depth, sizes within limits.

Owns what a valid line is. The JSON parser silently keeps the last of two members with the same
name; counting colons quickly identifies lines without duplicates, so only others are parsed twice.
"""

import json
import re
from collections.abc import Iterable, Iterator
from typing import Any

import orjson

from omnigraph.errors import ClientError, InputError

from .envelope import placed, take
from .files import lines_of_block
from .intake import Intake
from .limits import LoadLimits, within
from .quick import take_block

_STRINGS = re.compile(rb'"(?:[^"\\]|\\.)*"', re.DOTALL)
_STRUCTURE = b"{}[],:"
_NO_JSON = "expected NDJSON, one object per line; pass a CSV file with its type, Type=file.csv"
_CHUNK = 20_000  # lines between two checks for problems


def read_blocks(
    intake: Intake, blocks: Iterable[bytes], *, truncating: bool, report: bool, first: int = 1
) -> Iterator[int]:
    """Take blocks of lines numbered from `first_number`; yield the next number after each block.

    A block of ordinary records is taken at once, any other line by line. Without `report_all`, the
    first problem is raised.
    """
    start = first
    for block in blocks:
        if not take_block(intake, block, start):
            lines = lines_of_block(block, intake.limits.line_bytes)
            opening = first if start == first else None
            read_lines(intake, lines, start, opening, truncating=truncating, report=report)
        start += block.count(b"\n") + 1
        yield start


def read_lines(
    intake: Intake,
    lines: Iterable[bytes],
    first: int = 1,
    opening: int | None = 1,
    *,
    truncating: bool,
    report: bool,
) -> None:
    """Take lines numbered from `first_number`; `opening_number` is the first line of the input."""
    for number, line in enumerate(lines, first):
        try:
            record = parse_line(line, intake.limits)
        except ClientError as error:
            if number == opening and not line.lstrip().startswith((b"{", b"[")):
                error.hint = _NO_JSON
            intake.problems.add(placed(error, number), number, text=line)
        else:
            if record is not None:
                take(intake, number, record, truncating=truncating)
        if not report and (intake.problems.found or not number % _CHUNK):
            intake.flush()
            intake.problems.raise_first()


def parse_line(line: bytes, limits: LoadLimits) -> Any:
    """Return the object of a line, or None for a blank line.

    >>> parse_line(b'{"type": "A", "data": {"x": 1}}', LoadLimits())
    {'type': 'A', 'data': {'x': 1}}
    """
    if len(line) > limits.slots or len(line) > limits.line_bytes:
        _check_size(line, limits)
    try:
        record = orjson.loads(line)
    except orjson.JSONDecodeError as error:
        if not line.strip(b" \t\r\n"):
            return None
        raise InputError(reason=f"malformed JSON: {error.msg} at column {error.colno}") from None
    if record is None:
        raise InputError(reason="expected one JSON object, got null")
    if line.count(b":") != _members(record) and not _accounted(line, record):
        _check_members(line)
    return record


def _check_size(line: bytes, limits: LoadLimits) -> None:
    within("graph_batch_line_bytes", len(line), limits.line_bytes)
    count = sum(line.count(mark) for mark in _STRUCTURE) + 1
    if count > limits.slots:
        bare = _STRINGS.sub(b"", line)
        count = sum(bare.count(mark) for mark in _STRUCTURE) + 1
        within("graph_batch_json_structural_slots", count, limits.slots)


def _members(record: Any) -> int:
    """Count the members of an ordinary record: an object with one nested object."""
    if type(record) is not dict:
        return 0
    data = record.get("data")
    return len(record) + (len(data) if type(data) is dict else 0)


def _accounted(line: bytes, record: Any) -> bool:
    """Return whether every colon of an ordinary record belongs to a member or to a string.

    Each member has one colon outside of strings. Without escapes, all other colons are inside
    string values: if the parsed record accounts for every colon, no member was dropped.
    """
    if b"\\" in line or type(record) is not dict:
        return False
    count = len(record)
    for value in record.values():
        if type(value) is str:
            count += value.count(":")
        elif type(value) is dict:
            count += len(value)
            for one in value.values():
                if type(one) is str:
                    count += one.count(":")
    return count == line.count(b":")


def _check_members(line: bytes) -> None:
    """Raise if a member occurs twice, at any depth."""
    try:
        json.loads(line, object_pairs_hook=_distinct)
    except _TwiceError as twice:
        reason = f"member '{twice.name}' is given twice"
        raise InputError(reason=reason, member=twice.name) from None
    except RecursionError:
        raise InputError(reason="the JSON is nested too deeply") from None


class _TwiceError(Exception):
    def __init__(self, name: str) -> None:
        self.name = name


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        seen: set[str] = set()
        for name, _ in pairs:
            if name in seen:
                raise _TwiceError(name)
            seen.add(name)
    return found
