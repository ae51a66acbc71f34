"""Strict NDJSON: one object per line, no duplicate members at any depth, and sizes within limits.

This module defines what a valid line is. If two members have the same name, the JSON parser silently keeps the last
one. Most lines without duplicates are recognized quickly by counting colons; only the other lines are parsed twice.
"""

import json
import re
from collections.abc import Iterable, Iterator
from typing import Any

import orjson

from omnigraph.errors import ClientError, InputError
from omnigraph.values.byte_order_mark import looks_like_unmarked_utf16

from .fast_ndjson import take_block
from .files import split_block
from .frames import RecordType, take_typed_record
from .load_limits import ROW_LIMIT_HINT, LoadLimits, check_limit
from .record_envelope import envelope_error, json_type_name, take_record, with_line_number
from .record_intake import Intake
from .streamed_blobs import has_markers
from .text_encoding import UNMARKED_UTF16_HINT

_STRING_LITERAL = re.compile(rb'"(?:[^"\\]|\\.)*"', re.DOTALL)
_STRUCTURAL_BYTES = b"{}[],:"
_NOT_NDJSON_HINT = "expected NDJSON, one object per line; pass a CSV file with its type, Type=file.csv"
_CHECK_EVERY_LINES = 20_000  # number of lines between two checks for problems


def read_blocks(
    intake: Intake,
    blocks: Iterable[bytes],
    *,
    allow_truncate: bool,
    report_all: bool,
    first_number: int = 1,
    record_type: RecordType | None = None,
) -> Iterator[int]:
    """Add blocks of lines to `intake`, numbering lines from `first_number`; yield the next number after each block.

    A block of ordinary records is processed as a whole, and any other block line by line. Without
    `report_all`, the first problem is raised. With `record_type`, records have no envelope.
    """
    next_number = first_number
    for block in blocks:
        if not _take_whole_block(intake, block, next_number, record_type):
            read_lines(
                intake,
                split_block(block, intake.limits.line_bytes),
                next_number,
                first_number if next_number == first_number else None,
                allow_truncate=allow_truncate,
                report_all=report_all,
                record_type=record_type,
            )
        next_number += block.count(b"\n") + 1
        yield next_number


def read_lines(  # noqa: PLR0913 - the last three are keywords
    intake: Intake,
    lines: Iterable[bytes],
    first_number: int = 1,
    opening_number: int | None = 1,
    *,
    allow_truncate: bool,
    report_all: bool,
    record_type: RecordType | None = None,
) -> None:
    """Add lines to `intake`, numbered from `first_number`; `opening_number` is the number of the input's first line."""
    for line_number, line in enumerate(lines, first_number):
        try:
            record = parse_line(line, intake.limits)
            if has_markers(line):
                record = intake.restore_blobs(record, has_envelope=record_type is None)
        except ClientError as error:
            if line_number == opening_number and not line.lstrip().startswith((b"{", b"[")):
                error.hint = UNMARKED_UTF16_HINT if looks_like_unmarked_utf16(line) else _NOT_NDJSON_HINT
            intake.problems.add(with_line_number(error, line_number), line_number, unreadable_line=line)
        else:
            if record is not None and record_type is not None:
                _take_typed(intake, record_type, line_number, record)
            elif record is not None:
                take_record(intake, line_number, record, allow_truncate=allow_truncate)
        if not report_all and (intake.problems.collected or not line_number % _CHECK_EVERY_LINES):
            intake.flush()
            intake.problems.raise_first()


def _take_whole_block(intake: Intake, block: bytes, first_number: int, record_type: RecordType | None) -> bool:
    if has_markers(block):
        return False
    if record_type is None:
        return take_block(intake, block, first_number)
    return not record_type.column_mapping and take_block(intake, block, first_number, record_type.entity_type)


def _take_typed(intake: Intake, record_type: RecordType, line_number: int, record: Any) -> None:
    """Add a record without an envelope; a record that has an envelope is reported with a hint."""
    entity_type = record_type.entity_type
    if type(record) is not dict:
        error = InputError(reason=f"expected one JSON object, got {json_type_name(record)}")
    elif record_type.is_envelope(record):
        error = envelope_error(entity_type.name, line_number)
    else:
        take_typed_record(intake, entity_type, line_number, record_type.with_stored_names(record))
        return
    intake.problems.add(with_line_number(error, line_number), line_number, entity_type.name)


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
        _reject_invalid_utf8(line)
        raise InputError(reason=f"malformed JSON: {error.msg} at column {error.colno}") from None
    if record is None:
        raise InputError(reason="expected one JSON object, got null")
    if line.count(b":") != _count_members(record) and not _accounts_for_colons(line, record):
        _reject_duplicate_members(line)
    return record


def _reject_invalid_utf8(line: bytes) -> None:
    """Raise an error that names the first invalid UTF-8 byte, because a JSON error would not show it."""
    try:
        line.decode()
    except UnicodeDecodeError as error:
        column = len(line[: error.start].decode()) + 1
        reason = f"byte 0x{line[error.start]:02x} at column {column} is not valid UTF-8"
        raise InputError(reason=reason, hint="save the file as UTF-8") from None


def _check_size(line: bytes, limits: LoadLimits) -> None:
    check_limit("graph_batch_line_bytes", len(line), limits.line_bytes, ROW_LIMIT_HINT)
    slot_count = sum(line.count(structural_byte) for structural_byte in _STRUCTURAL_BYTES) + 1
    if slot_count > limits.slots:
        structure_only = _STRING_LITERAL.sub(b"", line)
        slot_count = sum(structure_only.count(structural_byte) for structural_byte in _STRUCTURAL_BYTES) + 1
        check_limit("graph_batch_json_structural_slots", slot_count, limits.slots, ROW_LIMIT_HINT)


def _count_members(record: Any) -> int:
    """Count the members of an ordinary record: an object with one nested object."""
    if type(record) is not dict:
        return 0
    properties = record.get("data")
    return len(record) + (len(properties) if type(properties) is dict else 0)


def _accounts_for_colons(line: bytes, record: Any) -> bool:
    """Return whether every colon in an ordinary record belongs to a member or to a string.

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
        reason = f"member '{duplicate.member_name}' appears twice"
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
