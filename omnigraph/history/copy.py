"""A copy of a whole graph: every branch and its history, while others write.

Each branch is copied as it was at one moment. States are read first and their files listed after
that, so that all they name is there; what makes the copy readable, the manifest of main, is last.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from omnigraph import ids
from omnigraph.errors import (
    AlreadyExists,
    ConcurrentCommit,
    GraphNotInitialized,
    InitializationClaimed,
    InputError,
)
from omnigraph.storage import layout
from omnigraph.storage.cell import files_of
from omnigraph.storage.probe import probe_create_if_absent
from omnigraph.storage.store import Store
from omnigraph.storage.transfer import transfer

from . import refs
from .manifest import Opened, read_manifest

# Immutable objects that states name; intents, leases and claims belong to running processes.
_DATA = ("nodes", "edges", layout.SCHEMAS, layout.COMMITS, layout.AUDIT)
_ATTEMPTS = 10

Progress = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class Copied:
    """What a copy holds."""

    branches: tuple[str, ...]
    objects: int
    bytes: int


@dataclass(frozen=True, slots=True)
class _Captured:
    """One branch at one moment, and the object that names it; main has none."""

    name: str
    opened: Opened
    ref: str | None = None


def copy_graph(
    source: Store, target: Store, progress: Progress | None = None, *, actor: str | None = None
) -> Copied:
    """Copy the graph at `source` to `target`, which must be empty.

    A copy that was cut off cannot be opened. Files that vanish under way, because cleanup took
    them, make the copy begin again with newer states; what was carried already stays.
    """
    read_manifest(source)
    _check_target(source, target)
    probe_create_if_absent(target)
    if not target.objects.create_json(
        layout.CLAIM, {"copied_at": ids.now_micros(), "actor_id": actor}
    ):
        raise InitializationClaimed(uri=target.root.uri)
    carrying = _Carrying(source, target, progress or (lambda *_: None))
    for _ in range(_ATTEMPTS):
        branches = _capture(source)
        if carrying.data() and carrying.states(branches):
            target.objects.remove(layout.CLAIM)
            names = tuple(sorted(one.name for one in branches))
            return Copied(names, len(carrying.sizes), sum(carrying.sizes.values()))
    raise ConcurrentCommit(
        f"files of {source.root.uri} kept vanishing; the copy cannot be opened",
        hint="remove the copy, and try again when no cleanup runs",
    )


def _check_target(source: Store, target: Store) -> None:
    mine, other = (f"{one.root.identity}/" for one in (source, target))
    if mine.startswith(other) or other.startswith(mine):
        raise InputError("a graph cannot be copied into itself", reason="overlapping places")
    if any(True for _ in target.objects.backend.list("")):
        raise AlreadyExists(
            f"{target.root.uri} is not empty", hint="choose another place, or empty this one first"
        )


def _capture(source: Store) -> list[_Captured]:
    """Every live branch as it is now; main is the last."""
    found: list[_Captured] = []
    for name, number in refs.list_numbers(source).items():
        if number % 2:
            found += _branch(source, name, number)
    return [*found, _Captured(layout.MAIN, read_manifest(source))]


def _branch(source: Store, name: str, number: int) -> list[_Captured]:
    ref = layout.ref_name(name, number)
    facts = source.objects.read_json(ref)
    if facts is None:
        return []
    try:
        opened = read_manifest(source, facts["ulid"])
    except GraphNotInitialized:  # deleted, and cleaned up, since it was listed
        return []
    return [] if opened.state.head.closed else [_Captured(name, opened, ref)]


class _Carrying:
    """One copy under way: what was carried, with its size."""

    def __init__(self, source: Store, target: Store, progress: Progress) -> None:
        self.source, self.target, self.progress = source, target, progress
        self.sizes: dict[str, int] = {}
        self._done = self._total = 0

    def data(self) -> bool:
        """Carry everything that states name; False when something vanished."""
        listed = [one for prefix in _DATA for one in self.source.objects.list(prefix)]
        # A size that changed: the file was still being written when it was carried.
        wanted = {one.name: one.size for one in listed if self.sizes.get(one.name) != one.size}
        self._total += sum(wanted.values())
        return self._carry(wanted)

    def states(self, branches: Iterable[_Captured]) -> bool:
        """Carry the states, each before the name that leads to it, main's at last."""
        for one in branches:
            for name in (*files_of(one.opened.cell), *((one.ref,) if one.ref else ())):
                if not self._carry({name: 0}):
                    return False
        return True

    def _carry(self, sizes: dict[str, int]) -> bool:
        def told(name: str) -> None:
            self.sizes[name] = sizes[name]
            self._done += sizes[name]
            self.progress(self._done, self._total)

        return transfer(self.source, self.target, sizes, told)
