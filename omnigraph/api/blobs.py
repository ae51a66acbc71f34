"""`Blob`, a stored blob that can be read in ranges or chunks, opened as a file, or saved to a path.

A blob is pinned to the commit at which it was opened, and only the range or chunk being read is held in memory. Opening
a blob that is NULL raises `EntityNotFound`, as for a missing entity.
"""

import hashlib
import io
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from os import PathLike
from pathlib import Path
from typing import Any

from omnigraph.api.blob_files import READ_AHEAD_BYTES, BlobFile, write_atomically
from omnigraph.api.blob_properties import BlobAddress, find_blob, resolve_address
from omnigraph.api.data_files import ProgressCallback, ProgressOption, progress_callback
from omnigraph.api.error_boundary import Guarded
from omnigraph.api.handle import Handle
from omnigraph.errors import BlobIntegrityError, BlobPreconditionFailed, RangeNotSatisfiable, StorageError, UsageError
from omnigraph.history.branch_state import BranchState
from omnigraph.history.delete_queue import reclaimed_error
from omnigraph.history.file_checksums import find_checksums_in_log
from omnigraph.history.missing_files import explain_missing_files, lacks_table_version
from omnigraph.history.snapshot import Snapshot
from omnigraph.publish.read_lease import protect_snapshot
from omnigraph.records.cached_property import cached_property
from omnigraph.storage.checksums import find_mismatch
from omnigraph.values.media_types import LEADING_BYTES, guess_media_type

CHUNK_BYTES = 4 << 20  # chunk size in bytes
_PROTECTED_BYTES = 64 << 20  # minimum size, in bytes, of a read that is protected from cleanup


class Blob(Guarded):
    """A node's or edge's blob at a given commit.

    >>> from omnigraph import testing
    >>> with testing.graph("node Doc { slug: String @key  body: Blob? }") as graph:
    ...     receipt = graph.insert("Doc", {"slug": "a", "body": b"hello"})
    ...     blob = graph.blob("Doc", "a", "body")
    ...     blob.size, blob.media_type, blob.read(), blob.read(1, 3)
    (5, 'text/plain', b'hello', b'el')
    """

    def __init__(self, branch_state: BranchState, snapshot: Snapshot, address: BlobAddress) -> None:
        self._branch_state, self._snapshot, self._address = branch_state, snapshot, address
        with explain_missing_files(snapshot):
            self._stored, self._recorded_type = find_blob(snapshot, address)

    def __repr__(self) -> str:
        address = self._address
        return f"Blob({address.type_name!r}, {address.entity_id!r}, {address.property_name!r}, size={self.size})"

    # Metadata --------------------------------------------------------------------------------------

    @property
    def kind(self) -> str:
        """The entity's kind: `node` or `edge`."""
        return self._address.kind

    @property
    def type_name(self) -> str:
        """The entity's type."""
        return self._address.type_name

    @property
    def entity_id(self) -> str:
        """The entity's id."""
        return self._address.entity_id

    @property
    def property_name(self) -> str:
        """The property that contains the blob."""
        return self._address.property_name

    @property
    def commit_id(self) -> str:
        """The commit that the blob is read from."""
        return self._snapshot.commit_id

    @property
    def size(self) -> int:
        """The size in bytes."""
        return self._stored.size

    @cached_property
    def media_type(self) -> str:
        """The recorded media type, or one guessed from the first bytes.

        The media type is recorded in the String property `<property>_media_type`, which `put_blob` can set. Only common
        formats are recognized by their first bytes.
        """
        return self._recorded_type or guess_media_type(self.read(0, LEADING_BYTES) if self.size else b"")

    @cached_property
    def content_hash(self) -> str:
        """The SHA-256 hash of the bytes, as `sha256:<hex>`. The first access in a process reads the whole blob."""
        cache, cache_name = self._snapshot.store.object_cache, f"{self._stored.identity}:sha256"
        known_hash: str | None = cache.get(cache_name)
        if known_hash is not None:
            return known_hash
        digest = hashlib.sha256()
        for chunk in self.iter_chunks():
            digest.update(chunk)
        content_hash = f"sha256:{digest.hexdigest()}"
        cache.put(cache_name, content_hash)
        return content_hash

    @property
    def etag(self) -> str:
        """A strong ETag. It identifies the exact bytes, and stays the same after compactions, merges and copies."""
        return f'"{self.content_hash}"'

    # Reading ------------------------------------------------------------------------------------

    def read(self, start: int = 0, stop: int | None = None) -> bytes:
        """Return the bytes from `start` to the end of the blob or, if `stop` is given, up to but not including `stop`.

        Raises `RangeNotSatisfiable` if the range is empty or starts outside the blob, except that a read from position
        0 of an empty blob returns no bytes.
        """
        first, last = self._clip_range(start, stop)
        return self._read_range(first, last) if first < last else b""

    def iter_chunks(
        self, chunk_bytes: int = CHUNK_BYTES, *, start: int = 0, stop: int | None = None
    ) -> Iterator[bytes]:
        """Yield the blob, or a range of it, in chunks. Only one chunk is held in memory.

        A long read is protected from cleanup until the last chunk has been read or the iterator is closed.
        """
        if chunk_bytes < 1:
            raise UsageError(reason="chunk_bytes must be at least 1")
        first, last = self._clip_range(start, stop)
        return self._iterate(first, last, chunk_bytes)

    def open(self) -> io.BufferedReader:
        """Return a seekable binary file object that reads ahead one mebibyte at a time."""
        return io.BufferedReader(BlobFile(self.size, self._read_range), READ_AHEAD_BYTES)

    def save(
        self,
        path: str | PathLike[str],
        *,
        start: int = 0,
        stop: int | None = None,
        progress: ProgressOption = None,
    ) -> int:
        """Write the blob, or a range of it, to a file atomically. Return the number of bytes written.

        The bytes are first written to a temporary file in the same folder, which is removed if the read fails or is
        interrupted. Pipes and devices are written to directly, and symbolic links are followed. `progress` is called
        with the number of bytes written and the total. Pass True to show a progress bar.
        """
        first, last = self._clip_range(start, stop)
        chunks, report = self._iterate(first, last, CHUNK_BYTES), progress_callback(progress)
        return write_atomically(Path(path), chunks if report is None else report_progress(chunks, last - first, report))

    def require_match(self, etag: str) -> None:
        """Raise `BlobPreconditionFailed` unless the blob has this ETag. `*` matches any blob."""
        if etag != "*" and etag.strip('"') != self.content_hash:
            raise BlobPreconditionFailed(etag=self.etag)

    def verify(self) -> None:
        """Verify the files that contain the blob against their recorded checksums.

        Raises `BlobIntegrityError` if a file is damaged. This method reads the files completely. To verify all files in
        a graph, use `check`.
        """
        store = self._snapshot.store
        checksums = find_checksums_in_log(store, self._snapshot.log, set(self._stored.file_names()))
        for file_name, checksum in checksums.items():
            mismatch = find_mismatch(store, file_name, checksum)
            if mismatch is not None:
                address = f"{self.type_name} '{self.entity_id}', {self.property_name}"
                raise BlobIntegrityError(f"{address}: {file_name} is damaged: {mismatch}")

    # Internal -------------------------------------------------------------------------------------

    def _clip_range(self, start: int, stop: int | None) -> tuple[int, int]:
        size, last = self.size, self.size if stop is None else stop
        is_empty_blob = size == 0 and start == 0 and last >= 0
        if not is_empty_blob and not 0 <= start < min(last, size):
            raise RangeNotSatisfiable(start=start, end=max(start, size) if stop is None else stop, length=size)
        return start, min(last, size)

    def _read_range(self, first: int, last: int) -> bytes:
        snapshot = self._snapshot
        try:
            with explain_missing_files(snapshot):
                return self._stored.read_range(first, last)
        except BlobIntegrityError as error:
            if lacks_table_version(snapshot) and snapshot.is_superseded():
                raise reclaimed_error(snapshot.commit_id) from error
            raise

    def _iterate(self, first: int, last: int, chunk_bytes: int) -> Iterator[bytes]:
        with ExitStack() as stack:
            store = self._snapshot.store
            if last - first >= _PROTECTED_BYTES and not store.effects.read_only:
                with suppress(StorageError):  # a reader without write access cannot protect itself from a cleanup
                    stack.enter_context(protect_snapshot(store, self._branch_state, self._snapshot))
            for chunk_start in range(first, last, chunk_bytes):
                yield self._read_range(chunk_start, min(chunk_start + chunk_bytes, last))


def report_progress(chunks: Iterator[bytes], total_bytes: int, report: ProgressCallback) -> Iterator[bytes]:
    """Yield chunks, and after each one, report the number of bytes yielded so far."""
    written_bytes = 0
    for chunk in chunks:
        yield chunk
        written_bytes += len(chunk)
        report(written_bytes, total_bytes)


def blob(
    handle: Handle,
    type_name: str,
    key: Any,
    property_name: str,
    /,
    *,
    kind: str | None = None,
    if_match: str | None = None,
) -> Blob:
    """Open a blob, as in `graph.blob("Doc", "a", "body").read()`. `key` is a node's key or an edge's id.

    The blob is read at this graph's current commit. Raises `EntityNotFound` if the entity does not exist or the blob is
    NULL, `InputError` if the property is not a blob, and `BlobPreconditionFailed` if `if_match` is given but is not the
    blob's ETag.
    """
    snapshot = handle.latest_snapshot()
    address = resolve_address(snapshot.schema.ir, type_name, key, property_name, kind)
    opened = Blob(handle.branch_state, snapshot, address)
    if if_match is not None:
        opened.require_match(if_match)
    return opened
