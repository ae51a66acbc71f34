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


class Effects:
    """Runs effects one by one, remembers them, and fails where it was told to.

    >>> effects = Effects()
    >>> effects.run("object", "_refs/x", lambda: 7)
    7
    >>> effects.done
    [Effect(kind='object', target='_refs/x')]
    """

    def __init__(self, fault: Fault | None = None, *, read_only: bool = False) -> None:
        self.read_only = read_only
        self.done: list[Effect] = []  # the newest ones: a process may write for weeks
        self._counted: Counter[str] = Counter()
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
            for seen in self._watchers:
                seen.append(one)

    def counts(self) -> Counter[str]:
        """How many effects of each kind were done."""
        with self._lock:
            return self._counted.copy()

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
