"""Read the columns of a small Lance data file without Lance, whose import takes longer than most commands.

This module decodes only the encodings that Lance 14 chooses for manifests: strings and unsigned numbers in one page
per column, plain, run-length encoded, bit-packed, constant, or with a small dictionary. Everything else raises an
exception, so that the caller reads the file with Lance. A caller must verify the decoded values by a checksum.
"""

import struct
from collections.abc import Sequence
from itertools import pairwise

from .protobuf import Members, get_bytes, get_number, parse_packed_numbers, parse_record

Value = str | int | None
_FOOTER = struct.Struct("<QQQIIHH4s")  # ends with: number of columns, file format version, magic
_FILE_VERSION, _MAGIC = (2, 2), b"LANC"
_MINI_BLOCK, _CONSTANT, _FULL_ZIP = 1, 2, 3  # page layouts
_FLAT, _VARIABLE, _INLINE_BITPACKING, _RLE, _GENERAL = 1, 2, 5, 8, 10  # compressive encodings
_LZ4 = 1
_ALL_VALID, _NULLABLE = b"\x01", b"\x03"
_ALIGNMENT = 8  # bytes
_LANE_ORDER = (0, 4, 2, 6, 1, 5, 3, 7)  # order in which FastLanes packs the rows of a block
_PACKED_VALUES = 1024  # values per bit-packed block


class UnsupportedEncodingError(ValueError):
    """The file is not encoded in a way that this module reads."""


def read_columns(file_bytes: bytes, column_indexes: Sequence[int], string_columns: set[int]) -> list[list[Value]]:
    """Return the values of some columns: strings for `string_columns`, unsigned numbers for the others.

    Raises `ValueError`, `LookupError`, `TypeError` or `struct.error` if the file is damaged or not supported.
    """
    _, offset_table, _, _, column_count, *version, magic = _FOOTER.unpack_from(file_bytes, len(file_bytes) - 40)
    if tuple(version) != _FILE_VERSION or magic != _MAGIC or max(column_indexes) >= column_count:
        raise UnsupportedEncodingError
    columns = []
    for column_index in column_indexes:
        start, size = struct.unpack_from("<QQ", file_bytes, offset_table + 16 * column_index)
        columns.append(_Page(file_bytes, file_bytes[start : start + size]).read(is_text=column_index in string_columns))
    return columns


class _Page:
    """The only page of a column."""

    def __init__(self, file_bytes: bytes, column_record: bytes) -> None:
        page = parse_record(get_bytes(parse_record(column_record), 2))
        offsets, sizes = (parse_packed_numbers(get_bytes(page, member)) for member in (1, 2))
        self._buffers = [file_bytes[start : start + size] for start, size in zip(offsets, sizes, strict=True)]
        if any(len(buffer) != size for buffer, size in zip(self._buffers, sizes, strict=True)):
            raise UnsupportedEncodingError
        self._value_count = get_number(page, 3)
        # A page names its encoding in an `Encoding` with a `DirectEncoding` with an `Any`.
        encoding = parse_record(get_bytes(parse_record(get_bytes(parse_record(get_bytes(page, 4)), 2)), 1))
        layouts = parse_record(get_bytes(encoding, 2))
        (self._layout,) = layouts
        self._members = parse_record(get_bytes(layouts, self._layout))

    def read(self, *, is_text: bool) -> list[Value]:
        """Return the values of the page."""
        readers = {_MINI_BLOCK: self._read_mini_blocks, _CONSTANT: self._read_constant, _FULL_ZIP: self._read_full_zip}
        values, levels = readers[self._layout](is_text)
        if len(values) != self._value_count or (levels and len(levels) != self._value_count):
            raise UnsupportedEncodingError
        decoded: list[Value] = [value.decode() if isinstance(value, bytes) else value for value in values]
        return [None if level else value for value, level in zip(decoded, levels, strict=True)] if levels else decoded

    def _is_nullable(self, layers_member: int) -> bool:
        layers = get_bytes(self._members, layers_member)
        if layers not in (_ALL_VALID, _NULLABLE):
            raise UnsupportedEncodingError
        return layers == _NULLABLE

    # Mini-blocks --------------------------------------------------------------------------------

    def _read_mini_blocks(self, is_text: bool) -> tuple[list[bytes] | list[int], list[int]]:
        if not set(self._members) <= {2, 3, 4, 5, 6, 7, 9, 10} or get_number(self._members, 10) != 1:
            raise UnsupportedEncodingError  # repetition levels, or chunk sizes in two bytes
        if self._is_nullable(6) != (2 in self._members):
            raise UnsupportedEncodingError
        sizes, chunks = struct.unpack(f"<{len(self._buffers[0]) // 4}I", self._buffers[0]), self._buffers[1]
        (size_word,) = sizes  # several chunks need a larger state than any log tail
        if (size_word >> 4) + 1 != len(chunks) // _ALIGNMENT or size_word & 15:
            raise UnsupportedEncodingError
        buffers, levels = self._split_chunk(chunks)
        value_encoding = get_bytes(self._members, 3)
        if 4 not in self._members:
            return _decode_values(value_encoding, buffers, self._value_count, is_text), levels
        dictionary = _decode_dictionary(
            get_bytes(self._members, 4), self._buffers[2], get_number(self._members, 5), is_text
        )
        indexes = _decode_values(value_encoding, buffers, self._value_count, False)
        return [dictionary[index] for index in indexes], levels  # type: ignore[index, return-value]

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
        return parts[1:], _decode_levels(get_bytes(self._members, 2), parts[0], level_count)

    # Other layouts ------------------------------------------------------------------------------

    def _read_constant(self, is_text: bool) -> tuple[list[bytes] | list[int], list[int]]:
        if not set(self._members) <= {5, 6}:
            raise UnsupportedEncodingError  # compressed levels
        nullable, count = self._is_nullable(5), self._value_count
        *value_buffers, _, level_bytes = self._buffers if self._buffers else (b"", b"")
        levels = list(struct.unpack(f"<{count}H", level_bytes)) if level_bytes else []
        if 6 in self._members and not value_buffers and not is_text:
            number = int.from_bytes(get_bytes(self._members, 6), "little")
            return [number] * count, levels
        if value_buffers and is_text:
            return [_parse_text_scalar(*value_buffers)] * count, levels
        if value_buffers or not nullable or levels:
            raise UnsupportedEncodingError
        return [0] * count, [1] * count  # all values are null

    def _read_full_zip(self, is_text: bool) -> tuple[list[bytes], list[int]]:
        """Read strings that each follow their length; Lance uses this layout for long strings."""
        offsets = {_VARIABLE: [b"\n\x04\n\x02\x08\x20"]}  # 32-bit, not compressed
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


def _decode_values(
    encoding_record: bytes, buffers: Sequence[bytes], count: int, is_text: bool
) -> list[bytes] | list[int]:
    kind, members = _parse_encoding(encoding_record)
    if kind == _VARIABLE and is_text and list(members) == [1] and _flat_bits(get_bytes(members, 1)) == 32:
        (data,) = buffers
        return _slice_texts(struct.unpack_from(f"<{count + 1}I", data), data)
    if kind == _RLE and list(members) == [1, 2] and _flat_bits(get_bytes(members, 2)) == 8 and not is_text:
        run_values, run_lengths = buffers
        return _expand_runs(run_values, run_lengths, _flat_bits(get_bytes(members, 1)))
    if kind == _FLAT and not is_text:
        (data,) = buffers
        return list(_unpack_numbers(data, _flat_bits(encoding_record)))
    if kind == _INLINE_BITPACKING and list(members) == [1] and get_number(members, 1) == 64 and not is_text:
        (data,) = buffers
        return _unpack_bits(data, count)
    raise UnsupportedEncodingError


def _decode_levels(encoding_record: bytes, level_bytes: bytes, count: int) -> list[int]:
    kind, members = _parse_encoding(encoding_record)
    if kind == _FLAT and _flat_bits(encoding_record) == 16:
        levels = list(_unpack_numbers(level_bytes, 16))
    elif kind == _RLE and (_flat_bits(get_bytes(members, 1)), _flat_bits(get_bytes(members, 2))) == (16, 8):
        lengths_start = 8 + int.from_bytes(level_bytes[:8], "little")
        levels = _expand_runs(level_bytes[8:lengths_start], level_bytes[lengths_start:], 16)
    else:
        raise UnsupportedEncodingError
    if len(levels) != count or not set(levels) <= {0, 1}:
        raise UnsupportedEncodingError
    return levels


def _decode_dictionary(encoding_record: bytes, data: bytes, count: int, is_text: bool) -> list[bytes] | list[int]:
    kind, members = _parse_encoding(encoding_record)
    if kind == _GENERAL:
        if get_number(parse_record(get_bytes(members, 1)), 1) != _LZ4:
            raise UnsupportedEncodingError
        data = decompress_lz4(data[4:], int.from_bytes(data[:4], "little"))
        kind, members = _parse_encoding(get_bytes(members, 3))
    if kind == _VARIABLE and is_text and _flat_bits(get_bytes(members, 1)) == 32:
        offset_bits, values_start, *offsets = struct.unpack_from(f"<{count + 3}I", data)
        if offset_bits != 32 or values_start != 4 * (count + 3):
            raise UnsupportedEncodingError
        return _slice_texts([values_start + offset for offset in offsets], data)
    if kind == _FLAT and not is_text:
        return list(_unpack_numbers(data, get_number(members, 1)))
    raise UnsupportedEncodingError


def decompress_lz4(block: bytes, size: int) -> bytes:
    r"""Decompress one LZ4 block.

    >>> decompress_lz4(b"\x44abcd\x04\x00\x10!", 13)
    b'abcdabcdabcd!'
    """
    output, position = bytearray(), 0
    while position < len(block):
        token = block[position]
        literal_size, position = _read_lz4_length(block, token >> 4, position + 1)
        output += block[position : position + literal_size]
        position += literal_size
        if position == len(block):
            break
        distance = int.from_bytes(block[position : position + 2], "little")
        match_size, position = _read_lz4_length(block, token & 15, position + 2)
        start = len(output) - distance
        if not 0 < distance <= len(output):
            raise UnsupportedEncodingError
        for index in range(start, start + match_size + 4):  # a match may overlap what it appends
            output.append(output[index])
    if len(output) != size:
        raise UnsupportedEncodingError
    return bytes(output)


def _read_lz4_length(block: bytes, length: int, position: int) -> tuple[int, int]:
    if length == 15:
        while True:
            byte = block[position]
            length, position = length + byte, position + 1
            if byte != 255:
                break
    return length, position


def _unpack_bits(data: bytes, count: int) -> list[int]:
    """Unpack 64-bit numbers that FastLanes packed: sixteen lanes of 64 numbers, in an order that suits SIMD."""
    bit_width = int.from_bytes(data[:8], "little")
    if len(data) != 8 + bit_width * _PACKED_VALUES // 8 or count > _PACKED_VALUES or bit_width > 64:
        raise UnsupportedEncodingError
    words, mask = struct.unpack_from(f"<{bit_width * 16}Q", data, 8), (1 << bit_width) - 1
    values = [0] * _PACKED_VALUES
    for lane in range(16):
        bits = sum(word << 64 * index for index, word in enumerate(words[lane::16]))
        for row in range(64):
            values[_LANE_ORDER[row // 8] * 16 + row % 8 * 128 + lane] = bits >> row * bit_width & mask
    return values[:count]


def _expand_runs(run_values: bytes, run_lengths: bytes, bits: int) -> list[int]:
    values = _unpack_numbers(run_values, bits)
    return [value for value, length in zip(values, run_lengths, strict=True) for _ in range(length)]


def _unpack_numbers(data: bytes, bits: int) -> tuple[int, ...]:
    return struct.unpack(f"<{len(data) * 8 // bits}{ {16: 'H', 32: 'I', 64: 'Q'}[bits] }", data)


def _slice_texts(offsets: Sequence[int], data: bytes) -> list[bytes]:
    if offsets[-1] > len(data) or list(offsets) != sorted(offsets):
        raise UnsupportedEncodingError
    return [data[start:end] for start, end in pairwise(offsets)]


def _parse_text_scalar(data: bytes) -> bytes:
    buffer_count, offsets_size, text_size, *offsets = struct.unpack_from("<5I", data)
    if (buffer_count, offsets_size, offsets) != (2, 8, [0, text_size]) or len(data) != 20 + text_size:
        raise UnsupportedEncodingError
    return data[20:]


def _parse_encoding(encoding_record: bytes) -> tuple[int, Members]:
    encodings = parse_record(encoding_record)
    (kind,) = encodings
    return kind, parse_record(get_bytes(encodings, kind))


def _flat_bits(encoding_record: bytes) -> int:
    """Return the width of values that are stored one after the other; raise an exception for other encodings."""
    kind, members = _parse_encoding(encoding_record)
    if kind != _FLAT or list(members) != [1]:
        raise UnsupportedEncodingError
    return get_number(members, 1)


def _align(position: int) -> int:
    return (position + _ALIGNMENT - 1) // _ALIGNMENT * _ALIGNMENT
