"""Convert calendar dates and instants between strings and stored numbers.

A Date is stored as days since 1970-01-01, and a DateTime as milliseconds since then, both in UTC. Both types support
the years 0001 to 9999. Time zones are never guessed: a timestamp without an offset is rejected.
"""

import re
from datetime import date, datetime, timedelta

from omnigraph.values.naive_times import assumes_utc

_EPOCH_DAY = date(1970, 1, 1).toordinal()
_DAY_MILLIS = 86_400_000
FIRST_DAY = date.min.toordinal() - _EPOCH_DAY
LAST_DAY = date.max.toordinal() - _EPOCH_DAY
FIRST_MILLIS = FIRST_DAY * _DAY_MILLIS
LAST_MILLIS = (LAST_DAY + 1) * _DAY_MILLIS - 1

_DATE_PATTERN_TEXT = r"([0-9]{4})-([0-9]{2})-([0-9]{2})"
_DATE_PATTERN = re.compile(_DATE_PATTERN_TEXT)
_INSTANT_PATTERN = re.compile(
    _DATE_PATTERN_TEXT
    + r"[Tt ]([0-9]{2}):([0-9]{2}):([0-9]{2})(?:\.([0-9]+))?"
    + r"(?:[Zz]|([+-])([0-9]{2}):([0-9]{2}))"
)


def parse_date(date_text: str) -> int | None:
    """Parse a date, or return None if it is invalid. For a full timestamp, return its day in UTC.

    >>> parse_date("2000-03-01"), parse_date("1970-01-01T23:00:00-02:00"), parse_date("soon")
    (11017, 1, None)
    """
    epoch_millis = parse_datetime(date_text)
    return None if epoch_millis is None else epoch_millis // _DAY_MILLIS


def parse_datetime(datetime_text: str) -> int | None:
    """Parse an RFC 3339 timestamp, or return None if it is invalid. A plain date means midnight UTC.

    Fractions of a millisecond are truncated.

    >>> parse_datetime("1970-01-01 00:00:01.2349Z"), parse_datetime("1970-01-02")
    (1234, 86400000)
    """
    if date_match := _DATE_PATTERN.fullmatch(datetime_text):
        epoch_day = _epoch_day(*date_match.groups())
        return None if epoch_day is None else epoch_day * _DAY_MILLIS
    instant_match = _INSTANT_PATTERN.fullmatch(datetime_text)
    return None if instant_match is None else _parse_instant(instant_match.groups(default=""))


def format_date(epoch_day: int) -> str:
    """Return the day as `YYYY-MM-DD`.

    >>> format_date(19723)
    '2024-01-01'
    """
    return date.fromordinal(epoch_day + _EPOCH_DAY).isoformat()


def format_datetime(epoch_millis: int) -> str:
    """Return the instant as `YYYY-MM-DDTHH:MM:SS.mmmZ`.

    >>> format_datetime(-1)
    '1969-12-31T23:59:59.999Z'
    """
    epoch_day, day_millis = divmod(epoch_millis, _DAY_MILLIS)
    seconds, millisecond = divmod(day_millis, 1000)
    minutes, second = divmod(seconds, 60)
    hour, minute = divmod(minutes, 60)
    return f"{format_date(epoch_day)}T{hour:02}:{minute:02}:{second:02}.{millisecond:03}Z"


def date_to_days(date_value: date) -> int | None:
    """Return a date as a stored value. For a datetime, use its day in UTC.

    Return None for a datetime without a time zone.
    """
    epoch_millis = date_to_millis(date_value)
    return None if epoch_millis is None else epoch_millis // _DAY_MILLIS


def date_to_millis(date_value: date) -> int | None:
    """Return a datetime or date as a stored value, or None for a datetime that is out of range or has no time zone.

    Inside `naive_times_as_utc(True)`, a datetime without a time zone is assumed to be in UTC.

    >>> date_to_millis(date(1970, 1, 2)), date_to_millis(datetime(1970, 1, 1))
    (86400000, None)
    """
    if not isinstance(date_value, datetime):
        return (date_value.toordinal() - _EPOCH_DAY) * _DAY_MILLIS
    utc_offset = date_value.utcoffset()
    if utc_offset is None:
        if not assumes_utc():
            return None
        utc_offset = timedelta(0)
    # Subtract without time zones, because converting to UTC could overflow on the first or last supported day.
    since_epoch = date_value.replace(tzinfo=None) - datetime(1970, 1, 1) - utc_offset
    return _check_range(since_epoch // timedelta(milliseconds=1))


def _parse_instant(match_groups: tuple[str, ...]) -> int | None:
    year, month, day, hour, minute, second, fraction, sign, offset_hour, offset_minute = match_groups
    epoch_days = _epoch_day(year, month, day)
    clock_millis = _clock_millis(hour, minute, second)
    offset_millis = _clock_millis(offset_hour or "0", offset_minute or "0", "0")
    if epoch_days is None or clock_millis is None or offset_millis is None:
        return None
    millisecond = int(fraction[:3].ljust(3, "0"))
    return _check_range(
        epoch_days * _DAY_MILLIS + clock_millis + millisecond - (-offset_millis if sign == "-" else offset_millis)
    )


def _epoch_day(year: str, month: str, day: str) -> int | None:
    try:
        return date(int(year), int(month), int(day)).toordinal() - _EPOCH_DAY
    except ValueError:
        return None


def _clock_millis(hour: str, minute: str, second: str) -> int | None:
    hours, minutes, seconds = int(hour), int(minute), int(second)
    return ((hours * 60 + minutes) * 60 + seconds) * 1000 if hours < 24 and minutes < 60 and seconds < 60 else None


def _check_range(epoch_millis: int) -> int | None:
    return epoch_millis if FIRST_MILLIS <= epoch_millis <= LAST_MILLIS else None
