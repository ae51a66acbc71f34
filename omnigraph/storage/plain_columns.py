"""Read the columns of a small Lance data file without Lance, whose import takes longer than most commands.

This module decodes only the encodings that Lance 14 uses for manifests. Each column has one page with strings or
unsigned numbers, which are stored plain, run-length encoded, bit-packed, as a constant, or with a small dictionary.
Anything else raises an exception, so that the caller falls back to Lance. Callers must verify the decoded values with a
checksum.
"""

import struct
from collections.abc import Iterator, Sequence
from typing import Any

from .plain_encodings import (
    VARIABLE,
    UnsupportedEncodingError,
    decode_dictionary,
    decode_levels,
    decode_values,
    parse_text_scalar,
)
from .protobuf import get_bytes, get_number, parse_packed_numbers, parse_record

Value = str | int | None
_FOOTER = struct.Struct("<QQQIIHH4s")  # ends with: number of columns, file format version, magic
_FILE_VERSION, _MAGIC = (2, 2), b"LANC"
_MINI_BLOCK, _CONSTANT, _FULL_ZIP = 1, 2, 3  # page layouts
_ALL_VALID, _NULLABLE, _NULL_LISTS = b"\x01", b"\x03", b"\x01\x04"  # meanings of definition levels
_COLUMN_ENCODING = b"\x12'\n%\n\x1f/lance.encodings.ColumnEncoding\x12\x02\n\x00"
_PAGE_LAYOUT = b"/lance.encodings21.PageLayout"
_ALIGNMENT = 8  # bytes
_MAX_VALUES = 100_000  # without this limit, a damaged count could exhaust the memory


def read_columns(
    file_bytes: bytes, field_records: Sequence[int | bytes], column_indexes: Sequence[int], string_columns: set[int]
) -> list[list[Value]]:
    """Return the values in the requested columns: strings for `string_columns`, and unsigned numbers for all others.

    `field_records` describe the columns that the file must contain. All other columns must contain only null lists.

    Raises `ValueError`, `LookupError`, `TypeError` or `struct.error` if the file is damaged or not supported.
    """
    pages = [_Page(file_bytes, column_record) for column_record in _read_column_records(file_bytes, field_records)]
    for index, page in enumerate(pages):
        if index not in column_indexes:
            page.require_null_lists()
    return [pages[index].read(is_text=index in string_columns) for index in column_indexes]


def _read_column_records(file_bytes: bytes, field_records: Sequence[int | bytes]) -> list[bytes]:
    """Return the metadata record for each column, after checking that nothing unexpected follows the column values."""
    footer_start = len(file_bytes) - _FOOTER.size
    position, offset_table, global_table, global_count, column_count, *version, magic = _FOOTER.unpack_from(
        file_bytes, footer_start
    )
    is_known = (tuple(version), magic, global_count) == (_FILE_VERSION, _MAGIC, 1)
    if not is_known or (offset_table + 16 * column_count, global_table + 16) != (global_table, footer_start):
        raise UnsupportedEncodingError
    column_records = []
    for column_offset in range(offset_table, global_table, 16):
        start, size = struct.unpack_from("<QQ", file_bytes, column_offset)
        if start != position:
            raise UnsupportedEncodingError
        position = start + size
        column_records.append(file_bytes[start:position])
    start, size = struct.unpack_from("<QQ", file_bytes, global_table)
    schema = parse_record(get_bytes(parse_record(file_bytes[start : start + size]), 1))
    if position != offset_table or not schema.keys() <= {1, 5} or schema[1] != field_records:
        raise UnsupportedEncodingError
    return column_records


class _Page:
    """The only page of a column."""

    def __init__(self, file_bytes: bytes, column_record: bytes) -> None:
        column = parse_record(column_record)
        page = parse_record(get_bytes(column, 2))
        if column.keys() != {1, 2} or get_bytes(column, 1) != _COLUMN_ENCODING or not page.keys() <= {1, 2, 3, 4}:
            raise UnsupportedEncodingError
        # A page whose values are all null has no buffers.
        offsets, sizes = (parse_packed_numbers(get_bytes(page, member)) if member in page else [] for member in (1, 2))
        self._buffers = [file_bytes[start : start + size] for start, size in zip(offsets, sizes, strict=True)]
        if any(len(buffer) != size for buffer, size in zip(self._buffers, sizes, strict=True)):
            raise UnsupportedEncodingError
        self._value_count = get_number(page, 3)
        if self._value_count > _MAX_VALUES:
            raise UnsupportedEncodingError
        # A page's encoding is nested: an `Encoding` contains a `DirectEncoding`, which contains an `Any`.
        encoding = parse_record(get_bytes(parse_record(get_bytes(parse_record(get_bytes(page, 4)), 2)), 1))
        if get_bytes(encoding, 1) != _PAGE_LAYOUT:
            raise UnsupportedEncodingError
        layouts = parse_record(get_bytes(encoding, 2))
        (self._layout,) = layouts
        self._members = parse_record(get_bytes(layouts, self._layout))

    def read(self, *, is_text: bool) -> list[Value]:
        """Return the values in the page."""
        readers = {_MINI_BLOCK: self._read_mini_blocks, _CONSTANT: self._read_constant, _FULL_ZIP: self._read_full_zip}
        values, levels = readers[self._layout](is_text)
        if len(values) != self._value_count or (levels and len(levels) != self._value_count):
            raise UnsupportedEncodingError
        decoded: list[Value] = [value.decode() if isinstance(value, bytes) else value for value in values]
        return [None if level else value for value, level in zip(decoded, levels, strict=True)] if levels else decoded

    def require_null_lists(self) -> None:
        """Raise an exception unless all values in the page are null lists."""
        count, levels_record = self._value_count, self._members.get(7)
        members = {5: [_NULL_LISTS], 7: levels_record, 8: levels_record, 9: [count], 10: [count]}
        if self._layout != _CONSTANT or self._members != members:
            raise UnsupportedEncodingError
        for buffer in self._buffers:
            decode_levels(get_bytes(self._members, 7), buffer, count)

    def _is_nullable(self, layers_member: int) -> bool:
        layers = get_bytes(self._members, layers_member)
        if layers not in (_ALL_VALID, _NULLABLE):
            raise UnsupportedEncodingError
        return layers == _NULLABLE

    # Mini-blocks --------------------------------------------------------------------------------

    def _read_mini_blocks(self, is_text: bool) -> tuple[Sequence[bytes | int], list[int]]:
        if not set(self._members) <= {2, 3, 4, 5, 6, 7, 9, 10} or get_number(self._members, 10) != 1:
            raise UnsupportedEncodingError  # repetition levels, or chunk sizes in two bytes
        if self._is_nullable(6) != (2 in self._members):
            raise UnsupportedEncodingError
        values: list[Any] = []
        levels: list[int] = []
        for chunk, count in self._iter_chunks():
            buffers, chunk_levels = self._split_chunk(chunk)
            values += self._decode_chunk(buffers, count, is_text)
            levels += chunk_levels
        if 4 not in self._members:
            return values, levels
        dictionary = decode_dictionary(
            get_bytes(self._members, 4), self._buffers[2], get_number(self._members, 5), is_text
        )
        return [dictionary[index] for index in values], levels

    def _iter_chunks(self) -> Iterator[tuple[bytes, int]]:
        """Yield the bytes of each chunk and the number of values in it."""
        size_words, position, remaining_count = self._buffers[0], 0, self._value_count
        for (size_word,) in struct.iter_unpack("<I", size_words):
            end = position + ((size_word >> 4) + 1) * _ALIGNMENT
            count = 1 << (size_word & 15) if size_word & 15 else remaining_count
            yield self._buffers[1][position:end], count
            position, remaining_count = end, remaining_count - count
        if position != len(self._buffers[1]) or remaining_count:
            raise UnsupportedEncodingError

    def _decode_chunk(self, buffers: Sequence[bytes], count: int, is_text: bool) -> Sequence[bytes | int]:
        has_dictionary = 4 in self._members
        values = decode_values(get_bytes(self._members, 3), buffers, count, is_text and not has_dictionary)
        if len(values) != count:
            raise UnsupportedEncodingError
        return values

    def _split_chunk(self, chunk: bytes) -> tuple[list[bytes], list[int]]:
        """Return the value buffers and the definition levels of a chunk."""
        has_levels, buffer_count = 2 in self._members, get_number(self._members, 7)
        header = struct.Struct(f"<H{'H' * has_levels}{buffer_count}I")
        level_count, *sizes = header.unpack_from(chunk)
        position, parts = _align(header.size), []
        for size in sizes:
            if position + size > len(chunk):
                raise UnsupportedEncodingError
            parts.append(chunk[position : position + size])
            position = _align(position + size)
        if not has_levels:
            return parts, []
        return parts[1:], decode_levels(get_bytes(self._members, 2), parts[0], level_count)

    # Other layouts ------------------------------------------------------------------------------

    def _read_constant(self, is_text: bool) -> tuple[Sequence[bytes | int], list[int]]:
        if not set(self._members) <= {5, 6}:
            raise UnsupportedEncodingError  # compressed levels
        nullable, count = self._is_nullable(5), self._value_count
        has_levels = len(self._buffers) >= 2  # the last two buffers are repetition and definition levels
        levels = list(struct.unpack(f"<{count}H", self._buffers[-1])) if has_levels and self._buffers[-1] else []
        value_buffers = self._buffers[:-2] if has_levels else self._buffers
        if 6 in self._members and not value_buffers and not is_text:
            return [int.from_bytes(get_bytes(self._members, 6), "little")] * count, levels
        if 6 not in self._members and value_buffers and is_text:
            return [parse_text_scalar(*value_buffers)] * count, levels
        if 6 in self._members or value_buffers or not nullable or levels:
            raise UnsupportedEncodingError
        return [0] * count, [1] * count  # all values are null

    def _read_full_zip(self, is_text: bool) -> tuple[list[bytes], list[int]]:
        """Read the layout that Lance uses for long strings, in which each string has a length prefix."""
        offsets = {VARIABLE: [b"\n\x04\n\x02\x08\x20"]}  # 32-bit, not compressed
        is_plain = set(self._members) == {4, 5, 6, 7, 8} and get_number(self._members, 4) == 32
        if not is_text or not is_plain or self._is_nullable(8) or parse_record(get_bytes(self._members, 7)) != offsets:
            raise UnsupportedEncodingError
        data, position, values = self._buffers[0], 0, []
        while position < len(data):
            start = position + 4
            position = start + int.from_bytes(data[position:start], "little")
            values.append(data[start:position])
        if position != len(data):
            raise UnsupportedEncodingError
        return values, []


def _align(position: int) -> int:
    return (position + _ALIGNMENT - 1) // _ALIGNMENT * _ALIGNMENT
