"""An open root: its location, control objects, write gateway and open tables.

This module opens datasets and maintains the cache of immutable objects.
"""

import threading
from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from omnigraph.records.frozen import record

from .checksums import FileChecksum
from .dataset_cache import DatasetCache, load_lance, new_lance_session
from .effects import Effects
from .failures import AbsentError, panics_as_errors, to_storage_error
from .objects import ControlObjects, open_objects
from .root import GraphRoot, parse_root
from .written_files import checksum_and_sync

Durability = Literal["fsync", "os"]
_MANIFEST_CACHE_BYTES = 1 << 18  # session size for a branch manifest, of which only the newest version is read
_OBJECT_CACHE_WEIGHT = 1 << 15  # measured in commits of about two kilobytes each
_MAX_CACHED_OBJECTS = 4096


@dataclass(slots=True, eq=False)
class ObjectCache:
    """A cache for decoded immutable objects by name, with least-recently-used eviction."""

    limit: int = _OBJECT_CACHE_WEIGHT
    max_entries: int = _MAX_CACHED_OBJECTS
    _entries: OrderedDict[str, tuple[int, Any]] = field(default_factory=OrderedDict)
    _total_weight: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def get(self, object_name: str) -> Any | None:
        """Return the cached object with this name, or None if there is none.

        A cached object is never outdated, because names are never written twice.
        """
        with self._lock:
            if object_name not in self._entries:
                return None
            self._entries.move_to_end(object_name)
            return self._entries[object_name][1]

    def put(self, object_name: str, value: Any, *, weight: int = 1) -> None:
        """Cache an object, unless its weight exceeds the whole cache limit."""
        with self._lock:
            self._total_weight += weight - self._entries.pop(object_name, (0, None))[0]
            self._entries[object_name] = (weight, value)
            while self._total_weight > self.limit or len(self._entries) > self.max_entries:
                self._total_weight -= self._entries.popitem(last=False)[1][0]


@record
class Store:
    """An open root, which most storage functions take as their first argument."""

    root: GraphRoot
    objects: ControlObjects
    effects: Effects
    durability: Durability = "fsync"
    dataset_cache: DatasetCache = field(default_factory=DatasetCache)
    object_cache: ObjectCache = field(default_factory=ObjectCache, compare=False, repr=False)
    table_verifier: Any = field(default=None, compare=False, repr=False)  # called when a table is first used
    _synced_directories: set[Path] = field(default_factory=set, compare=False, repr=False)

    @property
    def options(self) -> dict[str, str] | None:
        """The storage options to pass to Lance."""
        return dict(self.root.options) or None

    @property
    def lance_session(self) -> Any:
        """The session in which to open or create a table."""
        return self.dataset_cache.session

    def new_manifest_session(self) -> Any:
        """Return a small session for one branch manifest and its later versions."""
        return new_lance_session(_MANIFEST_CACHE_BYTES)

    def open_dataset(self, location: str, version: int | None = None) -> Any:
        """Open a Lance dataset at a root-relative location.

        If no version is given, the newest one is opened but not cached. Raises `AbsentError` only if a listing
        proves that the dataset or version does not exist.
        """
        # Open the newest version in its own session, because a shared session may have cached an earlier dataset with
        # this name.
        if version is None:
            return self._load_dataset(location, session=self.new_manifest_session())
        dataset = self.dataset_cache.get(location, version)
        if dataset is None:
            dataset = self._load_dataset(location, version=version, session=self.lance_session)
            self.dataset_cache.put(location, dataset)
        return dataset

    def _load_dataset(self, location: str, **open_options: Any) -> Any:
        lance, newest_seen = load_lance(), ""
        while True:
            try:
                with panics_as_errors():
                    dataset = lance.dataset(self.root.uri_of(location), storage_options=self.options, **open_options)
                    _ = dataset.schema  # decode the schema now, because Lance panics on a damaged schema
                return dataset
            except (OSError, ValueError) as error:
                # Lance raises the same error for a missing table as for a store that does not respond.
                version_names = self._list_version_names(location, open_options.get("version"))
                if not version_names:
                    raise AbsentError(f"{location} does not exist") from error
                # Lance lists the versions and then reads one. A cleanup may remove the newest version in between.
                if "version" in open_options or min(version_names) == newest_seen:
                    raise to_storage_error(error, effect="none") from error
                newest_seen = min(version_names)

    def has_version(self, location: str, version: int) -> bool:
        """Return whether a version of a dataset exists, using a listing instead of the cache."""
        return bool(self._list_version_names(location, version))

    def _list_version_names(self, location: str, version: int | None) -> set[str]:
        """Return the names of the manifest files of one version, or of all versions if `version` is None."""
        present_names = {listed_object.name for listed_object in self.objects.list(f"{location}/_versions")}
        return present_names if version is None else present_names & version_file_names(location, version)

    def sync_to_disk(self, *file_names: str) -> None:
        """Sync written files and their names, so that they survive a power loss.

        Does nothing on an object store, or if `durability` is `os`.
        """
        if not self.root.is_local or self.durability != "fsync":
            return
        checksum_and_sync(self.root.path, file_names, None, self._synced_directories)

    def checksum_local_files(self, file_names: Iterable[str]) -> dict[str, FileChecksum]:
        """Return the checksums of files that were just written, or an empty mapping on an object store."""
        return checksum_and_sync(self.root.path, file_names, {}, None) if self.root.is_local else {}

    def read_back_checksums(self, file_names: Sequence[str], *, include_blobs: bool = False) -> dict[str, FileChecksum]:
        """Return the checksums of files that Lance wrote.

        Files on an object store are read back, which takes one request per file, so use this method only for bulk work.
        With `include_blobs`, one listing per data file is also needed to find the blob files next to it.
        """
        if self.root.is_local:
            return self.checksum_local_files(file_names)
        blob_directories = [file_name.removesuffix(".lance") for file_name in file_names] if include_blobs else []
        blob_names = [
            listed_object.name
            for blob_directory in blob_directories
            for listed_object in self.objects.list(blob_directory)
        ]
        blocks_by_name = (
            (file_name, self.objects.backend.read_blocks(file_name)) for file_name in (*file_names, *blob_names)
        )
        return {file_name: FileChecksum.of_blocks(blocks) for file_name, blocks in blocks_by_name if blocks is not None}

    def sync_and_checksum(
        self, file_names: Iterable[str], known_checksums: Mapping[str, FileChecksum] | None = None
    ) -> dict[str, FileChecksum]:
        """Sync written files, and compute their checksums while the files are still in the page cache.

        `known_checksums` are the checksums that the writers have already computed. On an object store, only these are
        returned, because reading a file back would take a request.
        """
        if not self.root.is_local:
            return dict(known_checksums or {})
        synced_directories = self._synced_directories if self.durability == "fsync" else None
        try:
            return checksum_and_sync(self.root.path, file_names, known_checksums or {}, synced_directories)
        except FileNotFoundError as error:  # a cleanup removed the file, so the writer must stage it again
            message = f"{error.filename} was removed before it was committed"
            raise AbsentError(message) from error


def version_file_names(location: str, version: int) -> set[str]:
    """Return the two possible file names of a dataset version: one if it is attached, and one if it is detached.

    >>> sorted(version_file_names("t", 1))
    ['t/_versions/18446744073709551614.manifest', 't/_versions/d1.manifest']
    """
    reversed_version = (1 << 64) - 1 - version
    return {f"{location}/_versions/{stem}.manifest" for stem in (f"{reversed_version:020}", f"d{version}")}


def open_store(
    uri: str,
    *,
    effects: Effects | None = None,
    durability: Durability = "fsync",
    storage_options: Mapping[str, object] | None = None,
) -> Store:
    """Open the store at a location without reading or writing anything yet.

    `storage_options` take precedence over the `AWS_*` variables.
    """
    root = parse_root(uri, storage_options=storage_options)
    effects = effects or Effects()
    objects = open_objects(root, effects, durable=durability == "fsync")
    return Store(root, objects, effects, durability)
