"""The format that Lance uses for short deletion files: an Arrow file with one column.

This module specifies every byte of the format. Only the values and a few lengths vary between files, so any other
difference means that a file is damaged. Lance trusts the lengths. If a damaged length is too large, Lance tries to
allocate that much memory, which aborts the process. A damaged file must therefore be rejected before Lance reads it.
"""

import struct
import zlib
from base64 import b85decode

import numpy as np
import numpy.typing as npt
import pyarrow as pa

RowOffsets = npt.NDArray[np.int64]

# The bytes that Lance 14 writes around the values, with zeros in place of the lengths.
_FILE_HEAD = zlib.decompress(
    b85decode(
        b"c-nIe3i1y(WFQ;-2Z9P9Edb_mG4KE}Cj$$Rgo-"
        b"h;FmM1N0|N_`1PTGM2v}YWtcD*f$^m9e0I>|jXeJ3T#RimN0g?<13Q#*i?4tbg_{<cD{X3v`@c>N~Vh{w|#D"
        b"g#g0+?BVVlqH=JYe%c@-aZH19v+DFyinl6Hy@oaxXjBjd+ZL0|54>5Qq"
    )
)
_FILE_TAIL = zlib.decompress(
    b85decode(
        b"c-"
        b"s5_|NnmmAP`}I03IMq2uN};umDL0h8!U70Ac~KEDKPa14@HP1_nl`UI7L%uo`}_C<mA=0mL#8W0@qt6dTxFH"
        b"Xus@Y9EMQlwTg7nF2BE08|`Cqk|Pd>=+c}A8rT$_nr*;"
    )
)
# The byte positions of the body length, the row count (twice), the validity buffer's length, and the values buffer's
# start and length.
_BODY_LENGTH_AT = 224
_ROW_COUNT_AT = 264
_NODE_LENGTH_AT = 280
_VALIDITY_LENGTH_AT = 312
_VALUES_START_AT = 320
_VALUES_LENGTH_AT = 328
_LENGTH_POSITIONS = (
    _BODY_LENGTH_AT,
    _ROW_COUNT_AT,
    _NODE_LENGTH_AT,
    _VALIDITY_LENGTH_AT,
    _VALUES_START_AT,
    _VALUES_LENGTH_AT,
)
_TAIL_BODY_LENGTH_AT = 160  # position at which the footer repeats the body length
_ALIGNMENT = 64
# Size of a buffer's prefix, which contains the uncompressed length, or -1 if the buffer is not compressed.
_BUFFER_PREFIX_BYTES = 8
_UNCOMPRESSED = -1


def read_offsets(file_bytes: bytes) -> RowOffsets:
    """Return the sorted offsets in a file; raise `ValueError` if a byte that Lance relies on is damaged.

    >>> read_offsets(write_offsets([7, 3])).tolist()
    [3, 7]
    """
    head, tail = bytearray(file_bytes[: len(_FILE_HEAD)]), bytearray(file_bytes[-len(_FILE_TAIL) :])
    if len(file_bytes) < len(_FILE_HEAD) + len(_FILE_TAIL):
        raise ValueError("a deletion list is truncated")
    lengths = {position: _take_length(head, position) for position in _LENGTH_POSITIONS}
    body_size, row_count = lengths[_BODY_LENGTH_AT], lengths[_ROW_COUNT_AT]
    stated_sizes = {
        body_size,
        _take_length(tail, _TAIL_BODY_LENGTH_AT),
        len(file_bytes) - len(_FILE_HEAD) - len(_FILE_TAIL),
    }
    if (
        head != _FILE_HEAD
        or tail != _FILE_TAIL
        or len(stated_sizes) != 1
        or row_count != lengths[_NODE_LENGTH_AT]
        or row_count < 0
    ):
        raise ValueError("a deletion list is not in the format that Lance writes")
    values_start, values_length = lengths[_VALUES_START_AT], lengths[_VALUES_LENGTH_AT]
    is_filled = (values_start, body_size) == (
        _align_size(lengths[_VALIDITY_LENGTH_AT]),
        _align_size(values_start + values_length),
    )
    if not is_filled or min(lengths.values()) < 0:
        raise ValueError("the buffers of a deletion list do not match its size")
    body_bytes = file_bytes[len(_FILE_HEAD) : len(_FILE_HEAD) + body_size]
    _read_buffer(body_bytes[: lengths[_VALIDITY_LENGTH_AT]], (row_count + 7) // 8)
    value_bytes = _read_buffer(body_bytes[values_start : values_start + values_length], 4 * row_count)
    return np.sort(np.frombuffer(value_bytes, "<u4").astype(np.int64))


def write_offsets(offsets: npt.ArrayLike) -> bytes:
    """Return the content of a deletion file with these row offsets."""
    value_bytes = np.asarray(offsets, "<u4").tobytes()
    row_count = len(value_bytes) // 4
    validity_buffer = _uncompressed_buffer(np.packbits(np.ones(row_count, np.uint8), bitorder="little").tobytes())
    values_start = _align_size(len(validity_buffer))
    values_length = _BUFFER_PREFIX_BYTES + len(value_bytes)
    body_bytes = validity_buffer.ljust(values_start, b"\0") + _uncompressed_buffer(value_bytes)
    body_bytes = body_bytes.ljust(_align_size(len(body_bytes)), b"\0")
    head, tail = bytearray(_FILE_HEAD), bytearray(_FILE_TAIL)
    for position, number in zip(
        _LENGTH_POSITIONS,
        (len(body_bytes), row_count, row_count, len(validity_buffer), values_start, values_length),
        strict=True,
    ):
        struct.pack_into("<q", head, position, number)
    struct.pack_into("<q", tail, _TAIL_BODY_LENGTH_AT, len(body_bytes))
    return bytes(head + body_bytes + tail)


def _take_length(section: bytearray, position: int) -> int:
    """Read a length and overwrite it with zeros, so that the section can then be compared with its expected bytes."""
    (number,) = struct.unpack_from("<q", section, position) if len(section) >= position + 8 else (-1,)
    section[position : position + 8] = bytes(8)
    return int(number)


def _read_buffer(raw_buffer: bytes, expected_size: int) -> bytes:
    """Return the decompressed content of a buffer; raise `ValueError` if it does not have the expected size."""
    if len(raw_buffer) < _BUFFER_PREFIX_BYTES:
        raise ValueError("a buffer is truncated")
    (stated_size,) = struct.unpack_from("<q", raw_buffer)
    if stated_size not in (_UNCOMPRESSED, expected_size):
        raise ValueError(f"a buffer declares a size of {stated_size} bytes, expected {expected_size}")
    content = raw_buffer[_BUFFER_PREFIX_BYTES:]
    if stated_size != _UNCOMPRESSED:
        content = pa.decompress(content, expected_size, codec="zstd", asbytes=True)
    if len(content) != expected_size:
        raise ValueError(f"a buffer has {len(content)} bytes, expected {expected_size}")
    return content


def _uncompressed_buffer(content: bytes) -> bytes:
    return struct.pack("<q", _UNCOMPRESSED) + content


def _align_size(size: int) -> int:
    return -(-size // _ALIGNMENT) * _ALIGNMENT
