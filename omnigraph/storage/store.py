"""One open root: its place, its control objects, its effects and its open tables.

Owns the caches of table handles and of immutable objects. A handle is kept as long as it is used,
because opening a pinned version costs two requests and holding it costs none.
"""

import threading
from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import lance

from .checksums import FileChecksum
from .effects import Effects
from .failures import AbsentError, storage_failure, unpanicked
from .objects import Objects, open_objects
from .root import Root, parse_root
from .substrait import mend_filters
from .written_files import visit_files

mend_filters()

Durability = Literal["fsync", "os"]
_HANDLES = 512
_INDEXES, _METADATA = 1 << 30, 1 << 28  # bytes that Lance may remember
_SMALL = 8 << 20  # for the states of a branch: only the newest is read
_REMEMBERED = 1 << 16  # commits, of about a kilobyte each


def new_session(most: int = _INDEXES) -> Any:
    """What Lance remembers of files and indexes, in at most so many bytes each.

    Each version of a table leaves something there: a process may write for weeks.
    """
    lance_: Any = lance
    files = min(most, _METADATA)
    return lance_.Session(index_cache_size_bytes=most, metadata_cache_size_bytes=files)


@dataclass(slots=True, eq=False)
class Handles:
    """Open Lance datasets by (location, version), the least used dropped first.

    A handle is marked as checked when what it would read on its own was proved to be readable.
    """

    limit: int = _HANDLES
    _open: OrderedDict[tuple[str, int], Any] = field(default_factory=OrderedDict)
    _checked: set[tuple[str, int]] = field(default_factory=set)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def get(self, location: str, version: int) -> Any | None:
        """The handle, if it is held."""
        with self._lock:
            found = self._open.get((location, version))
            if found is not None:
                self._open.move_to_end((location, version))
            return found

    def clear(self) -> None:
        """Let go of all handles: those of removed versions would answer until a file is read."""
        with self._lock:
            self._open.clear()
            self._checked.clear()

    def is_checked(self, location: str, version: int) -> bool:
        """Whether the files of a version that is held were checked."""
        return (location, version) in self._checked

    def mark_checked(self, location: str, version: int) -> None:
        """Remember that the files of a version were checked, as long as its handle is held."""
        with self._lock:
            if (location, version) in self._open:
                self._checked.add((location, version))

    def put(self, location: str, dataset: Any) -> None:
        """Hold a handle."""
        with self._lock:
            self._open[location, dataset.version] = dataset
            while len(self._open) > self.limit:
                dropped, _ = self._open.popitem(last=False)
                self._checked.discard(dropped)


@dataclass(slots=True, eq=False)
class Memory:
    """Immutable objects as they were understood, by name, the least used dropped first."""

    limit: int = _REMEMBERED
    _held: OrderedDict[str, tuple[int, Any]] = field(default_factory=OrderedDict)
    _weight: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def get(self, name: str) -> Any | None:
        """What was remembered under a name that is never written twice."""
        with self._lock:
            if name not in self._held:
                return None
            self._held.move_to_end(name)
            return self._held[name][1]

    def put(self, name: str, value: Any, *, weight: int = 1) -> None:
        """Remember; what is heavier than the limit alone is not kept."""
        with self._lock:
            self._weight += weight - self._held.pop(name, (0, None))[0]
            self._held[name] = (weight, value)
            while self._weight > self.limit:
                self._weight -= self._held.popitem(last=False)[1][0]


@dataclass(frozen=True, slots=True)
class Store:
    """What every function of storage works on."""

    root: Root
    objects: Objects
    effects: Effects
    durability: Durability = "fsync"
    handles: Handles = field(default_factory=Handles)
    memory: Memory = field(default_factory=Memory, compare=False, repr=False)
    session: Any = field(default_factory=new_session)
    verifier: Any = field(default=None, compare=False, repr=False)  # called on the first use
    _durable: set[Path] = field(default_factory=set, compare=False, repr=False)

    @property
    def options(self) -> dict[str, str] | None:
        """Storage options for Lance."""
        return dict(self.root.options) or None

    def open(self, location: str, version: int | None = None) -> Any:
        """A Lance dataset at a root-relative place; without a version the newest, never held.

        Raises `AbsentError` only when a listing proves that it is not there.
        """
        if version is None:  # of its own: a name may stand for something else by now
            return self._load(location, session=new_session(_SMALL))
        held = self.handles.get(location, version)
        if held is None:
            held = self._load(location, version=version, session=self.session)
            self.handles.put(location, held)
        return held

    def _load(self, location: str, **how: Any) -> Any:
        seen: str | None = None
        while True:
            try:
                with unpanicked():
                    found = lance.dataset(
                        self.root.at(location), storage_options=self.options, **how
                    )
                    _ = found.schema  # now: a damaged one makes Lance panic
                return found
            except (OSError, ValueError) as error:
                # Lance says the same to an absent table and to a store that gives no answer.
                names = self._listed(location, how.get("version"))
                if not names:
                    raise AbsentError(f"{location} is not there") from error
                # It lists, then reads: what was newest may be replaced and cleaned up in between.
                if "version" in how or min(names) == seen:
                    raise storage_failure(error, effect="none") from error
                seen = min(names)

    def has(self, location: str, version: int) -> bool:
        """Whether a version of a dataset is there still, by a listing, whatever is held open."""
        return bool(self._listed(location, version))

    def _listed(self, location: str, version: int | None) -> set[str]:
        """The names of all versions, the newest first by name, or of one."""
        found = {one.name for one in self.objects.list(f"{location}/_versions")}
        return found if version is None else found & version_names(location, version)

    def sync(self, *names: str) -> None:
        """Make written files and their names survive a power loss (local disk only)."""
        if not self.root.local or self.durability != "fsync":
            return
        visit_files(self.root.path, names, None, self._durable)

    def checksum_files(self, names: Iterable[str]) -> dict[str, FileChecksum]:
        """The checksums of files that were just written; none on an object store."""
        return visit_files(self.root.path, names, {}, None) if self.root.local else {}

    def read_back(self, names: Sequence[str], *, blobs: bool = False) -> dict[str, FileChecksum]:
        """The checksums of files that Lance wrote, read back from an object store.

        For bulk work only: it costs a request for each file, and a listing for each data file that
        may have `blobs` beside it.
        """
        if self.root.local:
            return self.checksum_files(names)
        stems = [name.removesuffix(".lance") for name in names] if blobs else []
        beside = [one.name for stem in stems for one in self.objects.list(stem)]
        read = ((name, self.objects.backend.blocks(name)) for name in (*names, *beside))
        return {name: FileChecksum.of_blocks(body) for name, body in read if body is not None}

    def sync_files(
        self, names: Iterable[str], known: Mapping[str, FileChecksum] | None = None
    ) -> dict[str, FileChecksum]:
        """Sync written files, and return their checksums while they are in the page cache.

        `known` are checksums that a writer elsewhere took. On an object store there are no others:
        reading a file back would cost a request.
        """
        if not self.root.local:
            return dict(known or {})
        durable = self._durable if self.durability == "fsync" else None
        try:
            return visit_files(self.root.path, names, known or {}, durable)
        except FileNotFoundError as error:  # a collector took it: the writer stages it again
            raise AbsentError(f"{error.filename} is gone before it was committed") from error


def version_names(location: str, version: int) -> set[str]:
    """The names that a version of a dataset can have: in its line, or detached.

    >>> sorted(version_names("t", 1))
    ['t/_versions/18446744073709551614.manifest', 't/_versions/d1.manifest']
    """
    line = (1 << 64) - 1 - version
    return {f"{location}/_versions/{name}.manifest" for name in (f"{line:020}", f"d{version}")}


def open_store(
    uri: str,
    *,
    effects: Effects | None = None,
    durability: Durability = "fsync",
    options: Mapping[str, object] | None = None,
) -> Store:
    """A store for a location. Nothing is read or written yet.

    `options` win over the `AWS_*` variables.
    """
    root = parse_root(uri, given=options)
    effects = effects or Effects()
    objects = open_objects(root, effects, durable=durability == "fsync")
    return Store(root, objects, effects, durability)
