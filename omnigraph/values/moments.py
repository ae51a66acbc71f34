"""Points in time as users write them: timestamps, dates, and times relative to now.

This module only parses text; the caller provides the current time. Dates and relative times are in UTC.
"""

import re
from datetime import UTC, datetime, timedelta

_UNIT_SECONDS = {"s": 1, "m": 60, "h": 3_600, "d": 86_400, "w": 604_800}
_UNIT_WORDS = {
    "second": "s", "sec": "s", "minute": "m", "min": "m", "hour": "h", "day": "d", "week": "w",
    "month": "month", "year": "year",
}  # fmt: skip
_MAX_DIGITS = 9
_AGO_PATTERN = re.compile(rf"(an?|\d{{1,{_MAX_DIGITS}}})\s*([a-z]+)\s+ago")
_OFFSET_PATTERN = re.compile(rf"-((?:\d{{1,{_MAX_DIGITS}}}[smhdw])+)")
_ISO_PATTERN = re.compile(
    r"-?p(?=[\dt])(?:(?P<w>\d{1,9})w)?(?:(?P<d>\d{1,9})d)?"
    r"(?:t(?=\d)(?:(?P<h>\d{1,9})h)?(?:(?P<m>\d{1,9})m)?(?:(?P<s>\d{1,9})s)?)?"
)
_DATE_PATTERN = re.compile(r"\d{4}-\d{2}-\d{2}")


def parse_moment(text: str, now: datetime) -> datetime | None:
    """Parse a point in time, or return None if the text is invalid. A timestamp without a time zone stays naive.

    A date means the beginning of that day in UTC.

    >>> now = datetime(2026, 11, 18, 12, tzinfo=UTC)
    >>> [parse_moment(text, now).isoformat() for text in ("2026-11-01", "2 hours ago", "-1d12h", "yesterday")]
    ['2026-11-01T00:00:00+00:00', '2026-11-18T10:00:00+00:00', '2026-11-17T00:00:00+00:00', '2026-11-17T12:00:00+00:00']
    """
    try:
        if _DATE_PATTERN.fullmatch(text):
            return datetime.fromisoformat(text).replace(tzinfo=UTC)
        if text[:4].isdecimal() and "-" in text:
            return datetime.fromisoformat(text)
        return _parse_relative_time(text.lower(), now)
    except (ValueError, OverflowError):
        return None


def _parse_relative_time(text: str, now: datetime) -> datetime | None:
    if text == "yesterday":
        return now - timedelta(days=1)
    if text.endswith(".ago"):
        text = text.replace(".", " ")
    ago_match = _AGO_PATTERN.fullmatch(text)
    if ago_match is not None:
        return _subtract_units(ago_match[1], ago_match[2], now)
    offset_match = _OFFSET_PATTERN.fullmatch(text)
    if offset_match is not None:
        parts = re.findall(r"(\d+)([smhdw])", offset_match[1])
        return now - timedelta(seconds=sum(int(number) * _UNIT_SECONDS[unit] for number, unit in parts))
    iso_match = _ISO_PATTERN.fullmatch(text)
    if iso_match is None:
        return None
    seconds = sum(int(number) * _UNIT_SECONDS[unit] for unit, number in iso_match.groupdict(default="0").items())
    return now - timedelta(seconds=seconds)


def _subtract_units(number_text: str, unit_word: str, now: datetime) -> datetime | None:
    number = int(number_text) if number_text.isdecimal() else 1
    unit = _UNIT_WORDS.get(unit_word.removesuffix("s"), unit_word)
    if unit in _UNIT_SECONDS:
        return now - timedelta(seconds=number * _UNIT_SECONDS[unit])
    if unit in ("month", "year"):
        return _subtract_months(now, number * (12 if unit == "year" else 1))
    return None


def _subtract_months(now: datetime, months: int) -> datetime:
    """Return the same day in an earlier month, or the last day of that month if it has fewer days."""
    year, month_index = divmod(now.year * 12 + now.month - 1 - months, 12)
    for day in range(now.day, 27, -1):
        try:
            return now.replace(year=year, month=month_index + 1, day=day)
        except ValueError:
            continue
    return now.replace(year=year, month=month_index + 1)
