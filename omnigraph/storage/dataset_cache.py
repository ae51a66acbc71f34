"""The cache of open Lance datasets, and the Lance sessions in which they are opened.

Recently used datasets stay open, because reopening a version takes two requests. A Lance session caches the manifest,
the transaction and the index list of every table version that it has opened or committed, and offers no way to remove
them. A process that writes or follows a graph keeps opening new versions. This module therefore replaces the session
when these cached objects have become numerous or large.
"""

import threading
from collections import OrderedDict
from dataclasses import dataclass, field
from typing import Any

_MAX_OPEN_DATASETS = 512
_VERSIONS_PER_SESSION = 1024
# Lance reports less than a tenth of the memory that a session uses. A version uses about 20 KB and twice the size of
# its manifest, which lists the row ids and row versions of each fragment and therefore grows with every small commit.
_BYTES_PER_SESSION, _BYTES_PER_VERSION = 32 << 20, 20 << 10
_DECODED_SIZE = 2  # the size of a manifest in memory, as a multiple of its size on disk
_INDEX_CACHE_BYTES, _METADATA_CACHE_BYTES = 1 << 30, 1 << 28  # number of bytes that Lance may cache


def new_lance_session(max_cache_bytes: int = _INDEX_CACHE_BYTES) -> Any:
    """Return a Lance session with a size limit for its metadata and index caches."""
    metadata_bytes = min(max_cache_bytes, _METADATA_CACHE_BYTES)
    return load_lance().Session(index_cache_size_bytes=max_cache_bytes, metadata_cache_size_bytes=metadata_bytes)


def load_lance() -> Any:
    """Import Lance and patch its filters.

    Call this function only when Lance is first needed, because the import takes longer than reading a branch.
    """
    import lance

    from . import substrait  # noqa: F401 - importing it patches the filters

    return lance


def move_to_session(dataset: Any, session: Any, storage_options: dict[str, str] | None) -> Any:
    """Return the same dataset version in a different session. On an object store, this takes one HEAD request."""
    from lance import LanceDataset

    return LanceDataset(
        dataset.uri,
        int(dataset.version),
        storage_options=storage_options,
        serialized_manifest=dataset._ds.serialized_manifest(),
        session=session,
    )


@dataclass(slots=True, eq=False)
class DatasetCache:
    """A cache of open Lance datasets by (location, version), with least-recently-used eviction.

    A dataset can be marked as checked once the files that Lance reads directly have been verified.
    """

    limit: int = _MAX_OPEN_DATASETS
    versions_per_session: int = _VERSIONS_PER_SESSION
    bytes_per_session: int = _BYTES_PER_SESSION
    _datasets: OrderedDict[tuple[str, int], Any] = field(default_factory=OrderedDict)
    _checked_keys: set[tuple[str, int]] = field(default_factory=set)
    _session: Any = None
    _session_versions: int = 0
    _session_bytes: int = 0  # an estimate
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def session(self) -> Any:
        """The session in which to open the next dataset."""
        with self._lock:
            if self._session is None:
                self._session = new_lance_session()
            return self._session

    def get(self, location: str, version: int) -> Any | None:
        """Return the dataset, or None if it is not cached."""
        with self._lock:
            dataset = self._datasets.get((location, version))
            if dataset is not None:
                self._datasets.move_to_end((location, version))
            return dataset

    def clear(self) -> None:
        """Drop all datasets.

        Call this method after a cleanup. Otherwise, a dataset for a removed version would seem usable until a caller
        read a file through it.
        """
        with self._lock:
            self._drop_datasets()

    def is_checked(self, location: str, version: int) -> bool:
        """Return whether the files in a cached version have been checked."""
        return (location, version) in self._checked_keys

    def mark_checked(self, location: str, version: int) -> None:
        """Record that the files in a version have been checked. The mark lasts as long as the version is cached."""
        with self._lock:
            if (location, version) in self._datasets:
                self._checked_keys.add((location, version))

    def put(self, location: str, dataset: Any) -> None:
        """Cache a dataset, or drop the session and all datasets if the session has reached its limits."""
        version_bytes = _BYTES_PER_VERSION + _DECODED_SIZE * len(dataset._ds.serialized_manifest())
        with self._lock:
            self._session_versions += 1
            self._session_bytes += version_bytes
            if self._session_versions > self.versions_per_session or self._session_bytes > self.bytes_per_session:
                self._session, self._session_versions, self._session_bytes = None, 0, 0
                self._drop_datasets()
                return
            self._datasets[location, dataset.version] = dataset
            while len(self._datasets) > self.limit:
                dropped_key, _ = self._datasets.popitem(last=False)
                self._checked_keys.discard(dropped_key)

    def _drop_datasets(self) -> None:
        self._datasets.clear()
        self._checked_keys.clear()
