"""The canonical spelling of a stored value, and the entity ids built from it.

Ids of keyed entities are permanent, so the output of this module must never change. Input is always
the stored value: already narrowed, truncated and coerced.
"""

import json
import math
import struct
from collections.abc import Sequence

from omnigraph.errors import InputError
from omnigraph.values.types import PropertyType, ScalarType

_COUNTED = (ScalarType.DATE, ScalarType.DATETIME)  # stored as a number since 1970
_F32_DIGITS = 9  # enough for every 32-bit float


def canonical_spelling(kind: PropertyType, value: object) -> str:
    """Return the spelling of one scalar, as used in ids and uniqueness tuples.

    >>> canonical_spelling(PropertyType(ScalarType.F64), 1e21)
    '1000000000000000000000'
    """
    scalar = ScalarType.VECTOR if kind.is_list else kind.scalar
    match value:
        case str() if scalar is ScalarType.STRING:
            return value
        case bool() if scalar is ScalarType.BOOL:
            return "true" if value else "false"
        case bool():
            pass
        case int() | float() if scalar.is_float:
            return spell_float(float(value), single=scalar is ScalarType.F32)
        case int() if scalar.is_integer or scalar in _COUNTED:
            return str(value)
    raise InputError(reason=f"not a stored value of type {kind.display()} that can be in a key")


def spell_float(value: float, *, single: bool = False) -> str:
    """Return the shortest decimal that parses to the same float: no exponent, no trailing `.0`.

    >>> spell_float(0.1), spell_float(-0.0), spell_float(2.5e-7)
    ('0.1', '0', '0.00000025')
    >>> spell_float(0.10000000149011612, single=True)
    '0.1'
    """
    if not math.isfinite(value):
        raise InputError(reason=f"{value} cannot be part of a key")
    if value == 0:
        return "0"
    return _positional(_shortest_single(value) if single else repr(value))


def narrow(value: float) -> float | None:
    """Return the nearest 32-bit float, or None if it is not finite.

    >>> narrow(0.1), narrow(1e39)
    (0.10000000149011612, None)
    """
    try:
        single: float = struct.unpack("<f", struct.pack("<f", value))[0]
    except OverflowError:
        return None
    return single if math.isfinite(single) else None


def entity_id(
    types: Sequence[PropertyType], values: Sequence[object], names: Sequence[str] = ()
) -> str:
    """Return the id of an entity from its key values, in the order of their property ids.

    >>> text, number = PropertyType(ScalarType.STRING), PropertyType(ScalarType.I64)
    >>> entity_id([number], [-7]), entity_id([text, number], ["x", 5])
    ('-7', '["x","5"]')
    """
    called = [*names, *(f"member {at + 1}" for at in range(len(names), len(types)))]
    for name, value in zip(called, values, strict=True):
        if value is None:
            raise InputError(reason=f"key {name} is null", property=name)
    parts = [canonical_spelling(kind, value) for kind, value in zip(types, values, strict=True)]
    if len(parts) != 1:
        return json.dumps(parts, ensure_ascii=False, separators=(",", ":"))
    if not parts[0]:
        raise InputError(reason=f"key {called[0]} is an empty text", property=called[0])
    return parts[0]


def canonical_json(value: object, *, sort_keys: bool = True) -> str:
    """Return compact JSON text that depends only on the value: the input of hashes.

    With `sort_keys=False` the members keep their insertion order.

    >>> canonical_json({"b": [1, None], "a": "ä"})
    '{"a":"ä","b":[1,null]}'
    """
    try:
        return json.dumps(
            value,
            ensure_ascii=False,
            allow_nan=False,
            sort_keys=sort_keys,
            separators=(",", ":"),
        )
    except (TypeError, ValueError) as error:
        raise InputError(reason=f"cannot encode as canonical JSON: {error}") from error


def sha256_hex(data: str | bytes) -> str:
    """Return the SHA-256 of a text (as UTF-8) or of bytes, as 64 hexadecimal digits.

    >>> sha256_hex("")[:8]
    'e3b0c442'
    """
    from hashlib import sha256  # imported late: it loads OpenSSL

    return sha256(data.encode() if isinstance(data, str) else data).hexdigest()


def _shortest_single(value: float) -> str:
    target = narrow(value)
    if target is None:
        raise InputError(reason=f"{value} does not fit F32")
    for digits in range(_F32_DIGITS):
        nearest = f"{target:.{digits}e}"
        # Above a power of two floats are spaced more widely than below it, so the nearest decimal
        # may round down while the next one up, although farther away, still parses correctly.
        for text in (nearest, _next_up(nearest)):
            if narrow(float(text)) == target:
                return text
    raise AssertionError("nine digits distinguish all 32-bit floats")


def _next_up(text: str) -> str:
    mantissa, _, exponent = text.partition("e")
    digits = mantissa.lstrip("-").replace(".", "")
    sign = "-" if mantissa.startswith("-") else ""
    return f"{sign}{int(digits) + 1}e{int(exponent) - len(digits) + 1}"


def _positional(text: str) -> str:
    mantissa, _, exponent = text.lstrip("-").partition("e")
    whole, _, fraction = mantissa.partition(".")
    point = len(whole) + int(exponent or 0)
    digits = whole + fraction
    if point <= 0:
        whole, fraction = "0", "0" * -point + digits
    else:
        whole, fraction = digits[:point].ljust(point, "0"), digits[point:]
    fraction = fraction.rstrip("0")
    sign = "-" if text.startswith("-") else ""
    return sign + (whole.lstrip("0") or "0") + (f".{fraction}" if fraction else "")
