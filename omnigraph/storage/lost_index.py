"""Indexes that cannot be read: rows are scanned instead, and somebody is told.

An index is derived, so losing one loses nothing but time. Owns the second try of a scan, and which
indexes of a table are not there. What cannot be read without an index either is a typed failure.
"""

import warnings
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeVar

import pyarrow as pa

from omnigraph.errors import IndexUnreadable, StorageError

from .failures import storage_failure, unpanicked
from .layout import WORDS
from .store import Store
from .table import Table

Result = TypeVar("Result")
# Lance tells of a missing file in the midst of a scan as invalid input.
FAILURES = (OSError, pa.ArrowInvalid)
_CHECK = "`omnigraph check` names what is lost or damaged"
_KEPT = 1024
_told: dict[tuple[str, frozenset[str]], None] = {}


def ask(table: Table, where: object, scan: Callable[[bool], Result]) -> Result:
    """What `scan(True)` gives, which may use indexes; `scan(False)` when one cannot be read.

    `where` is the filter of the scan: without one no index is asked.
    """
    try:
        with unpanicked():
            return scan(True)
    except FAILURES as error:
        if where is None or not segments_of(table):
            raise _failure(error) from error
    try:
        with unpanicked():
            found = scan(False)
    except FAILURES as error:
        raise _failure(error) from error
    tell(table)
    return found


def ask_alone(table: Table, scanner: Any) -> pa.Table | None:
    """What an index answers by itself; None, and a warning, when it cannot be read.

    Who asks has other ways: nothing is scanned instead.
    """
    try:
        with unpanicked():
            found: pa.Table = scanner.to_table()
    except FAILURES:
        tell(table)
        return None
    return found


def ask_batches(
    table: Table, where: object, scan: Callable[[bool], Iterator[pa.RecordBatch]]
) -> Iterator[pa.RecordBatch]:
    """The same, batch by batch: indexes are asked before the first one comes."""

    def begin(indexed: bool) -> tuple[pa.RecordBatch | None, Iterator[pa.RecordBatch]]:
        batches = iter(scan(indexed))
        return next(batches, None), batches

    first, rest = ask(table, where, begin)
    if first is None:
        return
    yield first
    try:
        with unpanicked():
            yield from rest
    except FAILURES as error:
        raise _failure(error) from error


def segments_of(table: Table) -> frozenset[str]:
    """The segments of all indexes of a table, by their names."""
    every = table.dataset.describe_indices()
    return frozenset(str(one.uuid) for index in every for one in index.segments)


def lost_segments(store: Store, table: Table) -> frozenset[str]:
    """The segments of which a file is not there, or is shorter than it was: one listing."""
    if not segments_of(table):
        return frozenset()
    found = store.objects.list(f"{table.location}/_indices")
    return short_segments(table, {one.name: one.size for one in found})


def short_segments(table: Table, sizes: Mapping[str, int]) -> frozenset[str]:
    """The same by a listing that was made before; `sizes` are those of files by their names.

    A version says how large each segment is. The words of texts are ours, and not counted there.
    """
    top = f"{table.location}/_indices/"
    held: dict[str, dict[str, int]] = {}
    for name, size in sizes.items():
        if name.startswith(top):
            uuid, _, file = name.removeprefix(top).partition("/")
            held.setdefault(uuid, {})[file] = size
    return frozenset(
        str(one.uuid)
        for index in table.dataset.describe_indices()
        for one in index.segments
        if not _is_complete(index.index_type, one.size_bytes, held.get(str(one.uuid), {}))
    )


def _is_complete(kind: str, size: int | None, files: Mapping[str, int]) -> bool:
    if kind == "Inverted" and not files.get(WORDS):
        return False
    own = [one for name, one in files.items() if name != WORDS]
    return bool(own) and all(own) and sum(own) >= (size or 0)


def _failure(error: Exception) -> StorageError:
    if isinstance(error, OSError):
        return storage_failure(error, effect="none")
    reason = storage_failure(error, effect="none").reason
    return StorageError(kind="permanent", reason=reason, effect="none", hint=_CHECK)


def tell(table: Table) -> None:
    """Warn once, until the indexes of the table are others."""
    seen = (str(table.dataset.uri), segments_of(table))
    if seen in _told:
        return
    while len(_told) >= _KEPT:
        del _told[next(iter(_told))]
    _told[seen] = None
    text = (
        f"an index of {table.location} cannot be read: its rows are scanned, which is slower;"
        " `omnigraph check` names it, `omnigraph ensure-indices` builds it anew"
    )
    warnings.warn(text, IndexUnreadable, stacklevel=3)
