"""Table columns in the format that Lance uses, but with field ids assigned by this package.

By default, Lance assigns field ids, and reuses an id once no file contains a column with it. This module instead builds
a schema from the protobuf records of its fields, so that a field id always refers to the same column.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from lance.schema import LanceSchema

_NAME_MEMBER, _ID_MEMBER, _PARENT_MEMBER, _NULLABLE_MEMBER = (2, 3, 4, 6)  # protobuf member numbers in a field record
_NO_PARENT = (1 << 64) - 1  # the parent id of a top-level column
_VARINT_WIRE_TYPE, _BYTES_WIRE_TYPE = 0, 2
RecordMember = tuple[int, int, int | bytes]


@dataclass(frozen=True, slots=True)
class LanceColumn:
    """A column and its nested fields, with one record per field, starting with the column itself."""

    field_records: tuple[tuple[RecordMember, ...], ...]

    @property
    def name(self) -> str:
        """The column name."""
        name_bytes = _get_member(self.field_records[0], _NAME_MEMBER)
        return name_bytes.decode() if isinstance(name_bytes, bytes) else ""

    @property
    def field_ids(self) -> list[int]:
        """The field ids of the column and its nested fields."""
        return [_get_number(field_record, _ID_MEMBER) for field_record in self.field_records]

    @property
    def nullable(self) -> bool:
        """Whether the column may be null."""
        return bool(_get_number(self.field_records[0], _NULLABLE_MEMBER))

    def with_name(self, name: str) -> "LanceColumn":
        """Return the same column under a different name."""
        return LanceColumn((_set_member(self.field_records[0], _NAME_MEMBER, name.encode()), *self.field_records[1:]))

    def as_nullable(self) -> "LanceColumn":
        """Return the same column, but nullable."""
        return LanceColumn((_set_member(self.field_records[0], _NULLABLE_MEMBER, 1), *self.field_records[1:]))

    def with_field_ids(self, first_id: int) -> "LanceColumn":
        """Return the same column with field ids starting at `first_id`."""
        new_ids = {old_id: first_id + index for index, old_id in enumerate(self.field_ids)}
        return LanceColumn(tuple(_renumber_record(field_record, new_ids) for field_record in self.field_records))


def lance_columns(schema: Any) -> list[LanceColumn]:
    """Return the columns in a Lance schema."""
    records_by_column: list[list[tuple[RecordMember, ...]]] = []
    for record_bytes in schema.__reduce__()[1][1:]:
        field_record = tuple(_parse_members(record_bytes))
        if _get_number(field_record, _PARENT_MEMBER) == _NO_PARENT:
            records_by_column.append([])
        records_by_column[-1].append(field_record)
    return [LanceColumn(tuple(field_records)) for field_records in records_by_column]


def new_column(field: pa.Field, first_id: int) -> LanceColumn:
    """Build a new column, which is always stored as nullable, regardless of the schema.

    Even if a later schema makes the column required, the column stays nullable in storage. Deleted rows with nulls
    remain in their files, and Lance refuses to read a null in a column declared as non-null.
    """
    column = lance_columns(LanceSchema.from_pyarrow(pa.schema([field])))[0]
    return column.as_nullable().with_field_ids(first_id)


def build_lance_schema(base_schema: Any, columns: Iterable[LanceColumn]) -> Any:
    """Build a Lance schema with these columns, taking everything else from `base_schema`."""
    schema_constructor, (metadata, *_) = base_schema.__reduce__()
    record_bytes = [_encode_record(field_record) for column in columns for field_record in column.field_records]
    return schema_constructor(metadata, *record_bytes)


def _renumber_record(field_record: tuple[RecordMember, ...], new_ids: dict[int, int]) -> tuple[RecordMember, ...]:
    parent_id = _get_number(field_record, _PARENT_MEMBER)
    return _set_member(
        _set_member(field_record, _ID_MEMBER, new_ids[_get_number(field_record, _ID_MEMBER)]),
        _PARENT_MEMBER,
        new_ids.get(parent_id, _NO_PARENT),
    )


def _get_member(field_record: tuple[RecordMember, ...], member_number: int) -> int | bytes | None:
    return next((value for other_number, _, value in field_record if other_number == member_number), None)


def _get_number(field_record: tuple[RecordMember, ...], member_number: int) -> int:
    member_value = _get_member(field_record, member_number)
    return member_value if isinstance(member_value, int) else 0  # protobuf omits zero members


def _set_member(
    field_record: tuple[RecordMember, ...], member_number: int, value: int | bytes
) -> tuple[RecordMember, ...]:
    wire_type = _VARINT_WIRE_TYPE if isinstance(value, int) else _BYTES_WIRE_TYPE
    other_members = (member for member in field_record if member[0] != member_number)
    return tuple(sorted([*other_members, (member_number, wire_type, value)], key=lambda member: member[0]))


def _parse_members(record_bytes: bytes) -> Iterator[RecordMember]:
    """Yield the members of a record in the protobuf wire format."""
    position = 0
    while position < len(record_bytes):
        tag, position = _read_varint(record_bytes, position)
        value_or_length, position = _read_varint(record_bytes, position)
        if tag & 7 == _VARINT_WIRE_TYPE:
            yield tag >> 3, _VARINT_WIRE_TYPE, value_or_length
        elif tag & 7 == _BYTES_WIRE_TYPE:
            yield tag >> 3, _BYTES_WIRE_TYPE, record_bytes[position : position + value_or_length]
            position += value_or_length
        else:
            raise ValueError(f"a Lance field record has a member of unsupported wire type {tag & 7}")


def _encode_record(field_record: tuple[RecordMember, ...]) -> bytes:
    encoded = bytearray()
    for member_number, wire_type, value in field_record:
        encoded += _encode_varint(member_number << 3 | wire_type)
        encoded += _encode_varint(value) if isinstance(value, int) else _encode_varint(len(value)) + value
    return bytes(encoded)


def _read_varint(record_bytes: bytes, position: int) -> tuple[int, int]:
    value, shift = 0, 0
    while True:
        byte = record_bytes[position]
        value, shift, position = value | (byte & 127) << shift, shift + 7, position + 1
        if not byte & 128:
            return value, position


def _encode_varint(value: int) -> bytes:
    encoded = bytearray()
    while value > 127:
        encoded.append(value & 127 | 128)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)
