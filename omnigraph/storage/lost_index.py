"""Fallback for unreadable indexes: rows are scanned instead, with a warning.

An index is derived data, so losing one costs only time. Owns the second attempt of a scan, and the
detection of missing index files. Failures without an index are raised as typed errors.
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
# Lance reports a file missing in the middle of a scan as invalid input.
FAILURES = (OSError, pa.ArrowInvalid)
_CHECK = "run `omnigraph check` to list missing and damaged files"
_KEPT = 1024
_told: dict[tuple[str, frozenset[str]], None] = {}


def ask(table: Table, where: object, scan: Callable[[bool], Result]) -> Result:
    """Return `scan(True)`, which may use indexes, or `scan(False)` if an index cannot be read.

    `filter_expression` is the filter of the scan: without one no index is used.
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
    """Return what an index alone answers; None, with a warning, if it cannot be read.

    There is no fallback scan: callers have other ways to answer.
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
    """Yield batches like `scan_with_fallback`; indexes are read before the first batch."""

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
    """Return the UUIDs of the segments of all indexes of a table."""
    every = table.dataset.describe_indices()
    return frozenset(str(one.uuid) for index in every for one in index.segments)


def lost_segments(store: Store, table: Table) -> frozenset[str]:
    """Return the segments with a missing or truncated file, by one listing."""
    if not segments_of(table):
        return frozenset()
    found = store.objects.list(f"{table.location}/_indices")
    return short_segments(table, {one.name: one.size for one in found})


def short_segments(table: Table, sizes: Mapping[str, int]) -> frozenset[str]:
    """Return the same from an earlier listing; `file_sizes` maps file names to sizes.

    A version records the size of each segment. The token file of a full-text segment is written by
    this package and not included in that size.
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
    """Warn once per table, until its set of segments changes."""
    seen = (str(table.dataset.uri), segments_of(table))
    if seen in _told:
        return
    while len(_told) >= _KEPT:
        del _told[next(iter(_told))]
    _told[seen] = None
    text = (
        f"an index of {table.location} cannot be read; its rows are scanned instead, which is"
        " slower. Run `omnigraph check` to identify the index and `omnigraph ensure-indices` to"
        " rebuild it"
    )
    warnings.warn(text, IndexUnreadable, stacklevel=3)
