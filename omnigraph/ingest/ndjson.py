"""Strict NDJSON: one object per line, no duplicate members at any depth, and sizes within limits.

This module defines what a valid line is. The JSON parser silently keeps the last of two members
with the same name; counting colons quickly identifies lines without duplicates, so only the other
lines are parsed twice.
"""

import json
import re
from collections.abc import Iterable, Iterator
from typing import Any

import orjson

from omnigraph.errors import ClientError, InputError

from .fast_ndjson import take_block
from .files import split_block
from .load_limits import LoadLimits, check_limit
from .record_envelope import take_record, with_line_number
from .record_intake import Intake

_STRING_LITERAL = re.compile(rb'"(?:[^"\\]|\\.)*"', re.DOTALL)
_STRUCTURAL_BYTES = b"{}[],:"
_NOT_NDJSON_HINT = "expected NDJSON, one object per line; pass a CSV file with its type, Type=file.csv"
_CHECK_EVERY_LINES = 20_000  # lines between two checks for problems


def read_blocks(
    intake: Intake, blocks: Iterable[bytes], *, allow_truncate: bool, report_all: bool, first_number: int = 1
) -> Iterator[int]:
    """Take blocks of lines numbered from `first_number`; yield the next number after each block.

    A block of ordinary records is processed as a whole, and any other block line by line. Without
    `report_all`, the first problem is raised.
    """
    next_number = first_number
    for block in blocks:
        if not take_block(intake, block, next_number):
            lines = split_block(block, intake.limits.line_bytes)
            opening_number = first_number if next_number == first_number else None
            read_lines(intake, lines, next_number, opening_number, allow_truncate=allow_truncate, report_all=report_all)
        next_number += block.count(b"\n") + 1
        yield next_number


def read_lines(
    intake: Intake,
    lines: Iterable[bytes],
    first_number: int = 1,
    opening_number: int | None = 1,
    *,
    allow_truncate: bool,
    report_all: bool,
) -> None:
    """Take lines numbered from `first_number`; `opening_number` is the first line of the input."""
    for line_number, line in enumerate(lines, first_number):
        try:
            record = parse_line(line, intake.limits)
        except ClientError as error:
            if line_number == opening_number and not line.lstrip().startswith((b"{", b"[")):
                error.hint = _NOT_NDJSON_HINT
            intake.problems.add(with_line_number(error, line_number), line_number, unreadable_line=line)
        else:
            if record is not None:
                take_record(intake, line_number, record, allow_truncate=allow_truncate)
        if not report_all and (intake.problems.collected or not line_number % _CHECK_EVERY_LINES):
            intake.flush()
            intake.problems.raise_first()


def parse_line(line: bytes, limits: LoadLimits) -> Any:
    """Return the object in a line, or None for a blank line.

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
    if line.count(b":") != _count_members(record) and not _accounts_for_colons(line, record):
        _reject_duplicate_members(line)
    return record


def _check_size(line: bytes, limits: LoadLimits) -> None:
    check_limit("graph_batch_line_bytes", len(line), limits.line_bytes)
    slot_count = sum(line.count(structural_byte) for structural_byte in _STRUCTURAL_BYTES) + 1
    if slot_count > limits.slots:
        structure_only = _STRING_LITERAL.sub(b"", line)
        slot_count = sum(structure_only.count(structural_byte) for structural_byte in _STRUCTURAL_BYTES) + 1
        check_limit("graph_batch_json_structural_slots", slot_count, limits.slots)


def _count_members(record: Any) -> int:
    """Count the members of an ordinary record: an object with one nested object."""
    if type(record) is not dict:
        return 0
    properties = record.get("data")
    return len(record) + (len(properties) if type(properties) is dict else 0)


def _accounts_for_colons(line: bytes, record: Any) -> bool:
    """Return whether every colon of an ordinary record belongs to a member or to a string.

    Each member has one colon outside of strings. Without escapes, all other colons are inside
    string values; if the parsed record accounts for every colon, no member was dropped.
    """
    if b"\\" in line or type(record) is not dict:
        return False
    colon_count = len(record)
    for member_value in record.values():
        if type(member_value) is str:
            colon_count += member_value.count(":")
        elif type(member_value) is dict:
            colon_count += len(member_value)
            for property_value in member_value.values():
                if type(property_value) is str:
                    colon_count += property_value.count(":")
    return colon_count == line.count(b":")


def _reject_duplicate_members(line: bytes) -> None:
    """Raise an error if a member occurs twice, at any depth."""
    try:
        json.loads(line, object_pairs_hook=_require_distinct_members)
    except _DuplicateMemberError as duplicate:
        reason = f"member '{duplicate.member_name}' is given twice"
        raise InputError(reason=reason, member=duplicate.member_name) from None
    except RecursionError:
        raise InputError(reason="the JSON is nested too deeply") from None


class _DuplicateMemberError(Exception):
    def __init__(self, member_name: str) -> None:
        self.member_name = member_name


def _require_distinct_members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        seen_names: set[str] = set()
        for member_name, _ in pairs:
            if member_name in seen_names:
                raise _DuplicateMemberError(member_name)
            seen_names.add(member_name)
    return members
