"""Requests seen by a proxy, and their counts: logical requests, attempts, sequential hops."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Seen:
    """One attempt of a request. `status` is what the client was told: 0 is no answer at all.

    `method` is the HTTP method, except that a GET that lists is a LIST. `forwarded` is what the
    server answered, None when it was never asked. Times are seconds of a monotonic clock;
    `in_flight` counts the requests under way when this one began, itself included.
    """

    method: str
    key: str
    status: int
    forwarded: int | None
    begun: float
    ended: float
    in_flight: int = 1
    retry: bool = False


@dataclass(slots=True)
class Traffic:
    """The attempts made in a block, filled in when the block ends.

    >>> made = Traffic([Seen("PUT", "a", 0, 200, 0, 1), Seen("PUT", "a", 412, 412, 2, 3, 1, True)])
    >>> made.counts, made.attempts, made.hops
    (Counter({'PUT': 1}), Counter({'PUT': 2}), 2)
    """

    seen: list[Seen] = field(default_factory=list)

    @property
    def counts(self) -> Counter[str]:
        """Logical requests by method: a repeated attempt is not counted again."""
        return Counter(one.method for one in self.seen if not one.retry)

    @property
    def attempts(self) -> Counter[str]:
        """Attempts by method: every request on the wire."""
        return Counter(one.method for one in self.seen)

    @property
    def hops(self) -> int:
        """How many requests waited for one another."""
        return hops(self.seen)

    @property
    def lines(self) -> str:
        """The attempts in order of time, for the message of a failed test."""
        ordered = sorted(self.seen, key=lambda one: one.begun)
        return "\n".join(f"{one.method} {one.key} {one.status}" for one in ordered)


def hops(seen: Sequence[Seen]) -> int:
    """The longest chain of requests of which each began after the one before it ended.

    >>> hops([Seen("GET", "a", 200, 200, 0, 2), Seen("GET", "b", 200, 200, 1, 3)])
    1
    >>> hops([Seen("GET", "a", 200, 200, 0, 2), Seen("GET", "b", 200, 200, 2, 3)])
    2
    """
    chain, free = 0, float("-inf")
    for one in sorted(seen, key=lambda each: each.ended):
        if one.begun >= free:
            chain, free = chain + 1, one.ended
    return chain
