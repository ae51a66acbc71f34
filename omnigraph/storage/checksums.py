"""Checksums of files: how they are computed, and whether a file still matches the recorded one.

Owns the choice of CRC-32: every flipped bit and every burst of up to 32 bits changes it, other
damage goes undetected once in four billion cases, and it costs less than reading the file. The
checksum of a control object covers its name, so two objects of one kind cannot be swapped.
"""

import json
import struct
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from .failures import DamagedError

if TYPE_CHECKING:
    from .store import Store

BLOCK = 1 << 20  # bytes read at a time
SELF = "crc32"  # the member of a control object that holds its own checksum
MISSING = "it is missing"


@dataclass(frozen=True, slots=True)
class FileChecksum:
    """The size of a file in bytes, and the CRC-32 of its content.

    With `manifest_only` both describe the manifest inside a version file: for a version that Lance
    wrote to an object store, only that part is known.

    >>> FileChecksum.of_bytes(b"graph").to_json()
    [5, '094505dc']
    >>> FileChecksum.from_json([5, "094505dc"]) == FileChecksum.of_bytes(b"graph")
    True
    """

    size: int
    crc32: int
    manifest_only: bool = False

    def to_json(self) -> list[Any]:
        """Return the compact form that commits store."""
        return [self.size, f"{self.crc32:08x}", *([1] if self.manifest_only else [])]

    @classmethod
    def from_json(cls, facts: Sequence[Any]) -> "FileChecksum":
        """Parse the compact form."""
        size, digits, *manifest_only = facts
        return cls(int(size), int(digits, 16), bool(manifest_only))

    @classmethod
    def of_bytes(cls, body: bytes) -> "FileChecksum":
        """Return the checksum of bytes in memory."""
        return cls(len(body), zlib.crc32(body))

    @classmethod
    def of_blocks(cls, blocks: Iterable[bytes]) -> "FileChecksum":
        """Return the checksum of a file that is read block by block."""
        size = crc = 0
        for block in blocks:
            size, crc = size + len(block), zlib.crc32(block, crc)
        return cls(size, crc)


FileChecksums = Mapping[str, FileChecksum]


def find_mismatch(store: "Store", name: str, expected: FileChecksum) -> str | None:
    """Read a file and return how it differs from its checksum; None when it matches."""
    blocks = store.objects.backend.blocks(name)
    if blocks is None:
        return MISSING
    if expected.manifest_only:
        return describe_mismatch(expected, checksum_manifest(manifest_inside(b"".join(blocks))))
    return describe_mismatch(expected, FileChecksum.of_blocks(blocks))


def describe_mismatch(expected: FileChecksum, actual: FileChecksum) -> str | None:
    """Return how a file differs from its checksum; None when it matches.

    >>> describe_mismatch(FileChecksum(5, 1), FileChecksum(4, 1))
    'it has 4 bytes instead of 5'
    """
    if actual.size != expected.size:
        return f"it has {actual.size} bytes instead of {expected.size}"
    if actual.crc32 != expected.crc32:
        return "its content does not match its checksum"
    return None


def verified_blocks(
    name: str, blocks: Iterable[bytes], expected: FileChecksum | None
) -> Iterator[bytes]:
    """Yield the same blocks; raise `DamagedError` after the last one if they do not match."""
    if expected is None:
        yield from blocks
        return
    if expected.manifest_only:  # such files are small
        body = b"".join(blocks)
        yield body
        actual = checksum_manifest(manifest_inside(body))
    else:
        size = crc = 0
        for block in blocks:
            size, crc = size + len(block), zlib.crc32(block, crc)
            yield block
        actual = FileChecksum(size, crc)
    reason = describe_mismatch(expected, actual)
    if reason is not None:
        raise DamagedError(f"{name} is damaged: {reason}")


def checksum_manifest(body: bytes) -> FileChecksum:
    """Return the checksum of a manifest, computed from how often each byte occurs in it.

    Lance serializes maps in arbitrary order, so the bytes are ordered differently in memory and on
    the store. Every flipped bit still changes two of the counts.
    """
    counts = np.bincount(np.frombuffer(body, np.uint8), minlength=256).astype("<u4")
    return FileChecksum(len(body), zlib.crc32(counts.tobytes()), manifest_only=True)


def manifest_inside(body: bytes) -> bytes:
    """Return the manifest inside a version file, without other sections; empty if truncated."""
    if len(body) < 16:
        return b""
    (start,) = struct.unpack_from("<Q", body, len(body) - 16)
    if start + 4 > len(body):
        return b""
    (size,) = struct.unpack_from("<I", body, start)
    return body[start + 4 : start + 4 + size]


def with_own_checksum(name: str, facts: Mapping[str, Any]) -> dict[str, Any]:
    """Return the members of a control object plus the checksum over them and the name."""
    return {**facts, SELF: _own_checksum(name, facts)}


def matches_own_checksum(name: str, facts: Mapping[str, Any]) -> bool:
    """Return whether a control object matches its checksum; old ones without one always match."""
    rest = {key: value for key, value in facts.items() if key != SELF}
    return SELF not in facts or facts[SELF] == _own_checksum(name, rest)


def _own_checksum(name: str, facts: Mapping[str, Any]) -> str:
    text = json.dumps(facts, ensure_ascii=False, sort_keys=True)
    return f"{zlib.crc32(f'{name} {text}'.encode()):08x}"
