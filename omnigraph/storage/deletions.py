"""Determine which rows in a fragment are deleted by reading only its deletion file.

A deletion file is an Arrow list if few rows are deleted, and a Roaring bitmap if many are. Reading it directly avoids
enumerating millions of rows to find a few deleted ones. This module also ensures that Lance never reads a damaged
deletion file. Lance would try to allocate as much memory as a length in the file specifies, and a failed allocation
aborts the process.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from .deletion_list import RowOffsets, read_offsets
from .failures import DamagedError
from .store import Store

if TYPE_CHECKING:
    from .table import Table

_PLAIN_COOKIE, _RUN_COOKIE = (12346, 12347)  # the first word of a Roaring bitmap, without and with runs
_OFFSETS_PER_WEIGHT = 128  # number of offsets that together count as one commit toward the cache limit
_MAX_ARRAY_VALUES = 4096  # a container with at most 4,096 values stores the values as a list
_MIN_OFFSET_CONTAINERS = 4  # a bitmap with runs has an offset table if it has at least four containers


def deletion_files(table: "Table", fragments: Sequence[Any]) -> tuple[str, ...]:
    """Return the root-relative names of the deletion files of these fragments."""
    fragments_with_deletions = (fragment for fragment in fragments if fragment.deletion_file is not None)
    return tuple(deletion_file_name(table.location, fragment) for fragment in fragments_with_deletions)


def deletion_file_name(location: str, metadata: Any) -> str:
    """Return the root-relative name of a fragment's deletion file."""
    deletion_entry = metadata.to_json()["deletion_file"]
    suffix = "arrow" if deletion_entry["file_type"] == "array" else "bin"
    file_name = f"{metadata.id}-{deletion_entry['read_version']}-{deletion_entry['id']}.{suffix}"
    return f"{location}/_deletions/{file_name}"


def check_deletion_files(store: Store, table: "Table") -> None:
    """Raise `DamagedError` if a version has a damaged deletion file, which Lance must not read.

    Each file is read once per process, and only on a local disk. An object store verifies its own contents, and reading
    a file from it would take a request.
    """
    if not store.root.is_local:
        return
    for fragment in table.dataset.get_fragments():
        for file_name in deletion_files(table, [fragment.metadata]):
            if store.object_cache.get(f"checked {file_name}") is None:
                if deleted_offsets(store, table, fragment) is None:
                    raise DamagedError(f"deletion file {file_name} is missing or damaged")
                store.object_cache.put(f"checked {file_name}", True)


def cached_offsets(store: Store, location: str, fragment: Any) -> RowOffsets | None:
    """Return the sorted offsets of deleted rows, using a cache, or None if the file is missing or damaged."""
    metadata = fragment.metadata
    file_name = deletion_file_name(location, metadata) if metadata.deletion_file is not None else ""
    remembered_offsets: RowOffsets | None = store.object_cache.get(file_name)
    if remembered_offsets is not None:
        return remembered_offsets
    offsets = _load_deleted_offsets(store, location, fragment)
    if offsets is not None and file_name:
        remember_offsets(store, file_name, offsets)
    return offsets


def remember_offsets(store: Store, file_name: str, offsets: RowOffsets) -> None:
    """Cache the content of a deletion file, which never changes."""
    store.object_cache.put(file_name, offsets, weight=1 + len(offsets) // _OFFSETS_PER_WEIGHT)


def deleted_offsets(store: Store, table: "Table", fragment: Any) -> RowOffsets | None:
    """Return the sorted offsets of deleted rows, or None if the file is missing or damaged."""
    return _load_deleted_offsets(store, table.location, fragment)


def _load_deleted_offsets(store: Store, location: str, fragment: Any) -> RowOffsets | None:
    metadata = fragment.metadata
    if metadata.deletion_file is None:
        return np.zeros(0, np.int64)
    file_name = deletion_file_name(location, metadata)
    file_bytes = store.objects.read(file_name)
    if file_bytes is None:
        return None
    try:
        offsets = read_offsets(file_bytes) if file_name.endswith(".arrow") else read_bitmap(file_bytes)
    except (LookupError, OSError, ValueError, MemoryError, TypeError, pa.ArrowException):
        return None
    return offsets if _is_plausible(offsets, fragment) else None


def _is_plausible(offsets: RowOffsets, fragment: Any) -> bool:
    """Return whether the offsets are in ascending order, lie within the fragment, and match the recorded count."""
    if len(offsets) != fragment.num_deletions:
        return False
    return not len(offsets) or bool(
        offsets[0] >= 0 and offsets[-1] < fragment.physical_rows and np.all(np.diff(offsets) > 0)
    )


def read_bitmap(bitmap: bytes) -> RowOffsets:
    """Return the values in a Roaring bitmap, which must be in the portable format.

    >>> read_bitmap(bytes.fromhex("3a300000010000000000000010000000" + "0700")).tolist()
    [7]
    """
    uint16_words = np.frombuffer(bitmap, "<u2", len(bitmap) // 2)
    cookie, position = int(uint16_words[0]), 2
    if cookie not in (_PLAIN_COOKIE, _RUN_COOKIE):
        raise ValueError(f"a bitmap begins with the unknown magic number {cookie}")
    container_count = (
        int(uint16_words[1]) + 1 if cookie == _RUN_COOKIE else int(uint16_words[2]) | int(uint16_words[3]) << 16
    )
    run_flags = np.zeros(container_count, np.uint8)
    header_position = 4 if cookie == _RUN_COOKIE else 8
    if cookie == _RUN_COOKIE:
        flag_bytes = (container_count + 7) // 8
        flag_bits = np.frombuffer(bitmap, np.uint8, flag_bytes, header_position)
        run_flags = np.unpackbits(flag_bits, bitorder="little")[:container_count]
        header_position += flag_bytes
    container_headers = (
        np.frombuffer(bitmap, "<u2", 2 * container_count, header_position).astype(np.int64).reshape(container_count, 2)
    )
    position = header_position + 4 * container_count
    if cookie == _PLAIN_COOKIE or container_count >= _MIN_OFFSET_CONTAINERS:
        position += 4 * container_count
    containers = [np.zeros(0, np.int64)]
    for (high_bits, count_minus_one), is_run in zip(container_headers.tolist(), run_flags.tolist(), strict=True):
        low_values, position = _read_container(bitmap, position, count_minus_one + 1, bool(is_run))
        containers.append(low_values + (high_bits << 16))
    if position != len(bitmap):
        raise ValueError("the length of a bitmap does not match its containers")
    return np.concatenate(containers)


def _read_container(bitmap: bytes, position: int, value_count: int, is_run: bool) -> tuple[RowOffsets, int]:
    """Return the values in one container and the position of the next container."""
    if is_run:
        run_count = int(np.frombuffer(bitmap, "<u2", 1, position)[0])
        run_pairs = np.frombuffer(bitmap, "<u2", 2 * run_count, position + 2).astype(np.int64).reshape(run_count, 2)
        run_values = [
            np.arange(run_start, run_start + run_length_minus_one + 1)
            for run_start, run_length_minus_one in run_pairs.tolist()
        ]
        return np.concatenate(run_values), position + 2 + 4 * run_count
    if value_count <= _MAX_ARRAY_VALUES:
        return np.frombuffer(bitmap, "<u2", value_count, position).astype(np.int64), position + 2 * value_count
    bit_values = np.unpackbits(np.frombuffer(bitmap, np.uint8, 8192, position), bitorder="little")
    return np.flatnonzero(bit_values).astype(np.int64), position + 8192
