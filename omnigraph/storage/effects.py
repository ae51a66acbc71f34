"""The gateway for effects, which are the durable writes to a root.

This module runs, records and counts effects. In tests, it also injects failures: an error before or after the k-th
effect, or a process exit right after it. Every write to a root must go through this gateway.
"""

import os
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import field
from typing import Literal, TypeVar

from omnigraph.errors import ReadOnlyError
from omnigraph.records.frozen import record

ActionResult = TypeVar("ActionResult")
EffectKind = Literal[
    "create",  # create a Lance dataset
    "stage",  # write data files that no version references yet
    "mark",  # write a deletion file that no version references yet
    "detach",  # create a detached table version
    "state",  # write the data file for a new manifest version
    "publish",  # make that version visible by compare-and-swap
    "object",  # create a control object
    "renew",  # write or renew a lease
    "remove",  # remove a control object or file
    "index",  # write index files that no version references yet
]
_RECENT_LIMIT = 1_000
_MAX_TARGET_GROUPS = 4_096  # maximum number of groups counted separately; a long-lived process may touch more
OTHER_TARGETS = "…"
_DATASET_DIRECTORIES = frozenset({"nodes", "edges", "__branches"})
FaultMode = Literal["before", "after", "exit"]


@record
class DurableEffect:
    """One durable write: its kind and the root-relative name of its target."""

    kind: EffectKind
    target: str


@record
class Fault:
    """A failure to inject at the k-th effect (counted from 1): an error before or after it, or a process exit."""

    effect_number: int
    mode: FaultMode
    error: BaseException = field(default_factory=lambda: OSError("injected fault"))


def target_group(target: str) -> str:
    """Return the table or manifest that a name belongs to, or the top-level directory of a control object.

    >>> target_group("nodes/40d7-01J0/_versions/1.manifest"), target_group("__branches/01J0")
    ('nodes/40d7-01J0', '__branches/01J0')
    >>> target_group("_refs/branches/a/0000000001.json"), target_group("__init_claim.json")
    ('_refs', '__init_claim.json')
    """
    top_directory, *path_segments = target.split("/")
    return (
        f"{top_directory}/{path_segments[0]}"
        if path_segments and top_directory in _DATASET_DIRECTORIES
        else top_directory
    )


class Effects:
    """The runner of all effects, which records them and injects a failure if a `Fault` is set.

    >>> effects = Effects()
    >>> effects.run("object", "_refs/x", lambda: 7)
    7
    >>> [(effect.kind, effect.target) for effect in effects.completed]
    [('object', '_refs/x')]
    >>> effects.counts_by_target()
    Counter({('object', '_refs'): 1})
    """

    def __init__(self, fault: Fault | None = None, *, read_only: bool = False) -> None:
        self.read_only = read_only
        self.completed: list[DurableEffect] = []  # only the most recent effects, because a process may run for weeks
        # The number of swaps so far. If it increased during a call that failed, that call may have published something.
        self.publish_count = 0
        self._counts_by_kind: Counter[str] = Counter()
        self._counts_by_target: Counter[tuple[str, str]] = Counter()
        self._target_groups: set[str] = set()
        self._recorders: list[list[DurableEffect]] = []
        self._fault = fault
        self._lock = threading.Lock()
        self._started_count = 0

    def run(self, kind: EffectKind, target: str, action: Callable[[], ActionResult]) -> ActionResult:
        """Run one effect. Exceptions propagate, and only successful effects are counted."""
        if self.read_only:
            raise ReadOnlyError(f"{target} was not written: the graph was opened read-only")
        fault = self._start_effect()
        if fault is not None and fault.mode == "before":
            raise fault.error
        result = action()
        self._record_effect(DurableEffect(kind, target))
        if fault is not None and fault.mode == "exit":
            os._exit(9)
        if fault is not None and fault.mode == "after":
            raise fault.error
        return result

    def _record_effect(self, effect: DurableEffect) -> None:
        with self._lock:
            self.completed.append(effect)
            if len(self.completed) > 2 * _RECENT_LIMIT:
                del self.completed[:_RECENT_LIMIT]
            self._counts_by_kind[effect.kind] += 1
            self.publish_count = self._counts_by_kind["publish"]
            self._counts_by_target[effect.kind, self._assign_target_group(effect.target)] += 1
            for recorder in self._recorders:
                recorder.append(effect)

    def _assign_target_group(self, target: str) -> str:
        """Return the group in which to count effects on a target, or `OTHER_TARGETS` if there are too many groups."""
        group = target_group(target)
        if group not in self._target_groups and len(self._target_groups) >= _MAX_TARGET_GROUPS:
            return OTHER_TARGETS
        self._target_groups.add(group)
        return group

    def counts_by_kind(self) -> Counter[str]:
        """Return the number of effects by kind."""
        with self._lock:
            return self._counts_by_kind.copy()

    def counts_by_target(self) -> Counter[tuple[str, str]]:
        """Return the number of effects by kind and by target, which is a table, a manifest or a directory.

        After the first few thousand targets, all others are counted together as `…`.
        """
        with self._lock:
            return self._counts_by_target.copy()

    @contextmanager
    def recording(self) -> Iterator[list[DurableEffect]]:
        """Yield a list that collects the effects that occur while the block runs."""
        recorder: list[DurableEffect] = []
        with self._lock:
            self._recorders.append(recorder)
        try:
            yield recorder
        finally:
            with self._lock:
                self._recorders = [
                    other_recorder for other_recorder in self._recorders if other_recorder is not recorder
                ]

    @contextmanager
    def failing(self, fault: Fault) -> Iterator[None]:
        """Start counting effects and fail once, as `fault` specifies. Later effects run normally."""
        with self._lock:
            self._fault, self._started_count = fault, 0
        try:
            yield
        finally:
            self._fault = None

    def _start_effect(self) -> Fault | None:
        with self._lock:
            self._started_count += 1
            fault = self._fault
            return fault if fault is not None and fault.effect_number == self._started_count else None
