"""Blobs that a write has accepted but not yet stored: files and external objects.

Rows contain a short placeholder instead of the bytes, which are streamed when the rows are written, so a large blob is
never held in memory. A placeholder consists of a random prefix and the SHA-256 of the bytes. It is valid only in this
process, and equal placeholders represent equal bytes.
"""

import hashlib
import os
import stat
import tempfile
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any, TypeGuard

from omnigraph.errors import ExternalBlobPolicyError, InputError, InternalError, ResourceLimitExceeded
from omnigraph.values import BlobSource, BlobUri, clock_and_ids

from .checksums import CHECKSUM_BLOCK_BYTES
from .external_blobs import BlobLocation, read_external, require_allowed
from .failures import as_storage_errors

MAX_EXTERNAL_BYTES = 32 << 20  # limit on the total size of the external blobs in one write
_PLACEHOLDER_PREFIX = f"omnigraph pending blob {clock_and_ids.new_nonce()} ".encode()
_PLACEHOLDER_LENGTH = len(_PLACEHOLDER_PREFIX) + hashlib.sha256().digest_size

# The files that hold each placeholder's content. Several writes may accept equal bytes at the same time.
_contents: dict[bytes, list[Path]] = {}
_contents_lock = threading.Lock()
_active: ContextVar["PendingBlobs | None"] = ContextVar("omnigraph_pending_blobs", default=None)


class PendingBlobs:
    """The blobs in one write; `close` removes their temporary copies.

    `report` is called with the number of bytes read so far and the total size; if the total is unknown, the number of
    bytes read so far is passed for both. Set `copies_files` if the caller's files may change or disappear before the
    blobs are stored.
    """

    def __init__(
        self,
        allowed_bases: Iterable[BlobLocation],
        s3_settings: Mapping[str, str],
        report: Callable[[int, int], None] | None = None,
        *,
        copies_files: bool = False,
    ) -> None:
        self._report, self._copies_files = report, copies_files
        self._allowed_bases, self._s3_settings = tuple(allowed_bases), s3_settings
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self._placeholders: dict[object, bytes] = {}
        self._sources: list[Any] = []  # keeps the sources alive, because placeholders are looked up by object identity
        self._paths: list[tuple[bytes, Path]] = []
        self._external_bytes = self._file_count = 0

    @contextmanager
    def activate(self) -> Iterator[None]:
        """Accept blobs in values that are converted inside the `with` block."""
        token = _active.set(self)
        try:
            yield
        finally:
            _active.reset(token)

    def close(self) -> None:
        """Discard all placeholders and remove temporary files."""
        with _contents_lock:
            for placeholder, path in self._paths:
                paths = _contents[placeholder]
                paths.remove(path)
                if not paths:
                    del _contents[placeholder]
        self._paths.clear()
        if self._folder is not None:
            self._folder.cleanup()

    def accept(self, blob: BlobUri | BlobSource) -> bytes:
        """Return the placeholder for a blob; each source is read only once, even if a write is retried."""
        key = _source_key(blob)
        if key not in self._placeholders:
            self._sources.append(blob)
            self._placeholders[key] = self._accept_new(blob)
        return self._placeholders[key]

    def accept_stored(self, key: object, path: Path | None, read_blocks: Callable[[], Iterable[bytes]]) -> bytes:
        """Return the placeholder for a blob that is already stored in the graph.

        `path` is the blob's own local file, if it has one.
        """
        if key not in self._placeholders:
            self._placeholders[key] = self._copy(read_blocks()) if path is None else self._link(path)
        return self._placeholders[key]

    def _accept_new(self, blob: BlobUri | BlobSource) -> bytes:
        if isinstance(blob, BlobUri):
            location = require_allowed(blob.uri, self._allowed_bases)
            return self._copy(self._limit_external(read_external(blob.uri, location, self._s3_settings)))
        if isinstance(blob.source, os.PathLike):
            return self._link(Path(blob.source).absolute(), copy=self._copies_files)
        return self._copy(_read_file(blob.source))

    def _link(self, path: Path, *, copy: bool = False) -> bytes:
        """Register a file, and return its placeholder.

        A file that cannot be read twice, such as a pipe, is always copied. The file is linked under a safe name,
        because the original name may contain any characters.
        """
        try:
            with path.open("rb") as file:
                if copy or not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                    return self._copy(_read_file(file))
                digest = hashlib.sha256()
                for block in self._reported(_read_file(file), os.fstat(file.fileno()).st_size):
                    digest.update(block)
        except OSError as error:
            raise _unreadable_error(path, error) from error
        link = self._new_path()
        link.symlink_to(path)
        return self._register(digest.digest(), link)

    def _copy(self, blocks: Iterable[bytes]) -> bytes:
        digest, copy = hashlib.sha256(), self._new_path()
        with as_storage_errors("none"), copy.open("wb") as file:
            for block in self._reported(blocks, 0):
                digest.update(block)
                file.write(block)
        return self._register(digest.digest(), copy)

    def _reported(self, blocks: Iterable[bytes], total_bytes: int) -> Iterator[bytes]:
        read_bytes = 0
        for block in blocks:
            yield block
            read_bytes += len(block)
            if self._report is not None:
                self._report(read_bytes, max(total_bytes, read_bytes))

    def _register(self, digest: bytes, path: Path) -> bytes:
        placeholder = _PLACEHOLDER_PREFIX + digest
        with _contents_lock:
            _contents.setdefault(placeholder, []).append(path)
        self._paths.append((placeholder, path))
        return placeholder

    def _new_path(self) -> Path:
        if self._folder is None:
            self._folder = tempfile.TemporaryDirectory(prefix="omnigraph-blobs-")
        self._file_count += 1
        return Path(self._folder.name) / str(self._file_count)

    def _limit_external(self, blocks: Iterable[bytes]) -> Iterator[bytes]:
        for block in blocks:
            self._external_bytes += len(block)
            if self._external_bytes > MAX_EXTERNAL_BYTES:
                raise ResourceLimitExceeded(
                    resource="external blob bytes in one write",
                    limit=MAX_EXTERNAL_BYTES,
                    actual=self._external_bytes,
                    hint="copy large objects separately, and pass them as files or with `blob put`",
                )
            yield block


@contextmanager
def pending_blobs(allowed_bases: Iterable[BlobLocation], s3_settings: Mapping[str, str]) -> Iterator[None]:
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
        reason = "external blobs are not supported on Spark; only writes in this process can read them"
        raise ExternalBlobPolicyError(uri=blob.uri, reason=reason)
    raise InputError(reason="a file cannot be used as a blob in this call", hint="pass the bytes")


def running_write() -> PendingBlobs | None:
    """Return the pending blobs for the write that is running in this context, or None if there is no such write."""
    return _active.get()


def placeholder_of(content: bytes) -> bytes:
    """Return the placeholder that these bytes would have."""
    return _PLACEHOLDER_PREFIX + hashlib.sha256(content).digest()


def _is_placeholder(value: bytes | None) -> TypeGuard[bytes]:
    return value is not None and len(value) == _PLACEHOLDER_LENGTH and value.startswith(_PLACEHOLDER_PREFIX)


def content_digest(value: bytes) -> str | None:
    """Return the SHA-256 of the bytes that a placeholder represents, or None if the value is not a placeholder."""
    return value[len(_PLACEHOLDER_PREFIX) :].hex() if _is_placeholder(value) else None


def content_path(value: bytes | None) -> Path | None:
    """Return the file that holds a placeholder's bytes, or None if the value is not a placeholder."""
    if not _is_placeholder(value):
        return None
    with _contents_lock:
        paths = _contents.get(value)
    if not paths:
        raise InternalError(reason="a pending blob was used after its write had ended")
    return paths[0]


def _source_key(blob: BlobUri | BlobSource) -> object:
    """Return a key that identifies a source within one write.

    Equal paths get different keys, because a file's content may change.
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
