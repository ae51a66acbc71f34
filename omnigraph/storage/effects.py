"""The gateway through which every durable effect of the package passes.

Owns the order and count of effects and, in tests, their failure: before the k-th effect, after it,
or by ending the process right after it. Nothing may write to a root in any other way.
"""

import os
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Literal, TypeVar

from omnigraph.errors import ReadOnlyError

Result = TypeVar("Result")
Kind = Literal[
    "create",  # a new Lance dataset
    "stage",  # data files that no version names yet
    "mark",  # a deletion file that no version names yet
    "detach",  # a detached table version
    "state",  # the data file of a new manifest version
    "publish",  # the compare-and-swap that makes it visible
    "object",  # a control object created
    "renew",  # a lease written or renewed
    "remove",  # a control object or file removed
    "index",  # index files that no version names yet
]
_KEPT = 10_000
_TARGETS = 4_096  # targets counted separately; a long-lived process may touch more
ELSEWHERE = "…"
_DATASETS = frozenset({"nodes", "edges", "__branches"})
How = Literal["before", "after", "exit"]


@dataclass(frozen=True, slots=True)
class Effect:
    """One durable effect: what was done, and to which root-relative name."""

    kind: Kind
    target: str


@dataclass(frozen=True, slots=True)
class Fault:
    """Fail at the k-th effect (from 1): raise before it, raise after it, or exit the process."""

    at: int
    how: How
    error: BaseException = field(default_factory=lambda: OSError("injected fault"))


def place_of(target: str) -> str:
    """Return the table or manifest that a name belongs to; for a control object, its directory.

    >>> place_of("nodes/40d7-01J0/_versions/1.manifest"), place_of("__branches/01J0")
    ('nodes/40d7-01J0', '__branches/01J0')
    >>> place_of("_refs/branches/a/0000000001.json"), place_of("__init_claim.json")
    ('_refs', '__init_claim.json')
    """
    top, *rest = target.split("/")
    return f"{top}/{rest[0]}" if rest and top in _DATASETS else top


class Effects:
    """Runs effects, records them, and fails where a `Fault` says so.

    >>> effects = Effects()
    >>> effects.run("object", "_refs/x", lambda: 7)
    7
    >>> [(effect.kind, effect.target) for effect in effects.done]
    [('object', '_refs/x')]
    >>> effects.by_target()
    Counter({('object', '_refs'): 1})
    """

    def __init__(self, fault: Fault | None = None, *, read_only: bool = False) -> None:
        self.read_only = read_only
        self.done: list[Effect] = []  # only the most recent: a process may write for weeks
        self._counted: Counter[str] = Counter()
        self._by_target: Counter[tuple[str, str]] = Counter()
        self._places: set[str] = set()
        self._watchers: list[list[Effect]] = []
        self._fault = fault
        self._lock = threading.Lock()
        self._begun = 0

    def run(self, kind: Kind, target: str, action: Callable[[], Result]) -> Result:
        """Run one effect. Its exceptions pass through; only successful effects are counted."""
        if self.read_only:
            raise ReadOnlyError(f"{target} was not written: the graph was opened for reading")
        fault = self._next()
        if fault is not None and fault.how == "before":
            raise fault.error
        result = action()
        self._remember(Effect(kind, target))
        if fault is not None and fault.how == "exit":
            os._exit(9)
        if fault is not None and fault.how == "after":
            raise fault.error
        return result

    def _remember(self, one: Effect) -> None:
        with self._lock:
            self.done.append(one)
            if len(self.done) > 2 * _KEPT:
                del self.done[:_KEPT]
            self._counted[one.kind] += 1
            self._by_target[one.kind, self._counted_as(one.target)] += 1
            for seen in self._watchers:
                seen.append(one)

    def _counted_as(self, target: str) -> str:
        """Return the group of a target, or `OTHER_TARGETS` when there are too many groups."""
        name = place_of(target)
        if name not in self._places and len(self._places) >= _TARGETS:
            return ELSEWHERE
        self._places.add(name)
        return name

    @property
    def publishes(self) -> int:
        """How many swaps were done; tells a caller whether a failed call may have written."""
        return self._counted["publish"]

    def counts(self) -> Counter[str]:
        """Return how many effects of each kind were done."""
        with self._lock:
            return self._counted.copy()

    def by_target(self) -> Counter[tuple[str, str]]:
        """Return how many effects of each kind were done to each table, manifest or directory.

        Targets beyond the first few thousand are counted together, as `…`.
        """
        with self._lock:
            return self._by_target.copy()

    @contextmanager
    def recorded(self) -> Iterator[list[Effect]]:
        """Yield a list that receives the effects done inside the block as they happen."""
        seen: list[Effect] = []
        with self._lock:
            self._watchers.append(seen)
        try:
            yield seen
        finally:
            with self._lock:
                self._watchers = [one for one in self._watchers if one is not seen]

    @contextmanager
    def failing(self, fault: Fault) -> Iterator[None]:
        """Count effects from here and fail as `fault` says; later effects run normally."""
        with self._lock:
            self._fault, self._begun = fault, 0
        try:
            yield
        finally:
            self._fault = None

    def _next(self) -> Fault | None:
        with self._lock:
            self._begun += 1
            fault = self._fault
            return fault if fault is not None and fault.at == self._begun else None
