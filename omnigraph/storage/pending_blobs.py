"""Blobs that a write has accepted but not yet stored: files and external objects.

Rows contain a short placeholder instead of the bytes. The bytes are streamed when the rows are written, so a large blob
is never held in memory.
"""

import hashlib
import os
import stat
import tempfile
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any

from omnigraph.errors import ExternalBlobPolicyError, InputError
from omnigraph.values import BlobSource, BlobUri

from .blob_placeholders import AcceptedContents, ContentRange
from .checksums import CHECKSUM_BLOCK_BYTES
from .external_blobs import BlobLocation, read_external, require_allowed
from .failures import as_storage_errors

_active: ContextVar["PendingBlobs | None"] = ContextVar("omnigraph_pending_blobs", default=None)


class PendingBlobs:
    """The blobs of one write. Temporary copies are removed by `close`, or when this object is garbage collected.

    If `allowed_bases` is None, external blobs are not supported at all. `report` is called with the number of bytes
    read so far and the total size. If the total is unknown, the number of bytes read so far is passed twice. Set
    `copies_files` if files may change or disappear before the blobs are stored. Without `compares_stored`, stored blobs
    are not hashed, so equal blobs in different rows may get different placeholders.
    """

    def __init__(
        self,
        allowed_bases: Iterable[BlobLocation] | None,
        s3_settings: Mapping[str, str],
        report: Callable[[int, int], None] | None = None,
        *,
        copies_files: bool = False,
        compares_stored: bool = True,
    ) -> None:
        self._report, self._copies_files, self._compares_stored = report, copies_files, compares_stored
        self._allowed_bases = None if allowed_bases is None else tuple(allowed_bases)
        self._s3_settings = s3_settings
        self._placeholders: dict[object, bytes] = {}
        self._sources: list[Any] = []  # keeps the sources alive, because placeholders are looked up by object identity
        self._accepted = AcceptedContents()
        # A merge result is never closed, nor is a merge session that is never committed.
        weakref.finalize(self, self._accepted.abandon)
        self._links: dict[Path, Path] = {}
        self._file_count = 0

    @contextmanager
    def activate(self) -> Iterator[None]:
        """Accept files and external blobs in values that are converted inside the `with` block."""
        token = _active.set(self)
        try:
            yield
        finally:
            _active.reset(token)

    def close(self) -> None:
        """Discard all placeholders and remove temporary files."""
        self._accepted.close()
        self._placeholders.clear()
        self._links.clear()

    def accept(self, blob: BlobUri | BlobSource) -> bytes:
        """Return the placeholder for a blob. Each source is read only once, even if a write is retried."""
        key = _source_key(blob)
        if key not in self._placeholders:
            self._sources.append(blob)
            self._placeholders[key] = self._accept_new(blob)
        return self._placeholders[key]

    def accept_stored(
        self, key: object, content: ContentRange | None, read_blocks: Callable[[], Iterable[bytes]]
    ) -> bytes:
        """Return the placeholder for a blob that is stored in the graph.

        `content` is the range of the local file that contains the blob. Without a local file, the blob is copied.
        """
        if key not in self._placeholders:
            self._placeholders[key] = self._copy(read_blocks()) if content is None else self._refer(key, content)
        return self._placeholders[key]

    def _refer(self, key: object, content: ContentRange) -> bytes:
        """Register a range of a stored file, which never changes, and return its placeholder."""
        digest = hashlib.sha256()
        for block in content.read_blocks() if self._compares_stored else [repr(key).encode()]:
            digest.update(block)
        link = self._links.get(content.path) or self._link_safely(content.path)
        return self._accepted.register(digest.digest(), ContentRange(link, content.position, content.size))

    def _accept_new(self, blob: BlobUri | BlobSource) -> bytes:
        if isinstance(blob, BlobUri):
            if self._allowed_bases is None:
                raise _no_external_blobs_error(blob)
            location = require_allowed(blob.uri, self._allowed_bases)
            return self._copy(read_external(blob.uri, location, self._s3_settings))
        if isinstance(blob.source, os.PathLike):
            return self._link(Path(blob.source).absolute(), copy=self._copies_files)
        return self._copy(_read_file(blob.source))

    def _link(self, path: Path, *, copy: bool = False) -> bytes:
        """Link or copy a file, register it, and return its placeholder.

        A file that cannot be read twice, such as a pipe, is always copied. The link gets a safe name, because the
        original name may contain any characters.
        """
        try:
            with path.open("rb") as file:
                if copy or not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                    return self._copy(_read_file(file))
                digest, size = hashlib.sha256(), 0
                for block in self._reported(_read_file(file), os.fstat(file.fileno()).st_size):
                    digest.update(block)
                    size += len(block)
        except OSError as error:
            raise _unreadable_error(path, error) from error
        return self._accepted.register(digest.digest(), ContentRange(self._link_safely(path), 0, size))

    def _link_safely(self, path: Path) -> Path:
        link = self._links[path] = self._new_path()
        link.symlink_to(path)
        return link

    def _copy(self, blocks: Iterable[bytes]) -> bytes:
        digest, size, copy = hashlib.sha256(), 0, self._new_path()
        with as_storage_errors("none"):
            file = copy.open("wb")
        with file:
            for block in self._reported(blocks, 0):  # the blocks come from another source, which raises its own errors
                digest.update(block)
                size += len(block)
                with as_storage_errors("none"):
                    file.write(block)
            with as_storage_errors("none"):
                file.flush()
        return self._accepted.register(digest.digest(), ContentRange(copy, 0, size))

    def _reported(self, blocks: Iterable[bytes], total_bytes: int) -> Iterator[bytes]:
        read_bytes = 0
        for block in blocks:
            yield block
            read_bytes += len(block)
            if self._report is not None:
                self._report(read_bytes, max(total_bytes, read_bytes))

    def _new_path(self) -> Path:
        if self._accepted.folder is None:
            self._accepted.folder = tempfile.mkdtemp(prefix="omnigraph-blobs-")
        self._file_count += 1
        return Path(self._accepted.folder) / str(self._file_count)


@contextmanager
def pending_blobs(allowed_bases: Iterable[BlobLocation] | None, s3_settings: Mapping[str, str]) -> Iterator[None]:
    """Accept files and external blobs in the values of one write."""
    accepted = PendingBlobs(allowed_bases, s3_settings)
    try:
        with accepted.activate():
            yield
    finally:
        accepted.close()


def accept_blob(blob: BlobUri | BlobSource) -> bytes:
    """Return the placeholder for a blob in the running write; raise an error if no running write accepts blobs."""
    write = running_write()
    if write is not None:
        return write.accept(blob)
    if isinstance(blob, BlobUri):
        raise _no_external_blobs_error(blob)
    raise InputError(reason="this call does not accept a file as a blob", hint="pass the bytes")


def _no_external_blobs_error(blob: BlobUri) -> ExternalBlobPolicyError:
    reason = "external blobs are not supported on Spark; only writes in this process can read them"
    return ExternalBlobPolicyError(uri=blob.uri, reason=reason)


def running_write() -> PendingBlobs | None:
    """Return the pending blobs of the write that is running in this context, or None if there is no such write."""
    return _active.get()


def _source_key(blob: BlobUri | BlobSource) -> object:
    """Return a key that identifies a source within one write.

    Equal paths get different keys, because the content of a file may change.
    """
    if isinstance(blob, BlobUri):
        return blob.uri
    return id(blob) if isinstance(blob.source, os.PathLike) else id(blob.source)


def _read_file(file: Any) -> Iterator[bytes]:
    while True:
        try:
            block = file.read(CHECKSUM_BLOCK_BYTES)
        except OSError as error:
            raise _unreadable_error(getattr(file, "name", "the file"), error) from error
        if not isinstance(block, bytes | bytearray | memoryview):
            raise InputError(reason="the file must be opened in binary mode", hint='use open(path, "rb")')
        if not block:
            return
        yield bytes(block)


def _unreadable_error(name: object, error: OSError) -> InputError:
    return InputError(reason=f"cannot read {name}: {error.strerror or error}")
