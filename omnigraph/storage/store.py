"""One open root: its location, its control objects, its effects and its open tables.

Owns the caches of open datasets and of immutable objects. A dataset stays open as long as it is
used: opening a pinned version costs two requests, keeping it open costs none.
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
_INDEXES, _METADATA = 1 << 30, 1 << 28  # bytes that Lance may cache
_SMALL = 8 << 20  # for manifests of branches: only the newest version is read
_REMEMBERED = 1 << 16  # commits, of about a kilobyte each


def new_session(most: int = _INDEXES) -> Any:
    """Return a Lance session, whose caches of metadata and indexes are limited in bytes.

    Each table version adds cache entries, and a process may write for weeks.
    """
    lance_: Any = lance
    files = min(most, _METADATA)
    return lance_.Session(index_cache_size_bytes=most, metadata_cache_size_bytes=files)


@dataclass(slots=True, eq=False)
class Handles:
    """Open Lance datasets by (location, version); evicts the least recently used.

    A dataset is marked as checked when the files that Lance reads on its own were verified.
    """

    limit: int = _HANDLES
    _open: OrderedDict[tuple[str, int], Any] = field(default_factory=OrderedDict)
    _checked: set[tuple[str, int]] = field(default_factory=set)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def get(self, location: str, version: int) -> Any | None:
        """Return the dataset if it is cached."""
        with self._lock:
            found = self._open.get((location, version))
            if found is not None:
                self._open.move_to_end((location, version))
            return found

    def clear(self) -> None:
        """Drop all datasets: those of removed versions would answer until they read a file."""
        with self._lock:
            self._open.clear()
            self._checked.clear()

    def is_checked(self, location: str, version: int) -> bool:
        """Return whether the files of a cached version were checked."""
        return (location, version) in self._checked

    def mark_checked(self, location: str, version: int) -> None:
        """Record that the files of a version were checked, as long as it is cached."""
        with self._lock:
            if (location, version) in self._open:
                self._checked.add((location, version))

    def put(self, location: str, dataset: Any) -> None:
        """Cache a dataset."""
        with self._lock:
            self._open[location, dataset.version] = dataset
            while len(self._open) > self.limit:
                dropped, _ = self._open.popitem(last=False)
                self._checked.discard(dropped)


@dataclass(slots=True, eq=False)
class Memory:
    """Decoded immutable objects by name; evicts the least recently used."""

    limit: int = _REMEMBERED
    _held: OrderedDict[str, tuple[int, Any]] = field(default_factory=OrderedDict)
    _weight: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def get(self, name: str) -> Any | None:
        """Return the cached object of a name; names are never written twice."""
        with self._lock:
            if name not in self._held:
                return None
            self._held.move_to_end(name)
            return self._held[name][1]

    def put(self, name: str, value: Any, *, weight: int = 1) -> None:
        """Cache an object; one heavier than the whole limit is not kept."""
        with self._lock:
            self._weight += weight - self._held.pop(name, (0, None))[0]
            self._held[name] = (weight, value)
            while self._weight > self.limit:
                self._weight -= self._held.popitem(last=False)[1][0]


@dataclass(frozen=True, slots=True)
class Store:
    """An open root: the context that every storage function works on."""

    root: Root
    objects: Objects
    effects: Effects
    durability: Durability = "fsync"
    handles: Handles = field(default_factory=Handles)
    memory: Memory = field(default_factory=Memory, compare=False, repr=False)
    session: Any = field(default_factory=new_session)
    verifier: Any = field(default=None, compare=False, repr=False)  # called at a table's first use
    _durable: set[Path] = field(default_factory=set, compare=False, repr=False)

    @property
    def options(self) -> dict[str, str] | None:
        """The storage options for Lance."""
        return dict(self.root.options) or None

    def open(self, location: str, version: int | None = None) -> Any:
        """Open a Lance dataset at a root-relative location; the newest version is never cached.

        Raises `AbsentError` only if a listing proves that the dataset or version does not exist.
        """
        # The newest version gets a session of its own: the name may mean another dataset by now.
        if version is None:
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
                    _ = found.schema  # decode it now: Lance panics on a damaged schema
                return found
            except (OSError, ValueError) as error:
                # Lance raises the same error for an absent table and for a store without answer.
                names = self._listed(location, how.get("version"))
                if not names:
                    raise AbsentError(f"{location} does not exist") from error
                # Lance lists, then reads: the newest may be replaced and cleaned up in between.
                if "version" in how or min(names) == seen:
                    raise storage_failure(error, effect="none") from error
                seen = min(names)

    def has(self, location: str, version: int) -> bool:
        """Return whether a version of a dataset exists, by a listing, ignoring the cache."""
        return bool(self._listed(location, version))

    def _listed(self, location: str, version: int | None) -> set[str]:
        """Return the file names of all versions, or of one; the newest sorts first."""
        found = {one.name for one in self.objects.list(f"{location}/_versions")}
        return found if version is None else found & version_names(location, version)

    def sync(self, *names: str) -> None:
        """Make written files and their names survive a power loss (local disk only)."""
        if not self.root.local or self.durability != "fsync":
            return
        visit_files(self.root.path, names, None, self._durable)

    def checksum_files(self, names: Iterable[str]) -> dict[str, FileChecksum]:
        """Return the checksums of files that were just written; none on an object store."""
        return visit_files(self.root.path, names, {}, None) if self.root.local else {}

    def read_back(self, names: Sequence[str], *, blobs: bool = False) -> dict[str, FileChecksum]:
        """Return the checksums of files that Lance wrote; read back from an object store.

        For bulk work only: costs a request for each file, with `include_blobs` also a listing for
        each data file, to find the blob files beside it.
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

        `known_checksums` were taken by the writers. On an object store there are no others: reading
        a file back would cost a request.
        """
        if not self.root.local:
            return dict(known or {})
        durable = self._durable if self.durability == "fsync" else None
        try:
            return visit_files(self.root.path, names, known or {}, durable)
        except FileNotFoundError as error:  # cleanup removed it: the writer stages it again
            message = f"{error.filename} was removed before it was committed"
            raise AbsentError(message) from error


def version_names(location: str, version: int) -> set[str]:
    """Return the file names that a version of a dataset can have: attached or detached.

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
    """Open the store of a location; reads and writes nothing yet.

    `storage_options` take precedence over the `AWS_*` variables.
    """
    root = parse_root(uri, given=options)
    effects = effects or Effects()
    objects = open_objects(root, effects, durable=durability == "fsync")
    return Store(root, objects, effects, durability)
