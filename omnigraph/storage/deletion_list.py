"""The short form of a deletion file: an Arrow file with one column, as Lance writes it.

Owns every byte of that format. Except for a few lengths and the values the file is always the same,
so any other difference is damage. Lance trusts the lengths: a damaged one makes it allocate that
much memory and abort the process. Such a file must be refused before Lance reads it.
"""

import struct
import zlib
from base64 import b85decode

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Offsets = npt.NDArray[np.int64]

# The file around the values, with zeros in place of the lengths, as Lance 14 writes it.
_HEAD = zlib.decompress(
    b85decode(
        b"c-nIe3i1y(WFQ;-2Z9P9Edb_mG4KE}Cj$$Rgo-"
        b"h;FmM1N0|N_`1PTGM2v}YWtcD*f$^m9e0I>|jXeJ3T#RimN0g?<13Q#*i?4tbg_{<cD{X3v`@c>N~Vh{w|#D"
        b"g#g0+?BVVlqH=JYe%c@-aZH19v+DFyinl6Hy@oaxXjBjd+ZL0|54>5Qq"
    )
)
_TAIL = zlib.decompress(
    b85decode(
        b"c-"
        b"s5_|NnmmAP`}I03IMq2uN};umDL0h8!U70Ac~KEDKPa14@HP1_nl`UI7L%uo`}_C<mA=0mL#8W0@qt6dTxFH"
        b"Xus@Y9EMQlwTg7nF2BE08|`Cqk|Pd>=+c}A8rT$_nr*;"
    )
)
# Byte positions of the lengths: body, rows (twice), validity buffer, values start, values buffer.
_BODY, _ROWS, _NODE, _VALID_LENGTH, _VALUES_START, _VALUES_LENGTH = 224, 264, 280, 312, 320, 328
_LENGTHS = (_BODY, _ROWS, _NODE, _VALID_LENGTH, _VALUES_START, _VALUES_LENGTH)
_TAIL_BODY = 160  # position of the body length in the footer, where it is repeated
_ALIGNED = 64
_PREFIX = 8  # bytes before a buffer: its uncompressed length, or -1 if not compressed
_PLAIN = -1


def read_offsets(body: bytes) -> Offsets:
    """Return the sorted offsets in a file; `ValueError` if a byte that Lance relies on is damaged.

    >>> read_offsets(write_offsets([7, 3])).tolist()
    [3, 7]
    """
    head, tail = bytearray(body[: len(_HEAD)]), bytearray(body[-len(_TAIL) :])
    if len(body) < len(_HEAD) + len(_TAIL):
        raise ValueError("a deletion list is truncated")
    lengths = {place: _take_length(head, place) for place in _LENGTHS}
    size, rows = lengths[_BODY], lengths[_ROWS]
    sizes = {size, _take_length(tail, _TAIL_BODY), len(body) - len(_HEAD) - len(_TAIL)}
    if head != _HEAD or tail != _TAIL or len(sizes) != 1 or rows != lengths[_NODE] or rows < 0:
        raise ValueError("a deletion list is not in the format that Lance writes")
    start, length = lengths[_VALUES_START], lengths[_VALUES_LENGTH]
    whole = (start, size) == (_align(lengths[_VALID_LENGTH]), _align(start + length))
    if not whole or min(lengths.values()) < 0:
        raise ValueError("the buffers of a deletion list do not fill it")
    data = body[len(_HEAD) : len(_HEAD) + size]
    _read_buffer(data[: lengths[_VALID_LENGTH]], (rows + 7) // 8)
    values = _read_buffer(data[start : start + length], 4 * rows)
    return np.sort(np.frombuffer(values, "<u4").astype(np.int64))


def write_offsets(offsets: npt.ArrayLike) -> bytes:
    """Return the file that lists row offsets, in the format that Lance reads."""
    values = np.asarray(offsets, "<u4").tobytes()
    rows = len(values) // 4
    valid = _plain_buffer(np.packbits(np.ones(rows, np.uint8), bitorder="little").tobytes())
    start, length = _align(len(valid)), _PREFIX + len(values)
    data = valid.ljust(start, b"\0") + _plain_buffer(values)
    data = data.ljust(_align(len(data)), b"\0")
    head, tail = bytearray(_HEAD), bytearray(_TAIL)
    for place, number in zip(
        _LENGTHS, (len(data), rows, rows, len(valid), start, length), strict=True
    ):
        struct.pack_into("<q", head, place, number)
    struct.pack_into("<q", tail, _TAIL_BODY, len(data))
    return bytes(head + data + tail)


def _take_length(part: bytearray, place: int) -> int:
    """Read a length and zero it in place: all other bytes must equal those of every file."""
    (number,) = struct.unpack_from("<q", part, place) if len(part) >= place + 8 else (-1,)
    part[place : place + 8] = bytes(8)
    return int(number)


def _read_buffer(buffer: bytes, size: int) -> bytes:
    """Return the content of a buffer, which must have this size after decompression."""
    if len(buffer) < _PREFIX:
        raise ValueError("a buffer is truncated")
    (stated,) = struct.unpack_from("<q", buffer)
    if stated not in (_PLAIN, size):
        raise ValueError("a buffer states another size")
    content = buffer[_PREFIX:]
    if stated != _PLAIN:
        content = pa.decompress(content, size, codec="zstd", asbytes=True)
    if len(content) != size:
        raise ValueError("a buffer has another size")
    return content


def _plain_buffer(content: bytes) -> bytes:
    return struct.pack("<q", _PLAIN) + content


def _align(size: int) -> int:
    return -(-size // _ALIGNED) * _ALIGNED
