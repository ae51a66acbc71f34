"""A copy of a whole graph: every branch and tag with its history, while others write.

Each branch is copied as it was at one moment. States are read first and their files listed after
that; then the copy is proved to hold all that they name. What makes it readable, the manifest of
main, is last.
"""

from collections.abc import Callable, Iterable, Sequence, Set
from dataclasses import dataclass
from typing import TYPE_CHECKING

from omnigraph import ids
from omnigraph.errors import (
    AlreadyExists,
    ConcurrentCommit,
    GraphNotInitialized,
    HistoryReclaimed,
    InitializationClaimed,
    InputError,
    StorageError,
)
from omnigraph.storage import layout
from omnigraph.storage.cell import files_of
from omnigraph.storage.probe import probe_create_if_absent
from omnigraph.storage.store import Store, version_names
from omnigraph.storage.transfer import transfer

from . import refs
from .file_checksums import collect_checksums
from .intent import set_aside_names
from .manifest import Opened, read_manifest
from .proof import what_lacks

if TYPE_CHECKING:
    from omnigraph.storage.checksums import FileChecksum

# Immutable objects that states name. Intents, leases and claims belong to running processes; only
# operations that were set aside, which wait for a decision, come along.
_DATA = ("nodes", "edges", layout.SCHEMAS, layout.COMMITS, layout.CHECKSUMS, layout.AUDIT)
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
    tag: bool = False


def copy_graph(
    source: Store,
    target: Store,
    progress: Progress | None = None,
    *,
    actor: str | None = None,
    verify: bool = True,
) -> Copied:
    """Copy the graph at `source` to `target`, which must be empty.

    Every file that has a checksum is compared with it on the way, unless `verify` is false: raises
    `DamagedError` for the first that differs, and the copy cannot be opened.

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
        carrying.forget_names({one.ref for one in branches})
        if verify and not carrying.learn_checksums(branches):
            continue
        if carrying.data() and carrying.proved(branches) and carrying.states(branches):
            target.objects.remove(layout.CLAIM)
            names = tuple(sorted(one.name for one in branches if not one.tag))
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
    """Every tag and live branch as it is now; main is the last."""
    found: list[_Captured] = []
    for place in (layout.TAGS, layout.REFS):
        for name, number in refs.list_numbers(source, place).items():
            if number % 2:
                found += _named(source, name, number, place)
    return [*found, _Captured(layout.MAIN, read_manifest(source))]


def _named(source: Store, name: str, number: int, place: str) -> list[_Captured]:
    ref = refs.read_ref(source, name, number, place)
    if ref is None:
        return []
    try:
        opened = read_manifest(source, ref.ulid)
    except GraphNotInitialized:  # deleted, and cleaned up, since it was listed
        return []
    if opened.state.head.closed:
        return []
    named_by = layout.ref_name(name, number, place)
    return [_Captured(name, opened, named_by, place == layout.TAGS)]


def _damaged(source: Store, names: Sequence[str]) -> StorageError:
    return StorageError(
        f"files of {source.root.uri} are missing, {names[0]} among them; the copy cannot be opened",
        kind="not_found",
        effect="none",
        hint="restore the source from another copy; remove what was copied",
    )


class _Carrying:
    """One copy under way: what was carried, with its size."""

    def __init__(self, source: Store, target: Store, progress: Progress) -> None:
        self.source, self.target, self.progress = source, target, progress
        self.sizes: dict[str, int] = {}
        self.checksums: dict[str, FileChecksum] = {}
        self._done = self._total = 0
        self._lost: object = None

    def forget_names(self, kept: Set[str | None]) -> None:
        """Remove names that an earlier attempt carried, of branches that are not there any more."""
        for name in [one for one in self.sizes if one.startswith("_refs/")]:
            if name not in kept:
                self._drop(name)

    def learn_checksums(self, branches: Sequence[_Captured]) -> bool:
        """Read the checksums that logs record; False when a piece of one vanished meanwhile."""
        try:
            recorded = collect_checksums(self.source, (one.opened.state for one in branches))
        except HistoryReclaimed:
            return False
        self.checksums |= recorded
        return True

    def data(self) -> bool:
        """Carry everything that states name; False when something vanished."""
        listed = [one for prefix in _DATA for one in self.source.objects.list(prefix)]
        listed += set_aside_names(self.source)
        # A size that changed: the file was still being written when it was carried.
        wanted = {one.name: one.size for one in listed if self.sizes.get(one.name) != one.size}
        self._total += sum(wanted.values())
        return self._carry(wanted)

    def proved(self, branches: Sequence[_Captured]) -> bool:
        """Whether all that the states name was carried; what is left of the past goes.

        What a head lacks was taken since it was read, and a newer head lacks it no more. When it
        is the same head that lacks the same, the source itself has lost it.
        """
        still = {one.name for kind in ("nodes", "edges") for one in self.source.objects.list(kind)}
        lacking = what_lacks(self.target, (one.opened.state for one in branches), self.sizes, still)
        for version in lacking.past:
            for name in version_names(*version) & self.sizes.keys():
                self._drop(name)
        lost = lacking.names and (lacking.names, [one.opened.version for one in branches])
        if lost and lost == self._lost:
            raise _damaged(self.source, lacking.names)
        self._lost = lost
        return not lost

    def states(self, branches: Iterable[_Captured]) -> bool:
        """Carry the states, each before the name that leads to it, main's at last."""
        for one in branches:
            for name in (*files_of(one.opened.cell), *((one.ref,) if one.ref else ())):
                if not self._carry({name: 0}):
                    return False
        return True

    def _drop(self, name: str) -> None:
        self.target.objects.remove(name)
        del self.sizes[name]

    def _carry(self, sizes: dict[str, int]) -> bool:
        def told(name: str) -> None:
            self.sizes[name] = sizes[name]
            self._done += sizes[name]
            self.progress(self._done, self._total)

        return transfer(self.source, self.target, sizes, told, self.checksums)
