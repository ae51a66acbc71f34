"""Decode the plain, run-length encoded, bit-packed and dictionary-encoded buffers in a small Lance data file.

Like `plain_columns`, this module decodes only what Lance 14 writes for manifests and raises an exception for anything
else.
"""

import struct
from collections.abc import Sequence
from itertools import pairwise

from .protobuf import Members, get_bytes, get_number, parse_record

_FLAT, VARIABLE, _INLINE_BITPACKING, _RLE, _GENERAL = 1, 2, 5, 8, 10  # compressive encodings
_LZ4 = 1
_LANE_ORDER = (0, 4, 2, 6, 1, 5, 3, 7)  # the order in which FastLanes packs the rows of a block
_PACKED_VALUES = 1024  # values per bit-packed block


class UnsupportedEncodingError(ValueError):
    """The file uses an encoding that this module does not support."""


def decode_values(
    encoding_record: bytes, buffers: Sequence[bytes], count: int, is_text: bool
) -> list[bytes] | list[int]:
    """Return the values in a chunk: bytes for text, otherwise numbers."""
    kind, members = _parse_encoding(encoding_record)
    if kind == VARIABLE and is_text and list(members) == [1] and _flat_bits(get_bytes(members, 1)) == 32:
        (data,) = buffers
        return _slice_texts(struct.unpack_from(f"<{count + 1}I", data), data)
    if kind == _RLE and list(members) == [1, 2] and _flat_bits(get_bytes(members, 2)) == 8 and not is_text:
        run_values, run_lengths = buffers
        return _expand_runs(run_values, run_lengths, _flat_bits(get_bytes(members, 1)))
    if kind == _FLAT and not is_text:
        (data,) = buffers
        return list(_unpack_numbers(data, _flat_bits(encoding_record)))
    if kind == _INLINE_BITPACKING and list(members) == [1] and not is_text:
        (data,) = buffers
        return _unpack_bits(data, get_number(members, 1), count)
    raise UnsupportedEncodingError


def decode_levels(encoding_record: bytes, level_bytes: bytes, count: int) -> list[int]:
    """Return the definition levels of a chunk: 1 for null, 0 for a value."""
    kind, members = _parse_encoding(encoding_record)
    if kind == _FLAT and _flat_bits(encoding_record) == 16:
        levels = list(_unpack_numbers(level_bytes, 16))
    elif kind == _RLE and (_flat_bits(get_bytes(members, 1)), _flat_bits(get_bytes(members, 2))) == (16, 8):
        lengths_start = 8 + int.from_bytes(level_bytes[:8], "little")
        levels = _expand_runs(level_bytes[8:lengths_start], level_bytes[lengths_start:], 16)
    elif kind == _INLINE_BITPACKING and list(members) == [1]:
        levels = _unpack_bits(level_bytes, get_number(members, 1), count)
    else:
        raise UnsupportedEncodingError
    if len(levels) != count or not set(levels) <= {0, 1}:
        raise UnsupportedEncodingError
    return levels


def decode_dictionary(encoding_record: bytes, data: bytes, count: int, is_text: bool) -> list[bytes] | list[int]:
    """Return the dictionary of a page: the distinct values to which the page refers by index."""
    kind, members = _parse_encoding(encoding_record)
    if kind == _GENERAL:
        if get_number(parse_record(get_bytes(members, 1)), 1) != _LZ4:
            raise UnsupportedEncodingError
        data = decompress_lz4(data[4:], int.from_bytes(data[:4], "little"))
        kind, members = _parse_encoding(get_bytes(members, 3))
    if kind == VARIABLE and is_text and _flat_bits(get_bytes(members, 1)) == 32:
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
        for index in range(start, start + match_size + 4):  # a match may overlap the bytes that it appends
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


def _unpack_bits(data: bytes, word_bits: int, count: int) -> list[int]:
    """Unpack numbers in the FastLanes layout, which spreads the bits over words to suit SIMD instructions."""
    lane_count, header_size = _PACKED_VALUES // word_bits, word_bits // 8
    bit_width = int.from_bytes(data[:header_size], "little")
    if len(data) != header_size + bit_width * _PACKED_VALUES // 8 or count > _PACKED_VALUES or bit_width > word_bits:
        raise UnsupportedEncodingError
    words, mask = _unpack_numbers(data[header_size:], word_bits), (1 << bit_width) - 1
    values = [0] * _PACKED_VALUES
    for lane in range(lane_count):
        bits = sum(word << word_bits * index for index, word in enumerate(words[lane::lane_count]))
        for row in range(word_bits):
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


def parse_text_scalar(data: bytes) -> bytes:
    """Return the only value in a page, which Lance stores as an Arrow text scalar."""
    buffer_count, offsets_size, text_size, *offsets = struct.unpack_from("<5I", data)
    if (buffer_count, offsets_size, offsets) != (2, 8, [0, text_size]) or len(data) != 20 + text_size:
        raise UnsupportedEncodingError
    return data[20:]


def _parse_encoding(encoding_record: bytes) -> tuple[int, Members]:
    encodings = parse_record(encoding_record)
    (kind,) = encodings
    return kind, parse_record(get_bytes(encodings, kind))


def _flat_bits(encoding_record: bytes) -> int:
    """Return the bit width of values in a flat encoding; raise an exception for any other encoding."""
    kind, members = _parse_encoding(encoding_record)
    if kind != _FLAT or list(members) != [1]:
        raise UnsupportedEncodingError
    return get_number(members, 1)
