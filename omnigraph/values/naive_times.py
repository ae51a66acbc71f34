"""How to read times without a time zone: as an error (the default), or as UTC inside a `with` block.

The choice belongs to one call of the public API and reaches every conversion of that call, including the casts of whole
columns. It is never inherited by another process.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import datetime

NAIVE_TIME_HINT = (
    "add a time zone, as in value.replace(tzinfo=datetime.UTC), or pass assume_utc=True to the query, mutation or load"
)
_assumes_utc: ContextVar[bool] = ContextVar("omnigraph_assumes_utc", default=False)


def assumes_utc() -> bool:
    """Return whether the current call reads times without a time zone as UTC."""
    return _assumes_utc.get()


@contextmanager
def naive_times_as_utc(enabled: bool) -> Iterator[None]:
    """Read times without a time zone as UTC inside the `with` block if `enabled`.

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
    """Return the hint for a datetime without a time zone, or None for any other value."""
    return NAIVE_TIME_HINT if isinstance(value, datetime) and value.utcoffset() is None else None
