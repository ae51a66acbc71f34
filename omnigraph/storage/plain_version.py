"""Read one manifest cell version from a local disk without Lance.

Importing Lance takes longer than most commands that read only the state of a branch. This module reads the version file
and its only data file if both look exactly as this package writes them. Otherwise, it returns None, so that the caller
falls back to Lance, which also reports damage. Callers must verify the checksum of the rows.
"""

import os
import re
import struct
import zlib
from collections.abc import Sequence
from typing import Any

from omnigraph.records.frozen import record

from .checksums import extract_manifest
from .layout import STAMP_KEY
from .plain_columns import Value, read_columns
from .protobuf import Members, get_bytes, get_number, parse_packed_numbers, parse_record

_MAX_VERSION = (1 << 64) - 1  # Lance names a version file by this number minus the version
_STEM_LENGTH = 20
_FOOTER = struct.Struct("<QHH4s")  # position of the manifest, format version, magic
_FOOTER_END = (0, 2, b"LANC")
# The member numbers in the records that Lance 14 writes for a manifest cell.
_MANIFEST_MEMBERS = {1, 2, 3, 5, 7, 9, 10, 11, 12, 13, 14, 15, 23}
_FRAGMENT_MEMBERS, _DATA_FILE_MEMBERS = {1, 2, 4, 5, 7, 9}, {1, 2, 3, 4, 5, 6}
_FIELD_CHECKSUMS = {0x5DDB8750, 0xEDAD1FC8}  # column records in which `metadata` is not compressed, or is (formerly)
_TRANSACTION_NAME = re.compile(rb"[0-9]+-[0-9a-f-]{36}\.txn")
_WRITER = re.compile(rb"\n\x05lance\x12[\x05-\x10][0-9]+\.[0-9]+\.[0-9]+")
_STABLE_ROW_IDS = 2  # the only feature flag that a cell has
_DATA_FORMAT = b"\n\x05lance\x12\x032.2"
_TEXT, _NUMBER = b"string", b"uint64"


@record
class PlainVersion:
    """One cell version: its number, its format stamp, its data file and its columns."""

    version: int
    stamp: str
    data_path: str
    columns: dict[str, list[Value]]

    def read_rows(self, column_names: Sequence[str]) -> list[dict[str, Any]]:
        """Return all rows in the order in which they were written."""
        values = zip(*(self.columns[column_name] for column_name in column_names), strict=True)
        return [dict(zip(column_names, row, strict=True)) for row in values]


def read_plain_version(cell_directory: str, version: int | None, column_names: Sequence[str]) -> PlainVersion | None:
    """Read some columns of a version (by default the newest), or return None if the version must be read with Lance."""
    try:
        if version is None:
            version = _find_newest_version(cell_directory)
        return _read_version(cell_directory, version, column_names)
    except (OSError, ValueError, LookupError, TypeError, struct.error):
        return None


def _find_newest_version(cell_directory: str) -> int:
    entry_names = os.listdir(f"{cell_directory}/_versions")  # noqa: PTH208 - names alone
    stems = [name.removesuffix(".manifest") for name in entry_names if name.endswith(".manifest")]
    if not stems or not all(len(stem) == _STEM_LENGTH and stem.isdecimal() for stem in stems):
        raise ValueError("the directory contains unexpected files")
    return _MAX_VERSION - int(min(stems))


def _read_version(cell_directory: str, version: int, column_names: Sequence[str]) -> PlainVersion | None:
    file_bytes = _read_file(f"{cell_directory}/_versions/{_MAX_VERSION - version:020}.manifest")
    manifest = parse_record(extract_manifest(file_bytes))
    if _FOOTER.unpack(file_bytes[-16:])[1:] != _FOOTER_END or not _is_plain_manifest(manifest, version, file_bytes):
        return None
    fragment = parse_record(get_bytes(manifest, 2))
    data_file = parse_record(get_bytes(fragment, 2))
    data_path = get_bytes(data_file, 1).decode()
    if not _is_plain_fragment(fragment, data_file, version) or "/" in data_path:
        return None
    data_bytes = _read_file(f"{cell_directory}/data/{data_path}")
    if len(data_bytes) != get_number(data_file, 6):
        return None
    indexes, text_indexes = _find_columns(manifest, data_file, column_names)
    columns = dict(zip(column_names, read_columns(data_bytes, manifest[1], indexes, text_indexes), strict=True))
    if {len(values) for values in columns.values()} != {get_number(fragment, 4)}:
        return None
    return PlainVersion(version, _read_stamp(manifest), data_path, columns)


def _is_plain_manifest(manifest: Members, version: int, file_bytes: bytes) -> bool:
    """Return whether a version file is complete and contains only the parts that this module expects."""
    transaction_size, manifest_start = *struct.unpack_from("<I", file_bytes), _FOOTER.unpack(file_bytes[-16:])[0]
    return (
        manifest.keys() == _MANIFEST_MEMBERS
        and manifest[3] == [version]
        and (manifest[9], manifest[10]) == ([_STABLE_ROW_IDS], [_STABLE_ROW_IDS])
        and manifest[15] == [_DATA_FORMAT]
        and zlib.crc32(b"".join(manifest[1])) in _FIELD_CHECKSUMS  # type: ignore[arg-type]
        and all(len(manifest[number]) == 1 and isinstance(manifest[number][0], int) for number in (11, 14))
        and parse_record(get_bytes(manifest, 7)).keys() <= {1, 2}
        and _TRANSACTION_NAME.fullmatch(get_bytes(manifest, 12)) is not None
        and _WRITER.fullmatch(get_bytes(manifest, 13)) is not None
        # The transaction directly precedes the manifest.
        and manifest[23] == [0]
        and transaction_size + 4 == manifest_start
    )


def _is_plain_fragment(fragment: Members, data_file: Members, version: int) -> bool:
    """Return whether a fragment has no deleted rows, no overlays, and no file outside the cell."""
    row_count = get_number(fragment, 4)
    id_range = _parse_nested(get_bytes(fragment, 5), 2)
    created, updated = (_parse_nested(get_bytes(fragment, number), 1) for number in (7, 9))
    return (
        fragment.keys() <= _FRAGMENT_MEMBERS
        and data_file.keys() == _DATA_FILE_MEMBERS
        and (data_file[4], data_file[5]) == ([2], [2])
        and id_range.keys() <= {1, 2}
        and get_number(id_range, 2) - get_number(id_range, 1) == row_count
        # All rows were created by this version.
        and created == updated
        and created.keys() == {1, 2}
        and _parse_nested(get_bytes(created, 1), 1) == {2: [row_count]}
        and get_number(created, 2) == version
    )


def _parse_nested(record_bytes: bytes, depth: int) -> Members:
    """Return a record nested `depth` levels deep in other records, each of which contains only the next record."""
    members = parse_record(record_bytes)
    for _ in range(depth):
        if members.keys() != {1}:
            raise ValueError("the record contains unexpected members")
        members = parse_record(get_bytes(members, 1))
    return members


def _find_columns(manifest: Members, data_file: Members, column_names: Sequence[str]) -> tuple[list[int], set[int]]:
    """Return the positions of the columns in the data file, and which of these positions contain text."""
    fields = {}
    for field_record in manifest[1]:
        field = parse_record(field_record)  # type: ignore[arg-type]
        if get_number(field, 4) == _MAX_VERSION:  # a top-level column has no parent
            fields[get_bytes(field, 2).decode()] = get_number(field, 3), get_bytes(field, 5)
    field_ids, positions = (parse_packed_numbers(get_bytes(data_file, member)) for member in (2, 3))
    index_by_field = dict(zip(field_ids, positions, strict=True))
    columns = [fields[column_name] for column_name in column_names]
    if not {logical_type for _, logical_type in columns} <= {_TEXT, _NUMBER}:
        raise ValueError("a column has an unexpected type")
    indexes = [index_by_field[field_id] for field_id, _ in columns]
    return indexes, {index_by_field[field_id] for field_id, logical_type in columns if logical_type == _TEXT}


def _read_stamp(manifest: Members) -> str:
    metadata = parse_record(get_bytes(manifest, 5))  # only the stamp
    if metadata.keys() != {1, 2} or get_bytes(metadata, 1) != STAMP_KEY.encode():
        raise ValueError("the metadata contains unexpected members")
    return get_bytes(metadata, 2).decode()


def _read_file(file_path: str) -> bytes:
    with open(file_path, "rb") as file:  # noqa: PTH123 - a path object costs more than the read
        return file.read()
