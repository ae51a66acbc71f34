"""Read records in the protobuf wire format, in which Lance stores the metadata of its files.

This module does not know any message types. It therefore returns the members of a record by number. Input that is not a
complete record raises `ValueError`, `LookupError` or `TypeError`.
"""

Members = dict[int, list[int | bytes]]  # a record's values by member number
_VARINT, _EIGHT_BYTES, _BYTES, _FOUR_BYTES = 0, 1, 2, 5  # wire types


def parse_record(record_bytes: bytes) -> Members:
    r"""Return the values of each field in a message, in the order in which they were written.

    >>> parse_record(b"\x08\x96\x01\x12\x02ok\x08\x01")
    {1: [150, 1], 2: [b'ok']}
    """
    members: Members = {}
    position, end = 0, len(record_bytes)
    while position < end:
        tag, position = _read_varint(record_bytes, position)
        wire_type, value = tag & 7, 0
        if wire_type == _VARINT:
            value, position = _read_varint(record_bytes, position)
            members.setdefault(tag >> 3, []).append(value)
            continue
        if wire_type == _BYTES:
            length, position = _read_varint(record_bytes, position)
        elif wire_type in (_EIGHT_BYTES, _FOUR_BYTES):
            length = 8 if wire_type == _EIGHT_BYTES else 4
        else:
            raise ValueError(f"unsupported wire type {wire_type}")
        if position + length > end:
            raise ValueError("the record is truncated")
        members.setdefault(tag >> 3, []).append(record_bytes[position : position + length])
        position += length
    return members


def get_bytes(members: Members, number: int) -> bytes:
    """Return the only value of a member that contains bytes or a record."""
    (value,) = members[number]
    if not isinstance(value, bytes):
        raise TypeError(f"expected bytes in member {number}, found a number")
    return value


def get_number(members: Members, number: int) -> int:
    """Return the only value of a member that contains a number, or 0 if the member is missing."""
    (value,) = members.get(number, (0,))
    if not isinstance(value, int):
        raise TypeError(f"expected a number in member {number}, found bytes")
    return value


def parse_packed_numbers(packed_bytes: bytes) -> list[int]:
    r"""Return the numbers in a packed repeated member.

    >>> parse_packed_numbers(b"\x00\xac\x02")
    [0, 300]
    """
    numbers, position = [], 0
    while position < len(packed_bytes):
        number, position = _read_varint(packed_bytes, position)
        numbers.append(number)
    return numbers


def _read_varint(record_bytes: bytes, position: int) -> tuple[int, int]:
    number = shift = 0
    while True:
        byte = record_bytes[position]
        position += 1
        number |= (byte & 0x7F) << shift
        if byte < 0x80:
            return number, position
        shift += 7
