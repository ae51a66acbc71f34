"""The columns of a table as Lance records them, with field ids that this package assigns.

Lance assigns field ids itself, and reuses an id once no file has it any more. Here a schema is
built from the protobuf records of its fields, so that a field id means one column for ever.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from lance.schema import LanceSchema

_NAME, _ID, _PARENT, _NULLABLE = 2, 3, 4, 6  # member numbers in the record of a field
_ROOT = (1 << 64) - 1  # the parent id of a top-level column
_VARINT, _BYTES = 0, 2
Member = tuple[int, int, int | bytes]


@dataclass(frozen=True, slots=True)
class Column:
    """A column with all nested fields: the record of each, the column's own first."""

    parts: tuple[tuple[Member, ...], ...]

    @property
    def name(self) -> str:
        """The column name."""
        found = _get(self.parts[0], _NAME)
        return found.decode() if isinstance(found, bytes) else ""

    @property
    def ids(self) -> list[int]:
        """The field id of the column, and those of its nested fields."""
        return [_number(one, _ID) for one in self.parts]

    @property
    def nullable(self) -> bool:
        """Whether the column may be null."""
        return bool(_number(self.parts[0], _NULLABLE))

    def renamed(self, name: str) -> "Column":
        """Return the same column under another name."""
        return Column((_put(self.parts[0], _NAME, name.encode()), *self.parts[1:]))

    def loosened(self) -> "Column":
        """Return the same column, nullable."""
        return Column((_put(self.parts[0], _NULLABLE, 1), *self.parts[1:]))

    def numbered(self, first: int) -> "Column":
        """Return the same column with field ids from `first_id` on."""
        new = {old: first + at for at, old in enumerate(self.ids)}
        return Column(tuple(_placed(one, new) for one in self.parts))


def columns_of(schema: Any) -> list[Column]:
    """Return the columns of a Lance schema."""
    found: list[list[tuple[Member, ...]]] = []
    for record in schema.__reduce__()[1][1:]:
        part = tuple(_members(record))
        if _number(part, _PARENT) == _ROOT:
            found.append([])
        found[-1].append(part)
    return [Column(tuple(one)) for one in found]


def new_column(field: pa.Field, first: int) -> Column:
    """Build a column that no table has yet; it is stored as nullable, whatever the schema says.

    The same holds for every column that a later schema makes required: deleted rows stay in their
    files with their nulls, and Lance refuses to read a null in a column declared non-null.
    """
    made = columns_of(LanceSchema.from_pyarrow(pa.schema([field])))[0]
    return made.loosened().numbered(first)


def schema_of(like: Any, columns: Iterable[Column]) -> Any:
    """Build a Lance schema with these columns, and everything else as in `base_schema`."""
    make, (metadata, *_) = like.__reduce__()
    records = [_record(part) for one in columns for part in one.parts]
    return make(metadata, *records)


def _placed(part: tuple[Member, ...], new: dict[int, int]) -> tuple[Member, ...]:
    parent = _number(part, _PARENT)
    return _put(_put(part, _ID, new[_number(part, _ID)]), _PARENT, new.get(parent, _ROOT))


def _get(part: tuple[Member, ...], number: int) -> int | bytes | None:
    return next((value for one, _, value in part if one == number), None)


def _number(part: tuple[Member, ...], number: int) -> int:
    found = _get(part, number)
    return found if isinstance(found, int) else 0  # protobuf omits members that are zero


def _put(part: tuple[Member, ...], number: int, value: int | bytes) -> tuple[Member, ...]:
    wire = _VARINT if isinstance(value, int) else _BYTES
    others = (one for one in part if one[0] != number)
    return tuple(sorted([*others, (number, wire, value)], key=lambda one: one[0]))


def _members(record: bytes) -> Iterator[Member]:
    """Yield the members of a record in protobuf wire format."""
    at = 0
    while at < len(record):
        tag, at = _varint(record, at)
        number, at = _varint(record, at)
        if tag & 7 == _VARINT:
            yield tag >> 3, _VARINT, number
        elif tag & 7 == _BYTES:
            yield tag >> 3, _BYTES, record[at : at + number]
            at += number
        else:
            raise ValueError(f"a Lance field record has a member of wire type {tag & 7}")


def _record(part: tuple[Member, ...]) -> bytes:
    made = bytearray()
    for number, wire, value in part:
        made += _spelled(number << 3 | wire)
        made += _spelled(value) if isinstance(value, int) else _spelled(len(value)) + value
    return bytes(made)


def _varint(record: bytes, at: int) -> tuple[int, int]:
    value, shift = 0, 0
    while True:
        byte = record[at]
        value, shift, at = value | (byte & 127) << shift, shift + 7, at + 1
        if not byte & 128:
            return value, at


def _spelled(value: int) -> bytes:
    made = bytearray()
    while value > 127:
        made.append(value & 127 | 128)
        value >>= 7
    made.append(value)
    return bytes(made)
