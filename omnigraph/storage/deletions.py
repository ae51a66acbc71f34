"""Which rows of a fragment a version has deleted, from its deletion file alone.

Owns the two forms of that file: a short list as Arrow, many rows as a Roaring bitmap. So nobody has
to enumerate a fragment of millions of rows to learn which few of them are gone.
"""

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from .store import Store
from .table import Table, deletion_files

Offsets = npt.NDArray[np.int64]
_PLAIN, _RUNS = 12346, 12347  # how a Roaring bitmap begins, without and with runs
_SPARSE = 4096  # values up to which a container is a list of them
_NO_OFFSETS = 4  # containers with runs below which no table of offsets follows


def deleted_offsets(store: Store, table: Table, fragment: Any) -> Offsets | None:
    """The offsets of deleted rows, sorted; None when the file says it in a way not known here."""
    facts = fragment.metadata
    if facts.deletion_file is None:
        return np.zeros(0, np.int64)
    (name,) = deletion_files(table, [facts])
    body = store.objects.read(name)
    if body is None:
        return None
    try:
        found = _listed(body) if name.endswith(".arrow") else read_bitmap(body)
    except (KeyError, ValueError, IndexError, pa.ArrowException):
        return None
    return found if len(found) == fragment.num_deletions else None


def _listed(body: bytes) -> Offsets:
    column = pa.ipc.open_file(pa.py_buffer(body)).read_all()["row_id"]
    return np.sort(column.to_numpy().astype(np.int64))


def read_bitmap(body: bytes) -> Offsets:
    """The numbers in a Roaring bitmap of the portable format.

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
    return np.concatenate(parts)


def _container(body: bytes, at: int, count: int, run: bool) -> tuple[Offsets, int]:
    """The values of one container, and where the next one begins."""
    if run:
        number = int(np.frombuffer(body, "<u2", 1, at)[0])
        pairs = np.frombuffer(body, "<u2", 2 * number, at + 2).astype(np.int64).reshape(number, 2)
        spans = [np.arange(first, first + more + 1) for first, more in pairs.tolist()]
        return np.concatenate(spans), at + 2 + 4 * number
    if count <= _SPARSE:
        return np.frombuffer(body, "<u2", count, at).astype(np.int64), at + 2 * count
    bits = np.unpackbits(np.frombuffer(body, np.uint8, 8192, at), bitorder="little")
    return np.flatnonzero(bits).astype(np.int64), at + 8192
