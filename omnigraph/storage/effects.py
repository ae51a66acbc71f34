"""The door that every durable effect of the product passes through.

Owns their order, their count, and, in tests, their failure: before the k-th effect, after it, or
the end of the process right behind it. Nothing may write to a root by another way.
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
    "state",  # the fragment of a new manifest state
    "publish",  # the compare-and-swap that makes it visible
    "object",  # a control object created
    "renew",  # a lease written again
    "remove",  # a control object or file removed
    "index",  # index files that no version names yet
]
_KEPT = 10_000
_TARGETS = 4_096  # of which effects are counted apart; a process may meet more
ELSEWHERE = "…"
_DATASETS = frozenset({"nodes", "edges", "__branches"})
How = Literal["before", "after", "exit"]


@dataclass(frozen=True, slots=True)
class Effect:
    """One durable effect: what was done, to which root-relative name."""

    kind: Kind
    target: str


@dataclass(frozen=True, slots=True)
class Fault:
    """Fail at the k-th effect (from 1): raise before it, raise after it, or end the process."""

    at: int
    how: How
    error: BaseException = field(default_factory=lambda: OSError("injected fault"))


def place_of(target: str) -> str:
    """The table or manifest that a name belongs to; of a control object the directory.

    >>> place_of("nodes/40d7-01J0/_versions/1.manifest"), place_of("__branches/01J0")
    ('nodes/40d7-01J0', '__branches/01J0')
    >>> place_of("_refs/branches/a/0000000001.json"), place_of("__init_claim.json")
    ('_refs', '__init_claim.json')
    """
    top, *rest = target.split("/")
    return f"{top}/{rest[0]}" if rest and top in _DATASETS else top


class Effects:
    """Runs effects one by one, remembers them, and fails where it was told to.

    >>> effects = Effects()
    >>> effects.run("object", "_refs/x", lambda: 7)
    7
    >>> effects.done
    [Effect(kind='object', target='_refs/x')]
    >>> effects.by_target()
    Counter({('object', '_refs'): 1})
    """

    def __init__(self, fault: Fault | None = None, *, read_only: bool = False) -> None:
        self.read_only = read_only
        self.done: list[Effect] = []  # the newest ones: a process may write for weeks
        self._counted: Counter[str] = Counter()
        self._by_target: Counter[tuple[str, str]] = Counter()
        self._places: set[str] = set()
        self._watchers: list[list[Effect]] = []
        self._fault = fault
        self._lock = threading.Lock()
        self._begun = 0

    def run(self, kind: Kind, target: str, action: Callable[[], Result]) -> Result:
        """Do one effect. What it raises passes through; only what succeeded is counted."""
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
        """The place of a target, or the one that stands for all when there are too many."""
        name = place_of(target)
        if name not in self._places and len(self._places) >= _TARGETS:
            return ELSEWHERE
        self._places.add(name)
        return name

    @property
    def publishes(self) -> int:
        """How many swaps were done: whether this grew tells what a failed call may have done."""
        return self._counted["publish"]

    def counts(self) -> Counter[str]:
        """How many effects of each kind were done."""
        with self._lock:
            return self._counted.copy()

    def by_target(self) -> Counter[tuple[str, str]]:
        """How many effects of each kind were done to each table, manifest or kind of object.

        What came after the first few thousand places is counted together, as `…`.
        """
        with self._lock:
            return self._by_target.copy()

    @contextmanager
    def recorded(self) -> Iterator[list[Effect]]:
        """The effects done inside the block, filled in as they happen."""
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
        """Count from here, and fail as `fault` says; the rest of the block runs as usual."""
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
