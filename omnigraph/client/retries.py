"""Decide whether and when a request is sent again.

Only requests that cannot apply a write twice are repeated: reads, writes with an idempotency key, writes whose second
run has no effect, requests that never reached the server, and requests that the server rejected before it started them.
This module never sends anything.
"""

from email.utils import parsedate_to_datetime

from omnigraph.errors import (
    OmnigraphError,
    QueryTimeout,
    RecoveryRequired,
    ServerBusy,
    Shutdown,
    TooManyRequests,
)
from omnigraph.records.frozen import record
from omnigraph.values import clock_and_ids

_REPEATABLE_STATUSES = frozenset({429, 502, 503, 504})
_REJECTED_BEFORE_START = (TooManyRequests, ServerBusy, Shutdown)


@record
class RetryPolicy:
    """How many times a request is repeated, and the delay before each repetition.

    If the server requests a longer wait than `max_wait`, the request is not repeated. If `repeats_writes` is false,
    only reads are repeated.

    >>> RetryPolicy(retries=2).may_retry(2)
    False
    """

    retries: int = 3
    first_delay: float = 0.1
    max_delay: float = 5.0
    max_wait: float = 60.0
    repeats_writes: bool = True

    def may_retry(self, attempt: int, retry_after: float | None = None) -> bool:
        """Return whether the request may be sent again after `attempt` repetitions."""
        return attempt < self.retries and (retry_after is None or retry_after <= self.max_wait)

    def delay_before(self, attempt: int, retry_after: float | None) -> float:
        """Return the number of seconds before the next attempt: the server's `Retry-After`, or a random backoff."""
        if retry_after is not None:
            return retry_after
        ceiling = min(self.first_delay * 2.0**attempt, self.max_delay)
        return ceiling * (0.5 + clock_and_ids.random_fraction() / 2)  # jitter spreads out the retries of many clients


ONLY_READS = RetryPolicy(repeats_writes=False)


def is_worth_repeating(error: OmnigraphError, status: int, *, is_repeatable: bool) -> bool:
    """Return whether the same request may succeed later and is safe to send again.

    `is_repeatable` is true for reads, writes with an idempotency key, and writes whose second run has no effect.

    >>> is_worth_repeating(TooManyRequests(), 429, is_repeatable=False)
    True
    >>> is_worth_repeating(QueryTimeout(limit=1), 503, is_repeatable=True)
    False
    """
    if isinstance(error, _REJECTED_BEFORE_START) and error.effect == "none":
        return True
    if status not in _REPEATABLE_STATUSES or isinstance(error, QueryTimeout | RecoveryRequired):
        return False
    return is_repeatable


def read_retry_after(value: str | None) -> float | None:
    """Return the delay in seconds that a `Retry-After` header specifies as a number or a date.

    >>> read_retry_after("2"), read_retry_after("soon"), read_retry_after(None)
    (2.0, None, None)
    """
    if not value:
        return None
    try:
        return max(0.0, float(value))
    except ValueError:
        pass
    try:
        return max(0.0, parsedate_to_datetime(value).timestamp() - clock_and_ids.now().timestamp())
    except (TypeError, ValueError):
        return None
