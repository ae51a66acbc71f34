"""A cache for values derived from plan objects, keyed by object identity.

Hashing a predicate or a list of columns would cost more than evaluating it on a few rows. Identity is sufficient,
because a prepared query always uses the same objects. Each entry keeps its object alive, so that the object's id cannot
be reused.
"""

from collections.abc import Callable
from typing import Any, Generic, TypeVar

T = TypeVar("T")
_MAX_ENTRIES = 4096


class IdentityCache(Generic[T]):
    """A cache of the values that `derive` returns for immutable objects. When the cache is full, it is emptied.

    >>> lengths = IdentityCache(len)
    >>> lengths("abc"), lengths("abc")
    (3, 3)
    """

    __slots__ = ("_derive", "_entries")

    def __init__(self, derive: Callable[[Any], T]) -> None:
        self._derive = derive
        self._entries: dict[int, tuple[object, T]] = {}

    def __call__(self, plan_part: object) -> T:
        """Return the derived value for an object."""
        entry = self._entries.get(id(plan_part))
        if entry is None:
            if len(self._entries) >= _MAX_ENTRIES:
                self._entries.clear()
            entry = self._entries[id(plan_part)] = (plan_part, self._derive(plan_part))
        return entry[1]
