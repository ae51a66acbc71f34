"""Ids, time and randomness: nothing else in Omnigraph asks the clock or throws dice.

Tests make all three repeatable with `fixed`. Never holds anything about graphs, and never uses
time to decide who was first: ids sort well, they prove nothing.
"""

import os
import re
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from omnigraph.errors import InputError

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_ULID = re.compile(r"[0-7][0-9A-HJKMNP-TV-Z]{25}")
_RANDOM_BITS = 80
_LAST_MILLI = (1 << 48) - 1  # what the 48 bits of a ULID can hold


@dataclass(slots=True)
class ManualClock:
    """A clock for tests: it stands still until it is moved.

    >>> clock = ManualClock(datetime(2024, 1, 1, tzinfo=UTC))
    >>> clock.advance(seconds=2)
    >>> clock.micros(), clock.monotonic()
    (1704067202000000, 2.0)
    """

    start: datetime = _EPOCH
    passed: timedelta = timedelta(0)

    def advance(self, **by: float) -> None:
        """Let time pass; the arguments are those of `timedelta`."""
        self.passed += timedelta(**by)

    def micros(self) -> int:
        """Microseconds since 1970, in UTC."""
        return (self.start + self.passed - _EPOCH) // timedelta(microseconds=1)

    def monotonic(self) -> float:
        """Seconds since the clock was made."""
        return self.passed.total_seconds()


@dataclass(slots=True)
class _Source:
    """Where time and randomness come from, and the last ULID that was given out."""

    micros: Callable[[], int]
    monotonic: Callable[[], float]
    random: Callable[[int], bytes]
    lock: threading.Lock = field(default_factory=threading.Lock)
    last: tuple[int, int] = (-1, 0)

    def next_ulid(self, count: int = 1) -> bytes:
        """Sixteen bytes, greater than all that this source gave before; the first of `count`."""
        with self.lock:
            milli, noise = self.last
            current = max(self.micros() // 1000, 0)
            if current > milli:
                milli, noise = current, int.from_bytes(self.random(_RANDOM_BITS // 8))
            else:
                # The same millisecond, or a clock that went back: count on.
                carry, noise = divmod(noise + 1, 1 << _RANDOM_BITS)
                milli += carry
            carry, last = divmod(noise + count - 1, 1 << _RANDOM_BITS)
            self.last = (milli + carry, last)
        return (min(milli, _LAST_MILLI) << _RANDOM_BITS | noise).to_bytes(16)


def _system() -> _Source:
    return _Source(lambda: time.time_ns() // 1000, time.monotonic, os.urandom)


_current = _system()


def _after_fork() -> None:
    # Parent and child would count on from the same ULID, and the lock may be held by a thread
    # that the child does not have.
    global _current  # noqa: PLW0603
    _current = _Source(_current.micros, _current.monotonic, _current.random)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


def new_ulid() -> str:
    """A fresh ULID: 26 characters that sort by time, strictly growing within a process.

    >>> first, second = new_ulid(), new_ulid()
    >>> is_ulid(first) and first < second
    True
    """
    from ulid import base32

    return base32.encode(_current.next_ulid())


def reserve_ulids(count: int) -> int:
    """The number of the first of so many fresh ULIDs in a row; nobody else gets one of them."""
    return int.from_bytes(_current.next_ulid(count))


def is_ulid(text: str) -> bool:
    """Whether the text is a ULID in its canonical spelling.

    >>> is_ulid("01J8ZC9Q3M0000000000000000"), is_ulid("01j8zc9q3m0000000000000000")
    (True, False)
    """
    return _ULID.fullmatch(text) is not None


def check_ulid(text: str) -> str:
    """The text itself if it is a ULID, else `InputError`."""
    if not is_ulid(text):
        raise InputError(reason=f"'{text[:40]}' is not a ULID (26 characters 0-9 A-Z without ILOU)")
    return text


def ulid_time(text: str) -> datetime:
    """When a ULID was made, by the clock of its maker.

    >>> ulid_time("00000000010000000000000000").isoformat(timespec="milliseconds")
    '1970-01-01T00:00:00.001+00:00'
    """
    from ulid import base32

    milli = int.from_bytes(base32.decode(check_ulid(text))[:6])
    try:
        return _EPOCH + timedelta(milliseconds=milli)
    except OverflowError:
        raise InputError(reason=f"ULID '{text}' lies behind the year 9999") from None


def now() -> datetime:
    """The time in UTC, in whole milliseconds."""
    return _EPOCH + timedelta(milliseconds=now_millis())


def machine_nanos() -> int:
    """The clock of this machine, never one that was put in its place.

    Only for comparing with times that its file system gave.
    """
    return time.time_ns()


def now_millis() -> int:
    """Milliseconds since 1970, in UTC."""
    return now_micros() // 1000


def now_micros() -> int:
    """Microseconds since 1970, in UTC."""
    return _current.micros()


def monotonic() -> float:
    """Seconds on a clock that never goes back; only differences mean something."""
    return _current.monotonic()


def random_bytes(count: int) -> bytes:
    """Bytes that nobody can guess (unless a test fixed them)."""
    return _current.random(count)


def nonce() -> str:
    """32 hexadecimal digits that nobody else has."""
    return random_bytes(16).hex()


def random_fraction() -> float:
    """A number from 0 up to, but not including, 1: for jitter, not for secrets.

    >>> 0 <= random_fraction() < 1
    True
    """
    return (int.from_bytes(random_bytes(7)) >> 3) / (1 << 53)


@contextmanager
def fixed(
    clock: datetime | ManualClock | None = None, seed: int | None = None
) -> Iterator[ManualClock]:
    """Make ids, time and randomness repeatable, in all threads, until the block ends.

    Without a clock, time stands still at 1970; without a seed, the seed is 0.

    >>> with fixed(datetime(2024, 1, 1, tzinfo=UTC), seed=7) as clock:
    ...     clock.advance(minutes=1)
    ...     now().isoformat(), new_ulid()[:10]
    ('2024-01-01T00:01:00+00:00', '01HK155QK0')
    """
    import random

    global _current  # noqa: PLW0603
    hands = clock if isinstance(clock, ManualClock) else ManualClock(clock or _EPOCH)
    dice = random.Random(seed or 0)  # noqa: S311 - repeatable on purpose
    before, _current = _current, _Source(hands.micros, hands.monotonic, dice.randbytes)
    try:
        yield hands
    finally:
        _current = before
