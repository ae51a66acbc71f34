"""Compute file checksums, and check whether a file still matches its recorded checksum.

All checksums use CRC-32, because computing one takes less time than reading the file. CRC-32 detects every single
flipped bit and every burst of up to 32 damaged bits. Any other damage goes undetected in one in four billion cases. The
checksum of a control object also covers its name, so swapping two similar objects is detected.
"""

import json
import struct
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from omnigraph.errors.counts import format_count
from omnigraph.records.frozen import record

from .failures import DamagedError

if TYPE_CHECKING:
    from .store import Store

CHECKSUM_BLOCK_BYTES = 1 << 20  # number of bytes per read
CHECKSUM_MEMBER = "crc32"  # the member of a control object that holds its own checksum
MISSING_FILE = "the file is missing"


@record
class FileChecksum:
    """The size of a file in bytes, and the CRC-32 of its content.

    If `manifest_only` is true, both values describe only the manifest section of a version file. This is the case if
    Lance itself wrote the file to an object store, because then the other sections are unknown.

    >>> FileChecksum.of_bytes(b"graph").to_json()
    [5, '094505dc']
    >>> FileChecksum.from_json([5, "094505dc"]) == FileChecksum.of_bytes(b"graph")
    True
    """

    size: int
    crc32: int
    manifest_only: bool = False

    def to_json(self) -> list[Any]:
        """Convert the checksum to the compact form that is stored in commits."""
        return [self.size, f"{self.crc32:08x}", *([1] if self.manifest_only else [])]

    @classmethod
    def from_json(cls, compact_form: Sequence[Any]) -> "FileChecksum":
        """Parse a checksum in the compact form."""
        size, crc_digits, *manifest_only = compact_form
        return cls(int(size), int(crc_digits, 16), bool(manifest_only))

    @classmethod
    def of_bytes(cls, content: bytes) -> "FileChecksum":
        """Return the checksum of in-memory bytes."""
        return cls(len(content), zlib.crc32(content))

    @classmethod
    def of_blocks(cls, blocks: Iterable[bytes]) -> "FileChecksum":
        """Compute the checksum of a file from its blocks."""
        size = crc = 0
        for block in blocks:
            size, crc = size + len(block), zlib.crc32(block, crc)
        return cls(size, crc)


FileChecksums = Mapping[str, FileChecksum]


def find_mismatch(store: "Store", file_name: str, expected: FileChecksum) -> str | None:
    """Read a file and describe how its checksum differs from the expected one, or return None if they are equal."""
    blocks = store.objects.backend.read_blocks(file_name)
    if blocks is None:
        return MISSING_FILE
    if expected.manifest_only:
        return describe_mismatch(expected, checksum_manifest(extract_manifest(b"".join(blocks))))
    return describe_mismatch(expected, FileChecksum.of_blocks(blocks))


def describe_mismatch(expected: FileChecksum, actual: FileChecksum) -> str | None:
    """Describe how the actual checksum of a file differs from the expected one, or return None if they are equal.

    >>> describe_mismatch(FileChecksum(5, 1), FileChecksum(4, 1))
    'the file has 4 bytes, expected 5'
    """
    if actual.size != expected.size:
        return f"the file has {format_count(actual.size, 'byte')}, expected {expected.size}"
    if actual.crc32 != expected.crc32:
        return "the content does not match its checksum"
    return None


def verified_blocks(file_name: str, blocks: Iterable[bytes], expected: FileChecksum | None) -> Iterator[bytes]:
    """Yield the given blocks; raise `DamagedError` after the last block if they do not match the checksum."""
    if expected is None:
        yield from blocks
        return
    if expected.manifest_only:  # version files are small enough to collect all blocks in memory
        content = b"".join(blocks)
        yield content
        actual = checksum_manifest(extract_manifest(content))
    else:
        size = crc = 0
        for block in blocks:
            size, crc = size + len(block), zlib.crc32(block, crc)
            yield block
        actual = FileChecksum(size, crc)
    reason = describe_mismatch(expected, actual)
    if reason is not None:
        raise DamagedError(f"{file_name} is damaged: {reason}")


def checksum_manifest(manifest_bytes: bytes) -> FileChecksum:
    """Compute the checksum of a manifest from the number of times that each byte value occurs.

    Lance serializes maps in arbitrary order, so the bytes of the same manifest may be in a different order in memory
    than in the store. A flipped bit is still detected, because it changes two of the counts.
    """
    import numpy as np

    byte_counts = np.bincount(np.frombuffer(manifest_bytes, np.uint8), minlength=256).astype("<u4")
    return FileChecksum(len(manifest_bytes), zlib.crc32(byte_counts.tobytes()), manifest_only=True)


def extract_manifest(file_bytes: bytes) -> bytes:
    """Return the manifest section of a version file, or empty bytes if the file is truncated."""
    if len(file_bytes) < 16:
        return b""
    (manifest_start,) = struct.unpack_from("<Q", file_bytes, len(file_bytes) - 16)
    if manifest_start + 4 > len(file_bytes):
        return b""
    (manifest_size,) = struct.unpack_from("<I", file_bytes, manifest_start)
    return file_bytes[manifest_start + 4 : manifest_start + 4 + manifest_size]


def with_own_checksum(object_name: str, members: Mapping[str, Any]) -> dict[str, Any]:
    """Return the members of a control object, plus a checksum that covers these members and the object name."""
    return {**members, CHECKSUM_MEMBER: _compute_own_checksum(object_name, members)}


def matches_own_checksum(object_name: str, members: Mapping[str, Any]) -> bool:
    """Return whether a control object matches its checksum. An older object without a checksum always matches."""
    other_members = {member_name: value for member_name, value in members.items() if member_name != CHECKSUM_MEMBER}
    return CHECKSUM_MEMBER not in members or members[CHECKSUM_MEMBER] == _compute_own_checksum(
        object_name, other_members
    )


def _compute_own_checksum(object_name: str, members: Mapping[str, Any]) -> str:
    canonical_text = json.dumps(members, ensure_ascii=False, sort_keys=True)
    return f"{zlib.crc32(f'{object_name} {canonical_text}'.encode()):08x}"
