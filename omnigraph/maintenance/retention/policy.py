"""The retention policy for a cleanup: how many commits to keep, for how long, and with what grace period.

This module does no I/O. Ages are differences between store times, measured from the time at which a
commit was superseded.
"""

import re
from dataclasses import dataclass
from datetime import timedelta

from omnigraph.errors import InputError
from omnigraph.publish.trim_versions import DEFAULT_GRACE

Duration = str | int | float | timedelta
_UNIT_NAMES = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}
_DURATION_PATTERN = re.compile(r"([0-9]+)\s*([smhdw])")
_POLICY_HINT = "keep=10 keeps the newest ten commits on every branch; older_than='7d' keeps commits newer than a week"


@dataclass(frozen=True, slots=True)
class RetentionPolicy:
    """The rules for keeping commits by count (`keep`) and by age (`older_than`), at least one of which must be set.

    A commit is kept if either rule keeps it, or if it was superseded within the grace period. The directories of
    unreferenced tables are kept unless `purge_dropped` is set.

    >>> [RetentionPolicy(keep=2).keeps(position, timedelta(days=9)) for position in (1, 2)]
    [True, False]
    >>> RetentionPolicy(keep=2, older_than=timedelta(days=7)).keeps(5, timedelta(days=6))
    True
    """

    keep: int | None = None
    older_than: timedelta | None = None
    grace: timedelta = DEFAULT_GRACE
    purge_dropped: bool = False

    @property
    def minimum_age(self) -> timedelta:
        """The age below which every commit is kept, regardless of the count."""
        return max(self.grace, self.older_than or timedelta())

    def keeps(self, first_parent_depth: int | None, age: timedelta) -> bool:
        """Return whether a commit is kept, given its age and its first-parent depth (0 for the head)."""
        within_count = first_parent_depth is not None and first_parent_depth < max(1, self.keep or 1)
        return within_count or age < self.minimum_age


def make_policy(
    keep: int | None = None,
    older_than: Duration | None = None,
    grace: Duration | None = None,
    *,
    purge_dropped: bool = False,
) -> RetentionPolicy:
    """Build a policy from a caller's arguments. There is deliberately no default policy."""
    if keep is None and older_than is None:
        reason = "neither `keep` nor `older_than` is set"
        raise InputError("cleanup requires a retention policy", reason=reason, hint=_POLICY_HINT)
    if keep is not None and (isinstance(keep, bool) or not isinstance(keep, int) or keep < 0):
        raise InputError(f"keep={keep!r} is not a valid number of commits", reason="expected 0 or more")
    minimum_age = None if older_than is None else parse_duration(older_than)
    grace_period = DEFAULT_GRACE if grace is None else parse_duration(grace)
    return RetentionPolicy(keep, minimum_age, grace_period, purge_dropped)


def parse_duration(value: Duration) -> timedelta:
    """Parse a duration: a number of seconds, or a string such as `90s`, `30m`, `12h`, `7d` or `2w`.

    >>> parse_duration("7d") == parse_duration(7 * 24 * 3600) == timedelta(days=7)
    True
    """
    try:
        if isinstance(value, timedelta):
            return _require_positive(value)
        if isinstance(value, int | float) and not isinstance(value, bool):
            return _require_positive(timedelta(seconds=value))
        duration_text = str(value).strip()
        duration_match = _DURATION_PATTERN.fullmatch(duration_text)
        if duration_match is not None:
            return timedelta(**{_UNIT_NAMES[duration_match[2]]: int(duration_match[1])})
        if duration_text.isdecimal() and int(duration_text) == 0:
            return timedelta()  # zero needs no unit
    except (OverflowError, ValueError) as error:
        raise InputError(f"{value!r} is not a duration", reason="out of range") from error
    raise _duration_error(duration_text)


def _duration_error(duration_text: str) -> InputError:
    hint = "use a number and a unit (s, m, h, d or w), such as 90s, 30m, 12h, 7d or 2w"
    if duration_text.isdecimal():
        hint = f"use {duration_text}d for days or {duration_text}s for seconds; the units m, h and w are also supported"
        message = f"'{duration_text}' has no unit: did you mean {duration_text}d or {duration_text}s?"
        return InputError(message, reason="no unit", hint=hint)
    return InputError(f"'{duration_text}' is not a duration", reason="unknown format", hint=hint)


def _require_positive(duration: timedelta) -> timedelta:
    if duration < timedelta():
        raise ValueError
    return duration
