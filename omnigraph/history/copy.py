"""A copy of a whole graph: every branch and tag with its history, while others write.

Each branch is copied as it was at one moment. Manifests are read first and data files listed after
that; then the copy is verified to hold everything that the manifests refer to. The manifest of
main, which makes the copy readable, is written last.
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

# Immutable objects that states refer to. Intents, leases and claims belong to running processes;
# of those, only operations that were set aside and wait for a decision are copied.
_DATA = ("nodes", "edges", layout.SCHEMAS, layout.COMMITS, layout.CHECKSUMS, layout.AUDIT)
_ATTEMPTS = 10

Progress = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class Copied:
    """The contents of a copy."""

    branches: tuple[str, ...]
    objects: int
    bytes: int


@dataclass(frozen=True, slots=True)
class _Captured:
    """One branch or tag at one moment, with the object that names it; main has none."""

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

    Every file that has a checksum is verified in transit unless `verify` is false. The first that
    differs raises `DamagedError`, and the copy cannot be opened.

    An interrupted copy cannot be opened. If files vanish because a cleanup removed them, the copy
    starts again from newer states and keeps the files that were already transferred.
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
        f"files of {source.root.uri} kept vanishing; the copy is incomplete and cannot be opened",
        hint="remove the copy, and retry when no cleanup is running",
    )


def _check_target(source: Store, target: Store) -> None:
    mine, other = (f"{one.root.identity}/" for one in (source, target))
    if mine.startswith(other) or other.startswith(mine):
        raise InputError("a graph cannot be copied into itself", reason="overlapping locations")
    if any(True for _ in target.objects.backend.list("")):
        raise AlreadyExists(
            f"{target.root.uri} is not empty", hint="choose another location, or empty this one"
        )


def _capture(source: Store) -> list[_Captured]:
    """Capture every tag and live branch as it is now; main comes last."""
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
    except GraphNotInitialized:  # deleted and cleaned up after it was listed
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
        hint="restore the source from another copy; remove the incomplete copy",
    )


class _Carrying:
    """One copy in progress: the files transferred so far, with their sizes."""

    def __init__(self, source: Store, target: Store, progress: Progress) -> None:
        self.source, self.target, self.progress = source, target, progress
        self.sizes: dict[str, int] = {}
        self.checksums: dict[str, FileChecksum] = {}
        self._done = self._total = 0
        self._lost: object = None

    def forget_names(self, kept: Set[str | None]) -> None:
        """Remove refs that an earlier attempt copied, of branches that no longer exist."""
        for name in [one for one in self.sizes if one.startswith("_refs/")]:
            if name not in kept:
                self._drop(name)

    def learn_checksums(self, branches: Sequence[_Captured]) -> bool:
        """Read the checksums that logs record; False if part of a log vanished meanwhile."""
        try:
            recorded = collect_checksums(self.source, (one.opened.state for one in branches))
        except HistoryReclaimed:
            return False
        self.checksums |= recorded
        return True

    def data(self) -> bool:
        """Copy all data files that states can refer to; False if a file vanished meanwhile."""
        listed = [one for prefix in _DATA for one in self.source.objects.list(prefix)]
        listed += set_aside_names(self.source)
        # If the size changed, the file was still being written when it was copied.
        wanted = {one.name: one.size for one in listed if self.sizes.get(one.name) != one.size}
        self._total += sum(wanted.values())
        return self._carry(wanted)

    def proved(self, branches: Sequence[_Captured]) -> bool:
        """Return whether all that the states refer to was copied; remove remains of past versions.

        A file missing from a head was removed after the head was read, and a newer head does not
        need it. If the same head still lacks the same file, the source itself has lost it.
        """
        still = {f.name for kind in ("nodes", "edges") for f in self.source.objects.list(kind)}
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
        """Copy the manifests, each before the ref that leads to it, and main's last."""
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
