"""Handle unreadable indexes: scan the rows instead, and issue a warning.

An index is derived data, so losing an index only makes queries slower. This module repeats failed scans without indexes
and detects missing index files. Failures that do not involve an index are raised as typed errors.
"""

import warnings
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeVar

import pyarrow as pa

from omnigraph.errors import IndexUnreadable, StorageError
from omnigraph.errors.caller_warning import report_warning

from .failures import panics_as_errors, to_storage_error
from .layout import TOKENS_FILE
from .store import Store
from .table import Table

ScanResult = TypeVar("ScanResult")
# Lance reports a file that disappears during a scan as invalid input.
SCAN_FAILURES = (OSError, pa.ArrowInvalid)
_CHECK_HINT = "run `omnigraph check` to list missing and damaged files"
_MAX_WARNED = 1024
_warned_indexes: dict[tuple[str, frozenset[str]], None] = {}


def scan_with_fallback(table: Table, filter_expression: object, scan: Callable[[bool], ScanResult]) -> ScanResult:
    """Return `scan(True)`, which may use indexes, or `scan(False)` if an index cannot be read.

    `filter_expression` is the filter of the scan, or None. A scan without a filter does not use an index.
    """
    try:
        with panics_as_errors():
            return scan(True)
    except SCAN_FAILURES as error:
        if filter_expression is None or not segment_uuids(table):
            raise _scan_failure(error) from error
    try:
        with panics_as_errors():
            scan_result = scan(False)
    except SCAN_FAILURES as error:
        raise _scan_failure(error) from error
    warn_unreadable_index(table)
    return scan_result


def query_index(table: Table, scanner: Any) -> pa.Table | None:
    """Return the result of an index-only query; if the index cannot be read, warn and return None.

    There is no fallback scan, because callers can get the result in other ways.
    """
    try:
        with panics_as_errors():
            index_rows: pa.Table = scanner.to_table()
    except SCAN_FAILURES:
        warn_unreadable_index(table)
        return None
    return index_rows


def scan_batches_with_fallback(
    table: Table, filter_expression: object, scan: Callable[[bool], Iterator[pa.RecordBatch]]
) -> Iterator[pa.RecordBatch]:
    """Yield batches with the same fallback as `scan_with_fallback`.

    Lance reads the indexes before it returns the first batch, so the fallback never repeats a batch.
    """

    def start_scan(use_index: bool) -> tuple[pa.RecordBatch | None, Iterator[pa.RecordBatch]]:
        batches = iter(scan(use_index))
        return next(batches, None), batches

    first_batch, remaining_batches = scan_with_fallback(table, filter_expression, start_scan)
    if first_batch is None:
        return
    yield first_batch
    try:
        with panics_as_errors():
            yield from remaining_batches
    except SCAN_FAILURES as error:
        raise _scan_failure(error) from error


def segment_uuids(table: Table) -> frozenset[str]:
    """Return the segment UUIDs for all indexes on a table."""
    indexes = table.dataset.describe_indices()
    return frozenset(str(segment.uuid) for index in indexes for segment in index.segments)


def find_lost_segments(store: Store, table: Table) -> frozenset[str]:
    """Return the UUIDs of index segments with missing or truncated files, using one listing."""
    if not segment_uuids(table):
        return frozenset()
    listed_objects = store.objects.list(f"{table.location}/_indices")
    return incomplete_segments(table, {listed_object.name: listed_object.size for listed_object in listed_objects})


def incomplete_segments(table: Table, file_sizes: Mapping[str, int]) -> frozenset[str]:
    """Return the same UUIDs as `find_lost_segments`, using the file sizes from an earlier listing, by file name.

    A version records the size of each segment. The size of a full-text segment does not include its token file, because
    this package, not Lance, writes the token file.
    """
    index_directory = f"{table.location}/_indices/"
    sizes_by_segment: dict[str, dict[str, int]] = {}
    for file_name, file_size in file_sizes.items():
        if file_name.startswith(index_directory):
            uuid, _, relative_name = file_name.removeprefix(index_directory).partition("/")
            sizes_by_segment.setdefault(uuid, {})[relative_name] = file_size
    return frozenset(
        str(segment.uuid)
        for index in table.dataset.describe_indices()
        for segment in index.segments
        if not _is_segment_complete(index.index_type, segment.size_bytes, sizes_by_segment.get(str(segment.uuid), {}))
    )


def _is_segment_complete(lance_index_type: str, expected_size: int | None, file_sizes: Mapping[str, int]) -> bool:
    if lance_index_type == "Inverted" and not file_sizes.get(TOKENS_FILE):
        return False
    lance_sizes = [file_size for file_name, file_size in file_sizes.items() if file_name != TOKENS_FILE]
    return bool(lance_sizes) and all(lance_sizes) and sum(lance_sizes) >= (expected_size or 0)


def _scan_failure(error: Exception) -> StorageError:
    if isinstance(error, OSError):
        return to_storage_error(error, effect="none")
    reason = to_storage_error(error, effect="none").reason
    return StorageError(kind="permanent", reason=reason, effect="none", hint=_CHECK_HINT)


def warn_unreadable_index(table: Table) -> None:
    """Warn, once per set of segments, that an index on a table cannot be read."""
    warning_key = (str(table.dataset.uri), segment_uuids(table))
    if warning_key in _warned_indexes:
        return
    while len(_warned_indexes) >= _MAX_WARNED:
        del _warned_indexes[next(iter(_warned_indexes))]
    _warned_indexes[warning_key] = None
    message = (
        f"an index on {table.location} cannot be read; the table's rows are scanned instead, which"
        " is slower. Run `omnigraph check` to identify the index, and `omnigraph ensure-indices --rebuild`"
        " to rebuild it"
    )
    if not report_warning(IndexUnreadable.__name__, message, {}):
        warnings.warn(message, IndexUnreadable, stacklevel=3)
