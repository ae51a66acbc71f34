"""Generate ids, read the clock and provide random values. No other module reads a clock or uses a source of randomness.

Tests can make all three repeatable with `deterministic_ids`. Ids sort by time, but must never be used to decide which
of two events came first, because clocks can be wrong.
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
_ULID_PATTERN = re.compile(r"[0-7][0-9A-HJKMNP-TV-Z]{25}")
_BASE32_DIGITS = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"  # Crockford's base 32, which omits I, L, O and U
_DIGIT_SHIFTS = range(125, -1, -5)
_TIME_DIGITS = 10  # number of leading digits in a ULID that encode its time in milliseconds
_RANDOM_BITS = 80
_MAX_ULID_MILLIS = (1 << 48) - 1  # the latest time that fits in a ULID's 48 bits


@dataclass(slots=True)
class ManualClock:
    """A clock for tests that moves only when it is advanced.

    >>> clock = ManualClock(datetime(2024, 1, 1, tzinfo=UTC))
    >>> clock.advance(seconds=2)
    >>> clock.micros(), clock.monotonic()
    (1704067202000000, 2.0)
    """

    start: datetime = _EPOCH
    elapsed: timedelta = timedelta(0)

    def advance(self, **duration: float) -> None:
        """Move the clock forward. The arguments are those of `timedelta`."""
        self.elapsed += timedelta(**duration)

    def micros(self) -> int:
        """Return the clock's time as microseconds since 1970 in UTC."""
        return (self.start + self.elapsed - _EPOCH) // timedelta(microseconds=1)

    def monotonic(self) -> float:
        """Return the number of seconds by which the clock has been advanced."""
        return self.elapsed.total_seconds()


@dataclass(slots=True)
class _IdSource:
    """A source of time and randomness that remembers the last ULID it issued."""

    micros: Callable[[], int]
    monotonic: Callable[[], float]
    random: Callable[[int], bytes]
    lock: threading.Lock = field(default_factory=threading.Lock)
    last_ulid: tuple[int, int] = (-1, 0)

    def next_ulid(self, count: int = 1) -> int:
        """Reserve `count` consecutive ULIDs, all greater than any earlier one, and return the first as an integer."""
        with self.lock:
            millis, random_part = self.last_ulid
            current_millis = max(self.micros() // 1000, 0)
            if current_millis > millis:
                millis, random_part = current_millis, int.from_bytes(self.random(_RANDOM_BITS // 8))
            else:
                # In the same millisecond, or after the clock moved backward, increment the last ULID.
                carry, random_part = divmod(random_part + 1, 1 << _RANDOM_BITS)
                millis += carry
            carry, last_random_part = divmod(random_part + count - 1, 1 << _RANDOM_BITS)
            self.last_ulid = (millis + carry, last_random_part)
        return min(millis, _MAX_ULID_MILLIS) << _RANDOM_BITS | random_part


def _system_source() -> _IdSource:
    return _IdSource(lambda: time.time_ns() // 1000, time.monotonic, os.urandom)


_active_source = _system_source()


def _reset_after_fork() -> None:
    # Without this reset, a parent process and its forked child would both continue from the same ULID. The lock is
    # replaced too, because a thread that does not exist in the child may have been holding it.
    global _active_source  # noqa: PLW0603
    _active_source = _IdSource(_active_source.micros, _active_source.monotonic, _active_source.random)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_reset_after_fork)


def new_ulid() -> str:
    """Return a new ULID. ULIDs sort by time, and each one is greater than the last one from this process.

    >>> first, second = new_ulid(), new_ulid()
    >>> is_ulid(first) and first < second
    True
    """
    number = _active_source.next_ulid()
    return "".join(_BASE32_DIGITS[number >> shift & 31] for shift in _DIGIT_SHIFTS)


def reserve_ulids(count: int) -> int:
    """Reserve `count` consecutive ULIDs for the caller, and return the first as an integer."""
    return _active_source.next_ulid(count)


def is_ulid(text: str) -> bool:
    """Return whether a string is a ULID in canonical form.

    >>> is_ulid("01J8ZC9Q3M0000000000000000"), is_ulid("01j8zc9q3m0000000000000000")
    (True, False)
    """
    return _ULID_PATTERN.fullmatch(text) is not None


def check_ulid(ulid: str) -> str:
    """Return the string if it is a ULID. Otherwise, raise `InputError`."""
    if not is_ulid(ulid):
        raise InputError(reason=f"'{ulid[:40]}' is not a ULID (26 characters from 0-9 and A-Z, without I, L, O and U)")
    return ulid


def ulid_time(ulid: str) -> datetime:
    """Return when a ULID was created, according to the clock of the machine that created it.

    >>> ulid_time("00000000010000000000000000").isoformat(timespec="milliseconds")
    '1970-01-01T00:00:00.001+00:00'
    """
    epoch_millis = 0
    for digit in check_ulid(ulid)[:_TIME_DIGITS]:
        epoch_millis = epoch_millis << 5 | _BASE32_DIGITS.index(digit)
    try:
        return _EPOCH + timedelta(milliseconds=epoch_millis)
    except OverflowError:
        raise InputError(reason=f"ULID '{ulid}' is later than the year 9999") from None


def now() -> datetime:
    """Return the current time in UTC, truncated to milliseconds."""
    return _EPOCH + timedelta(milliseconds=now_millis())


def system_clock_nanos() -> int:
    """Return this machine's clock time in nanoseconds, even if a test has replaced this module's clock.

    Compare this time only with timestamps from the local file system, which uses the same clock.
    """
    return time.time_ns()


def now_millis() -> int:
    """Return the current time as milliseconds since 1970 in UTC."""
    return now_micros() // 1000


def now_micros() -> int:
    """Return the current time as microseconds since 1970 in UTC."""
    return _active_source.micros()


def monotonic() -> float:
    """Return the time in seconds from a clock that never moves backward. Only differences are meaningful."""
    return _active_source.monotonic()


def random_bytes(byte_count: int) -> bytes:
    """Return unpredictable bytes. Inside `deterministic_ids`, the bytes are repeatable."""
    return _active_source.random(byte_count)


def new_nonce() -> str:
    """Return 32 random hexadecimal digits."""
    return random_bytes(16).hex()


def random_fraction() -> float:
    """Return a random number in [0, 1) for jitter. Do not use it for secrets.

    >>> 0 <= random_fraction() < 1
    True
    """
    return (int.from_bytes(random_bytes(7)) >> 3) / (1 << 53)


@contextmanager
def deterministic_ids(clock: datetime | ManualClock | None = None, seed: int | None = None) -> Iterator[ManualClock]:
    """Make ids, time and randomness repeatable in all threads until the block ends.

    If no clock is given, the time is fixed at the start of 1970. If no seed is given, the seed is 0.

    >>> with deterministic_ids(datetime(2024, 1, 1, tzinfo=UTC), seed=7) as clock:
    ...     clock.advance(minutes=1)
    ...     now().isoformat(), new_ulid()[:10]
    ('2024-01-01T00:01:00+00:00', '01HK155QK0')
    """
    import random

    global _active_source  # noqa: PLW0603
    manual_clock = clock if isinstance(clock, ManualClock) else ManualClock(clock or _EPOCH)
    random_generator = random.Random(seed or 0)  # noqa: S311 - repeatable on purpose
    previous_source = _active_source
    _active_source = _IdSource(manual_clock.micros, manual_clock.monotonic, random_generator.randbytes)
    try:
        yield manual_clock
    finally:
        _active_source = previous_source
