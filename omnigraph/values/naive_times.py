"""Decide how to interpret times without a time zone: reject them (the default) or assume UTC.

The setting applies to one call of the public API and to every conversion within that call, including casts of whole
columns. Other processes never inherit the setting.
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import datetime

NAIVE_TIME_HINT = (
    "add a time zone, as in value.replace(tzinfo=datetime.UTC), or pass assume_utc=True to the query, mutation or load"
)
_NAIVE_TEXT = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d{1,9})?", re.ASCII)
_assumes_utc: ContextVar[bool] = ContextVar("omnigraph_assumes_utc", default=False)


def assumes_utc() -> bool:
    """Return whether the current call assumes UTC for times without a time zone."""
    return _assumes_utc.get()


@contextmanager
def naive_times_as_utc(enabled: bool) -> Iterator[None]:
    """If `enabled` is true, assume UTC for times without a time zone inside the `with` block.

    >>> with naive_times_as_utc(True):
    ...     assumes_utc()
    True
    """
    token = _assumes_utc.set(enabled)
    try:
        yield
    finally:
        _assumes_utc.reset(token)


def hint_for(value: object) -> str | None:
    """Return a hint if a value is a datetime or a timestamp string without a time zone, or None otherwise.

    >>> hint_for("2024-05-01T12:00:00"), hint_for("soon")
    ('add an offset, as in 2024-05-01T12:00:00Z', None)
    """
    if isinstance(value, str):
        return f"add an offset, as in {value}Z" if _NAIVE_TEXT.fullmatch(value) else None
    return NAIVE_TIME_HINT if isinstance(value, datetime) and value.utcoffset() is None else None
