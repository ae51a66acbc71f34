"""Placeholders: short byte strings that represent blobs in the rows of a write, so that the blobs stay in files.

A placeholder consists of a random prefix and a hash. A placeholder is valid only in this process, and only until the
write that registered it ends. Equal placeholders represent equal bytes. This module records where these bytes are
stored. It never decides which blobs a write accepts.
"""

import hashlib
import shutil
import threading
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeGuard

import pyarrow as pa

from omnigraph.errors import InternalError
from omnigraph.records.frozen import record
from omnigraph.values import clock_and_ids
from omnigraph.values.blobs import BlobDigest

from .checksums import CHECKSUM_BLOCK_BYTES

MAX_SHOWN_BYTES = 4 << 20  # maximum size of a blob whose bytes are part of a conflict
_PLACEHOLDER_PREFIX = f"omnigraph pending blob {clock_and_ids.new_nonce()} ".encode()
_PLACEHOLDER_LENGTH = len(_PLACEHOLDER_PREFIX) + hashlib.sha256().digest_size


@record
class ContentRange:
    """The location of one blob in a local file: `size` bytes, starting at `position`."""

    path: Path
    position: int
    size: int

    def read_blocks(self) -> Iterator[bytes]:
        """Yield the bytes in blocks."""
        remaining_bytes = self.size
        with self.path.open("rb") as file:
            file.seek(self.position)
            while remaining_bytes:
                block = file.read(min(CHECKSUM_BLOCK_BYTES, remaining_bytes))
                if not block:
                    raise InternalError(
                        reason=f"{self.path.name} ends {remaining_bytes} bytes before the end of a blob"
                    )
                remaining_bytes -= len(block)
                yield block


# The content of each placeholder. Several writes may accept equal bytes at the same time.
_contents: dict[bytes, list[ContentRange]] = {}
_contents_lock = threading.Lock()
_abandoned: deque["AcceptedContents"] = deque()


@dataclass(slots=True, eq=False)
class AcceptedContents:
    """The placeholders that one write has registered, and the folder that holds the write's links and copies."""

    contents: list[tuple[bytes, ContentRange]] = field(default_factory=list)
    folder: str | None = None

    def register(self, digest: bytes, content: ContentRange) -> bytes:
        """Make the content available under a placeholder, and return the placeholder."""
        while _abandoned:
            _abandoned.popleft().close()
        placeholder = _PLACEHOLDER_PREFIX + digest
        with _contents_lock:
            _contents.setdefault(placeholder, []).append(content)
        self.contents.append((placeholder, content))
        return placeholder

    def close(self) -> None:
        """Discard all placeholders and remove the folder."""
        with _contents_lock:
            for placeholder, content in self.contents:
                registered = _contents[placeholder]
                registered.remove(content)
                if not registered:
                    del _contents[placeholder]
        self.contents.clear()
        self._remove_folder()

    def abandon(self) -> None:
        """Remove the folder, but leave it to the next write to discard the placeholders.

        Discarding them requires the lock, and the garbage collector may call this function at any time, even in a
        thread that holds the lock.
        """
        self._remove_folder()
        if self.contents:
            _abandoned.append(self)

    def _remove_folder(self) -> None:
        if self.folder is not None:
            shutil.rmtree(self.folder, ignore_errors=True)
            self.folder = None


def placeholder_of(content: bytes) -> bytes:
    """Return the placeholder that would represent these bytes, without registering it."""
    return _PLACEHOLDER_PREFIX + hashlib.sha256(content).digest()


def _is_placeholder(value: bytes | None) -> TypeGuard[bytes]:
    return value is not None and len(value) == _PLACEHOLDER_LENGTH and value.startswith(_PLACEHOLDER_PREFIX)


def content_digest(value: bytes) -> str | None:
    """Return the SHA-256 of the bytes that a placeholder represents, or None if the value is not a placeholder."""
    return value[len(_PLACEHOLDER_PREFIX) :].hex() if _is_placeholder(value) else None


def shown_value(value: Any) -> Any:
    """Return a stored value in the form that users see, in which a large blob is represented by its digest."""
    content = content_range(value) if isinstance(value, bytes) else None
    if content is None:
        return value
    if content.size > MAX_SHOWN_BYTES:
        return BlobDigest(content.size, f"sha256:{content_digest(value)}")
    return b"".join(content.read_blocks())


def placeholder_of_digest(digest: BlobDigest) -> bytes:
    """Return the placeholder for a digest that `shown_value` has returned."""
    placeholder = _PLACEHOLDER_PREFIX + bytes.fromhex(digest.content_hash.removeprefix("sha256:"))
    content_range(placeholder)  # raises an error if the write has ended
    return placeholder


def restore_blobs(rows: pa.Table) -> pa.Table:
    """Return rows with bytes instead of placeholders."""
    for position, column_field in enumerate(rows.schema):
        if pa.types.is_large_binary(column_field.type):
            values = [_restore_value(value) for value in rows.column(position).to_pylist()]
            rows = rows.set_column(position, column_field, pa.array(values, column_field.type))
    return rows


def _restore_value(value: bytes | None) -> bytes | None:
    content = content_range(value)
    return value if content is None else b"".join(content.read_blocks())


def content_range(value: bytes | None) -> ContentRange | None:
    """Return the location of the bytes that a placeholder represents, or None if the value is not a placeholder."""
    if not _is_placeholder(value):
        return None
    with _contents_lock:
        contents = _contents.get(value)
    if not contents:
        raise InternalError(reason="a pending blob was used after its write had finished")
    # The files of an abandoned write are removed before its placeholders are discarded.
    return next((content for content in contents if content.path.exists()), contents[0])
