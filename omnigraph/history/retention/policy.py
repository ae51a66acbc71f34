"""What a cleanup keeps: the newest commits by count, recent ones by age, a grace for readers.

Pure. Ages are differences of store times, counted from when a commit was superseded.
"""

import re
from dataclasses import dataclass
from datetime import timedelta

from omnigraph.errors import InputError

GRACE = timedelta(minutes=60)
Duration = str | int | float | timedelta
_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}
_DURATION = re.compile(r"([0-9]+)\s*([smhdw])")
_ADVICE = "keep=10 keeps the newest ten commits of every branch; older_than='7d' keeps a week"


@dataclass(frozen=True, slots=True)
class Policy:
    """At least one of `keep` and `older_than`; a commit goes if neither keeps it.

    Directories of tables that nothing references any more stay, unless `purge_dropped`.

    >>> Policy(keep=2).keeps(1, timedelta(days=9)), Policy(keep=2).keeps(2, timedelta(days=9))
    (True, False)
    >>> Policy(keep=2, older_than=timedelta(days=7)).keeps(5, timedelta(days=6))
    True
    """

    keep: int | None = None
    older_than: timedelta | None = None
    grace: timedelta = GRACE
    purge_dropped: bool = False

    @property
    def age(self) -> timedelta:
        """The age up to which everything is kept, whatever the count."""
        return max(self.grace, self.older_than or timedelta())

    def keeps(self, place: int | None, age: timedelta) -> bool:
        """Whether a commit stays, by its first-parent depth on a branch (0 is the head) and age."""
        counted = place is not None and place < max(1, self.keep or 1)
        return counted or age < self.age


def policy_of(
    keep: int | None = None,
    older_than: Duration | None = None,
    grace: Duration | None = None,
    *,
    purge_dropped: bool = False,
) -> Policy:
    """Build a policy from the arguments of a caller; there is deliberately no default."""
    if keep is None and older_than is None:
        raise InputError(
            "cleanup needs to know what to keep", reason="neither keep nor older_than", hint=_ADVICE
        )
    if keep is not None and (isinstance(keep, bool) or not isinstance(keep, int) or keep < 0):
        raise InputError(f"keep={keep!r} is not a number of commits", reason="expected 0 or more")
    span = None if older_than is None else duration_of(older_than)
    spared = GRACE if grace is None else duration_of(grace)
    return Policy(keep, span, spared, purge_dropped)


def duration_of(value: Duration) -> timedelta:
    """Parse a duration: seconds as a number, or text such as `90s`, `30m`, `12h`, `7d`, `2w`.

    >>> duration_of("7d") == duration_of(7 * 24 * 3600) == timedelta(days=7)
    True
    """
    try:
        if isinstance(value, timedelta):
            return _positive(value)
        if isinstance(value, int | float) and not isinstance(value, bool):
            return _positive(timedelta(seconds=value))
        text = str(value).strip()
        found = _DURATION.fullmatch(text)
        if found is not None:
            return timedelta(**{_UNITS[found[2]]: int(found[1])})
        if text.isdecimal() and int(text) == 0:
            return timedelta()  # zero needs no unit
    except (OverflowError, ValueError) as error:
        raise InputError(f"{value!r} is not a duration", reason="out of range") from error
    raise _unclear(text)


def _unclear(text: str) -> InputError:
    hint = "give a number and one of s, m, h, d, w: 90s, 30m, 12h, 7d, 2w"
    if text.isdecimal():
        hint = f"{text}d are days, {text}s are seconds; also m, h and w"
        return InputError(f"'{text}' has no unit: {text}d? {text}s?", reason="no unit", hint=hint)
    return InputError(f"'{text}' is not a duration", reason="unknown format", hint=hint)


def _positive(span: timedelta) -> timedelta:
    if span < timedelta():
        raise ValueError
    return span
