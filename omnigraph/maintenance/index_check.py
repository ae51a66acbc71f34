"""Check that each index returns the same rows as a scan.

The check looks up a sample of values or tokens, both through the index and by scanning the column, and compares the
results. Indexes are derived data, so a fault found here never means that data was lost.
"""

import warnings
from collections.abc import Iterable, Iterator
from itertools import islice

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.errors import IndexUnreadable, StorageError
from omnigraph.storage.column_index import index_coverage, kinds_by_index_key
from omnigraph.storage.find_rows import read_indexed, read_unindexed
from omnigraph.storage.fragments import list_fragment_ids
from omnigraph.storage.scan import ROW_ADDRESS, ROW_ID
from omnigraph.storage.store import Store
from omnigraph.storage.substrait import filter_constants
from omnigraph.storage.table import Table
from omnigraph.storage.text import fulltext
from omnigraph.storage.vector_index import (
    METRICS_BY_KIND,
    Floats,
    batch_row_ids,
    is_searchable,
    is_vector_kind,
    nearest_candidates,
    vector_batches,
)
from omnigraph.values.table_key import TableKey

from .finding import IntegrityFinding
from .index_findings import index_finding, name_index

SAMPLE_SIZE = 512  # number of values looked up per column
_PROBE_COUNT = 8  # number of substrings or vectors looked up, with one request each
# The length of a substring in characters; shorter substrings are not indexed, and longer ones do not improve the check.
_MIN_SUBSTRING, _MAX_SUBSTRING = (3, 32)
_NEIGHBOUR_COUNT, _ZERO_DISTANCE = 16, 1e-3  # number of neighbors requested, and the distance that counts as zero


def check_indexes(store: Store, table: Table, type_key: TableKey, branch: str) -> Iterator[IntegrityFinding]:
    """Check every index on a table, using the lookups that its kind supports."""
    for index_key, index_kind in sorted(kinds_by_index_key(table).items()):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", IndexUnreadable)  # reported as a finding
            fault = _index_fault(store, table, fulltext.index_column(index_key), index_kind)
        if fault is not None:
            yield index_finding(name_index(type_key, index_key, index_kind), fault, branch, store.root.uri)


def _index_fault(store: Store, table: Table, column: str, index_kind: str) -> str | None:
    """Describe the fault in an index, or return None if the index agrees with the rows."""
    if is_vector_kind(index_kind):
        return _vector_index_fault(table, column, METRICS_BY_KIND[index_kind])
    if index_kind == fulltext.TEXT_INDEX_KIND:
        return _text_index_fault(store, table, column)
    return _ngram_index_fault(table, column) if index_kind == "NGRAM" else _scalar_index_fault(table, column)


def _scalar_index_fault(table: Table, column: str) -> str | None:
    scanned_rows = read_unindexed(table, [column], with_row_ids=True)
    scanned_rows = scanned_rows.filter(pc.is_valid(scanned_rows[column]))
    sampled_values = _sample_evenly(scanned_rows[column].unique())
    lookup_filter = pc.field(column).isin(filter_constants(sampled_values))
    try:
        indexed_rows = read_indexed(table, [column], lookup_filter)
    except StorageError as error:
        return f"cannot be read: {error.message}"
    expected_rows = scanned_rows.filter(pc.is_in(scanned_rows[column], value_set=sampled_values))
    missing_count, extra_count = (len(difference) for difference in _row_differences(expected_rows, indexed_rows))
    if not missing_count and not extra_count:
        return None
    return f"does not match the rows: {missing_count} missing, {extra_count} extra"


def _ngram_index_fault(table: Table, column: str) -> str | None:
    """Check that an n-gram index finds every string that contains a given substring."""
    scanned_rows = read_unindexed(table, [column], with_row_ids=True)
    distinct_texts = scanned_rows[column].drop_null().unique()
    long_texts = distinct_texts.filter(pc.greater_equal(pc.utf8_length(distinct_texts), _MIN_SUBSTRING))
    missing_count = 0
    for substring in _sample_evenly(pc.utf8_slice_codeunits(long_texts, 0, _MAX_SUBSTRING), _PROBE_COUNT).to_pylist():
        try:
            indexed_rows = read_indexed(table, [column], pc.match_substring(pc.field(column), substring))
        except StorageError as error:
            return f"cannot be read: {error.message}"
        expected_rows = scanned_rows.filter(pc.match_substring(scanned_rows[column], substring))
        missing_count += len(_row_differences(expected_rows, indexed_rows)[0])
    return f"does not match the rows: {missing_count} missing" if missing_count else None


def _vector_index_fault(table: Table, column: str, metric: str) -> str | None:
    """Check that a search for a stored vector finds that vector.

    With the dot product, other vectors may be nearer, so only readability is checked.
    """
    covered_fragments = index_coverage(table)[column]
    batches = vector_batches(table, column, sorted(covered_fragments & set(list_fragment_ids(table))))
    missing_count = 0
    for row_id, vector in islice(_query_vectors(batches, column, metric), _PROBE_COUNT):
        neighbors = nearest_candidates(table, column, metric, vector, _NEIGHBOUR_COUNT)
        if neighbors is None:
            return "cannot be read"
        neighbor_ids, distances = neighbors
        is_found = (
            metric == "dot"
            or row_id in neighbor_ids
            or (len(neighbor_ids) == _NEIGHBOUR_COUNT and distances[-1] <= _ZERO_DISTANCE)
        )
        missing_count += not is_found
    return f"does not match the rows: {missing_count} missing" if missing_count else None


def _query_vectors(batches: Iterable[pa.RecordBatch], column: str, metric: str) -> Iterator[tuple[int, Floats]]:
    """Yield the row id and the value of each vector that can be used to search the index."""
    for batch in batches:
        for row_id, vector in zip(batch_row_ids(batch), batch.column(column).to_pylist(), strict=True):
            query_vector = np.asarray(vector, np.float64) if vector is not None else None
            if query_vector is not None and np.any(query_vector) and is_searchable(metric, query_vector):
                yield int(row_id), query_vector


def _text_index_fault(store: Store, table: Table, column: str) -> str | None:
    """Check a full-text index. Extra candidates are allowed, but missing rows or tokens are not."""
    token_lists = [fulltext.read_tokens(store, table, segment) for segment in fulltext.text_segments(table, column)]
    listed_tokens = [token_list["word"].combine_chunks() for token_list in token_lists if token_list is not None]
    if len(listed_tokens) < len(token_lists):
        return "cannot be read"
    scanned_rows = read_unindexed(table, [column], with_row_ids=True)
    covered_fragments = pa.array(sorted(index_coverage(table)[fulltext.text_index_key(column)]), pa.uint64())
    scanned_rows = scanned_rows.filter(
        pc.is_in(pc.shift_right(scanned_rows[ROW_ADDRESS], 32), value_set=covered_fragments)
    )
    tokens_by_row = fulltext.tokenize(scanned_rows[column].combine_chunks())
    tokens = tokens_by_row.flatten()
    known_tokens = pa.concat_arrays([*listed_tokens, pa.array([""])])
    missing_tokens = len(tokens.filter(pc.invert(pc.is_in(tokens, value_set=known_tokens))).unique())
    if missing_tokens:
        return f"is missing {missing_tokens} of the tokens in the rows"
    sampled_tokens = _sample_evenly(
        tokens.filter(pc.match_substring_regex(tokens, fulltext.INDEXED_CHARACTERS)).unique()
    )
    candidate_ids = fulltext.candidate_rows(table, column, sampled_tokens.to_pylist())
    if candidate_ids is None:
        return "cannot be read"
    matching_rows = pc.list_parent_indices(tokens_by_row).filter(pc.is_in(tokens, value_set=sampled_tokens)).unique()
    expected_ids = scanned_rows[ROW_ID].combine_chunks().take(matching_rows).to_numpy().astype(np.int64)
    missing_count = len(np.setdiff1d(expected_ids, candidate_ids))
    return f"does not match the rows: {missing_count} missing" if missing_count else None


def _sample_evenly(values: pa.Array, limit: int = SAMPLE_SIZE) -> pa.Array:
    """Return all values, or an evenly spaced sample if there are more than `limit`."""
    if len(values) <= limit:
        return values
    positions = np.linspace(0, len(values) - 1, limit).astype(np.int64)
    return values.take(pa.array(positions))


def _row_differences(expected_rows: pa.Table, found_rows: pa.Table) -> tuple[pa.Array, pa.Array]:
    expected_ids, found_ids = (matched_rows[ROW_ID].combine_chunks() for matched_rows in (expected_rows, found_rows))
    return (
        expected_ids.filter(pc.invert(pc.is_in(expected_ids, value_set=found_ids))),
        found_ids.filter(pc.invert(pc.is_in(found_ids, value_set=expected_ids))),
    )
