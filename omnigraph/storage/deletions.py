"""Which rows of a fragment a version has deleted, read from its deletion file alone.

Owns both formats of that file: a short list as Arrow, many rows as a Roaring bitmap. This avoids
enumerating a fragment of millions of rows to find a few deleted ones. Also ensures that Lance never
reads a damaged deletion file: it allocates as much memory as the file claims to need, which aborts
the process.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from .deletion_list import Offsets, read_offsets
from .failures import DamagedError
from .store import Store

if TYPE_CHECKING:
    from .table import Table

_PLAIN, _RUNS = 12346, 12347  # the first word of a Roaring bitmap, without and with runs
_CACHED = 128  # offsets that weigh as much in the cache as one commit
_SPARSE = 4096  # a container with at most this many values is a list of them
_NO_OFFSETS = 4  # a bitmap with runs has an offset table from this many containers on


def deletion_files(table: "Table", fragments: Sequence[Any]) -> tuple[str, ...]:
    """Return the root-relative names of the deletion files of fragments."""
    marked = (one for one in fragments if one.deletion_file is not None)
    return tuple(deletion_file(table.location, one) for one in marked)


def deletion_file(location: str, metadata: Any) -> str:
    """Return the root-relative name of the deletion file of a fragment."""
    facts = metadata.to_json()["deletion_file"]
    suffix = "arrow" if facts["file_type"] == "array" else "bin"
    name = f"{metadata.id}-{facts['read_version']}-{facts['id']}.{suffix}"
    return f"{location}/_deletions/{name}"


def check_deletion_files(store: Store, table: "Table") -> None:
    """Raise `DamagedError` if a version has a deletion file that Lance must not read.

    Each file is read once per process, on a local disk only: an object store verifies what it
    stores, and a read would cost a request.
    """
    if not store.root.local:
        return
    for fragment in table.dataset.get_fragments():
        for name in deletion_files(table, [fragment.metadata]):
            if store.memory.get(f"checked {name}") is None:
                if deleted_offsets(store, table, fragment) is None:
                    raise DamagedError(f"deletion file {name} is missing or damaged")
                store.memory.put(f"checked {name}", True)


def known_offsets(store: Store, location: str, fragment: Any) -> Offsets | None:
    """Return the offsets of deleted rows, read once per process; None as in `deleted_offsets`."""
    facts = fragment.metadata
    name = deletion_file(location, facts) if facts.deletion_file is not None else ""
    cached: Offsets | None = store.memory.get(name)
    if cached is not None:
        return cached
    offsets = _read_offsets(store, location, fragment)
    if offsets is not None and name:
        remember_offsets(store, name, offsets)
    return offsets


def remember_offsets(store: Store, name: str, offsets: Offsets) -> None:
    """Cache the content of a deletion file, which never changes."""
    store.memory.put(name, offsets, weight=1 + len(offsets) // _CACHED)


def deleted_offsets(store: Store, table: "Table", fragment: Any) -> Offsets | None:
    """Return the sorted offsets of deleted rows; None if the file is missing or damaged."""
    return _read_offsets(store, table.location, fragment)


def _read_offsets(store: Store, location: str, fragment: Any) -> Offsets | None:
    facts = fragment.metadata
    if facts.deletion_file is None:
        return np.zeros(0, np.int64)
    name = deletion_file(location, facts)
    body = store.objects.read(name)
    if body is None:
        return None
    try:
        offsets = read_offsets(body) if name.endswith(".arrow") else read_bitmap(body)
    except (LookupError, OSError, ValueError, MemoryError, TypeError, pa.ArrowException):
        return None
    return offsets if _is_plausible(offsets, fragment) else None


def _is_plausible(offsets: Offsets, fragment: Any) -> bool:
    """Return whether the offsets match the stated count, are unique and inside the fragment."""
    if len(offsets) != fragment.num_deletions:
        return False
    return not len(offsets) or bool(
        offsets[0] >= 0 and offsets[-1] < fragment.physical_rows and np.all(np.diff(offsets) > 0)
    )


def read_bitmap(body: bytes) -> Offsets:
    """Return the numbers in a Roaring bitmap (portable format).

    >>> read_bitmap(bytes.fromhex("3a300000010000000000000010000000" + "0700")).tolist()
    [7]
    """
    words = np.frombuffer(body, "<u2", len(body) // 2)
    cookie, at = int(words[0]), 2
    if cookie not in (_PLAIN, _RUNS):
        raise ValueError(f"a bitmap cannot begin with {cookie}")
    count = int(words[1]) + 1 if cookie == _RUNS else int(words[2]) | int(words[3]) << 16
    runs = np.zeros(count, np.uint8)
    start = 4 if cookie == _RUNS else 8
    if cookie == _RUNS:
        size = (count + 7) // 8
        flags = np.frombuffer(body, np.uint8, size, start)
        runs = np.unpackbits(flags, bitorder="little")[:count]
        start += size
    heads = np.frombuffer(body, "<u2", 2 * count, start).astype(np.int64).reshape(count, 2)
    at = start + 4 * count
    if cookie == _PLAIN or count >= _NO_OFFSETS:
        at += 4 * count
    parts = [np.zeros(0, np.int64)]
    for (key, less), run in zip(heads.tolist(), runs.tolist(), strict=True):
        values, at = _container(body, at, less + 1, bool(run))
        parts.append(values + (key << 16))
    if at != len(body):
        raise ValueError("a bitmap is shorter or longer than its containers")
    return np.concatenate(parts)


def _container(body: bytes, at: int, count: int, run: bool) -> tuple[Offsets, int]:
    """Return the values of one container, and the position of the next one."""
    if run:
        number = int(np.frombuffer(body, "<u2", 1, at)[0])
        pairs = np.frombuffer(body, "<u2", 2 * number, at + 2).astype(np.int64).reshape(number, 2)
        spans = [np.arange(first, first + more + 1) for first, more in pairs.tolist()]
        return np.concatenate(spans), at + 2 + 4 * number
    if count <= _SPARSE:
        return np.frombuffer(body, "<u2", count, at).astype(np.int64), at + 2 * count
    bits = np.unpackbits(np.frombuffer(body, np.uint8, 8192, at), bitorder="little")
    return np.flatnonzero(bits).astype(np.int64), at + 8192
