"""Convert stored values to canonical text, from which entity ids are built.

The ids of keyed entities are permanent, so this module's output must never change. Its input must be a stored value,
that is, a value that has already been coerced, narrowed and truncated.
"""

import math
import struct

from omnigraph.errors import InputError
from omnigraph.values.types import PropertyType, ScalarType

_EPOCH_TYPES = (ScalarType.DATE, ScalarType.DATETIME)  # stored as a number of days or milliseconds since 1970
_F32_DIGITS = 9  # number of significant digits that are enough to identify any 32-bit float


def canonical_spelling(property_type: PropertyType, value: object) -> str:
    """Return the canonical text for a scalar, as used in ids and uniqueness tuples.

    >>> canonical_spelling(PropertyType(ScalarType.F64), 1e21)
    '1000000000000000000000'
    """
    scalar_type = ScalarType.VECTOR if property_type.is_list else property_type.scalar
    match value:
        case str() if scalar_type is ScalarType.STRING:
            return value
        case bool() if scalar_type is ScalarType.BOOL:
            return "true" if value else "false"
        case bool():
            pass
        case int() | float() if scalar_type.is_float:
            return spell_float(float(value), single=scalar_type is ScalarType.F32)
        case int() if scalar_type.is_integer or scalar_type in _EPOCH_TYPES:
            return str(value)
    raise InputError(reason=f"expected a value of type {property_type.display()} that can be part of a key")


def spell_float(value: float, *, single: bool = False) -> str:
    """Return the shortest decimal text that parses to the same float, without an exponent or trailing `.0`.

    >>> spell_float(0.1), spell_float(-0.0), spell_float(2.5e-7)
    ('0.1', '0', '0.00000025')
    >>> spell_float(0.10000000149011612, single=True)
    '0.1'
    """
    if not math.isfinite(value):
        raise InputError(reason=f"{value} cannot be part of a key")
    if value == 0:
        return "0"
    return _expand_exponent(_shortest_f32_decimal(value) if single else repr(value))


def narrow_to_f32(value: float) -> float | None:
    """Return the nearest 32-bit float, or None if that float is not finite.

    >>> narrow_to_f32(0.1), narrow_to_f32(1e39)
    (0.10000000149011612, None)
    """
    try:
        single: float = struct.unpack("<f", struct.pack("<f", value))[0]
    except OverflowError:
        return None
    return single if math.isfinite(single) else None


def sha256_hex(content: str | bytes) -> str:
    """Return the SHA-256 hash of a string (encoded as UTF-8) or bytes, as 64 hexadecimal digits.

    >>> sha256_hex("")[:8]
    'e3b0c442'
    """
    from hashlib import sha256  # imported lazily, because it loads OpenSSL

    return sha256(content.encode() if isinstance(content, str) else content).hexdigest()


def _shortest_f32_decimal(value: float) -> str:
    target_value = narrow_to_f32(value)
    if target_value is None:
        raise InputError(reason=f"{value} does not fit F32")
    for fraction_digits in range(_F32_DIGITS):
        nearest_decimal = f"{target_value:.{fraction_digits}e}"
        # Floats above a power of two are farther apart than floats below it. The nearest decimal may therefore parse to
        # the next smaller float, whereas the next larger decimal parses correctly even though it is farther away.
        for candidate in (nearest_decimal, _increment_last_digit(nearest_decimal)):
            if narrow_to_f32(float(candidate)) == target_value:
                return candidate
    raise AssertionError("nine digits must be enough to distinguish all 32-bit floats")


def _increment_last_digit(decimal_text: str) -> str:
    mantissa, _, exponent = decimal_text.partition("e")
    digits = mantissa.lstrip("-").replace(".", "")
    sign = "-" if mantissa.startswith("-") else ""
    return f"{sign}{int(digits) + 1}e{int(exponent) - len(digits) + 1}"


def _expand_exponent(decimal_text: str) -> str:
    mantissa, _, exponent = decimal_text.lstrip("-").partition("e")
    integer_digits, _, fraction_digits = mantissa.partition(".")
    point_position = len(integer_digits) + int(exponent or 0)
    all_digits = integer_digits + fraction_digits
    if point_position <= 0:
        integer_digits, fraction_digits = "0", "0" * -point_position + all_digits
    else:
        integer_digits = all_digits[:point_position].ljust(point_position, "0")
        fraction_digits = all_digits[point_position:]
    fraction_digits = fraction_digits.rstrip("0")
    sign = "-" if decimal_text.startswith("-") else ""
    return sign + (integer_digits.lstrip("0") or "0") + (f".{fraction_digits}" if fraction_digits else "")
