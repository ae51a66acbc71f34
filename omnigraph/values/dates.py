"""Calendar dates and instants: text to stored number and back.

A Date is stored as days, a DateTime as milliseconds since 1970-01-01 in UTC; both lie in the years
0001 to 9999. Never guesses a time zone: an instant without an offset is refused.
"""

import re
from datetime import date, datetime, timedelta

_EPOCH_DAY = date(1970, 1, 1).toordinal()
_DAY_MILLIS = 86_400_000
FIRST_DAY = date.min.toordinal() - _EPOCH_DAY
LAST_DAY = date.max.toordinal() - _EPOCH_DAY
FIRST_MILLI = FIRST_DAY * _DAY_MILLIS
LAST_MILLI = (LAST_DAY + 1) * _DAY_MILLIS - 1

_DATE = r"([0-9]{4})-([0-9]{2})-([0-9]{2})"
_DAY = re.compile(_DATE)
_INSTANT = re.compile(
    _DATE
    + r"[Tt ]([0-9]{2}):([0-9]{2}):([0-9]{2})(?:\.([0-9]+))?"
    + r"(?:[Zz]|([+-])([0-9]{2}):([0-9]{2}))"
)


def parse_date(text: str) -> int | None:
    """Return the day that a text names, or None; a full timestamp counts as its day in UTC.

    >>> parse_date("2000-03-01"), parse_date("1970-01-01T23:00:00-02:00"), parse_date("soon")
    (11017, 1, None)
    """
    milli = parse_datetime(text)
    return None if milli is None else milli // _DAY_MILLIS


def parse_datetime(text: str) -> int | None:
    """Return the instant that an RFC 3339 text names, or None; a plain date means midnight UTC.

    Digits beyond the millisecond are truncated.

    >>> parse_datetime("1970-01-01 00:00:01.2349Z"), parse_datetime("1970-01-02")
    (1234, 86400000)
    """
    if plain := _DAY.fullmatch(text):
        day = _day_of(*plain.groups())
        return None if day is None else day * _DAY_MILLIS
    found = _INSTANT.fullmatch(text)
    return None if found is None else _instant(found.groups(default=""))


def format_date(day: int) -> str:
    """Return the day as `YYYY-MM-DD`.

    >>> format_date(19723)
    '2024-01-01'
    """
    return date.fromordinal(day + _EPOCH_DAY).isoformat()


def format_datetime(milli: int) -> str:
    """Return the instant as `YYYY-MM-DDTHH:MM:SS.mmmZ`.

    >>> format_datetime(-1)
    '1969-12-31T23:59:59.999Z'
    """
    day, rest = divmod(milli, _DAY_MILLIS)
    seconds, fraction = divmod(rest, 1000)
    minutes, second = divmod(seconds, 60)
    hour, minute = divmod(minutes, 60)
    return f"{format_date(day)}T{hour:02}:{minute:02}:{second:02}.{fraction:03}Z"


def days_of(value: date) -> int | None:
    """Return the stored form of a date, or of a datetime's UTC day (None without time zone)."""
    milli = millis_of(value)
    return None if milli is None else milli // _DAY_MILLIS


def millis_of(value: date) -> int | None:
    """Return the stored form of a datetime or date; None without time zone or out of range.

    >>> millis_of(date(1970, 1, 2)), millis_of(datetime(1970, 1, 1))
    (86400000, None)
    """
    if not isinstance(value, datetime):
        return (value.toordinal() - _EPOCH_DAY) * _DAY_MILLIS
    offset = value.utcoffset()
    if offset is None:
        return None
    # Subtract without time zones: converting to UTC would overflow on the first and last day.
    since = value.replace(tzinfo=None) - datetime(1970, 1, 1) - offset
    return _in_range(since // timedelta(milliseconds=1))


def _instant(parts: tuple[str, ...]) -> int | None:
    year, month, day, hour, minute, second, fraction, sign, off_hour, off_minute = parts
    days = _day_of(year, month, day)
    clock = _clock_millis(hour, minute, second)
    offset = _clock_millis(off_hour or "0", off_minute or "0", "0")
    if days is None or clock is None or offset is None:
        return None
    milli = int(fraction[:3].ljust(3, "0"))
    return _in_range(days * _DAY_MILLIS + clock + milli - (-offset if sign == "-" else offset))


def _day_of(year: str, month: str, day: str) -> int | None:
    try:
        return date(int(year), int(month), int(day)).toordinal() - _EPOCH_DAY
    except ValueError:
        return None


def _clock_millis(hour: str, minute: str, second: str) -> int | None:
    h, m, s = int(hour), int(minute), int(second)
    return ((h * 60 + m) * 60 + s) * 1000 if h < 24 and m < 60 and s < 60 else None


def _in_range(milli: int) -> int | None:
    return milli if FIRST_MILLI <= milli <= LAST_MILLI else None
