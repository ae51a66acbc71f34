"""Index check: an index must return the same rows as a scan.

Looks up a sample of values or tokens through the index and by a scan of the column, and compares
the rows. Indexes are derived data: a fault here never means that data was lost.
"""

import warnings
from collections.abc import Iterable, Iterator
from itertools import islice

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.errors import IndexUnreadable, StorageError
from omnigraph.storage import texts
from omnigraph.storage.find import read_indexed, read_unindexed
from omnigraph.storage.fragments import fragment_ids
from omnigraph.storage.index import covered, kinds_of
from omnigraph.storage.scan import ROW_ADDRESS, ROW_ID
from omnigraph.storage.store import Store
from omnigraph.storage.substrait import constants
from omnigraph.storage.table import Table
from omnigraph.storage.vectors import (
    METRICS,
    Floats,
    candidates,
    is_fit,
    is_vector_kind,
    rows_of,
    vector_batches,
)

from .finding import Finding

SAMPLE = 512  # values of a column that are looked up
_ASKED = 8  # substrings and vectors that are looked up, one request each
_PART, _LONGEST = 3, 32  # characters: shorter substrings are not indexed, longer ones add nothing
_NEAR, _SAME = 16, 1e-3  # neighbours requested; distance that counts as zero
REBUILD = "results may be wrong until the index is rebuilt: run `omnigraph cleanup --erase`"


def check_indexes(store: Store, table: Table, key: str) -> Iterator[Finding]:
    """Check every index of a table with lookups that its kind supports."""
    for slot, kind in sorted(kinds_of(table).items()):
        column, worded = texts.column_of(slot), kind == texts.KIND
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", IndexUnreadable)  # reported as a finding
            reason = _reason(store, table, column, kind)
        if reason is not None:
            text = f"the {'full-text ' if worded else ''}index of {column} {reason}"
            yield Finding("index", text, type_key=key, hint=REBUILD)


def _reason(store: Store, table: Table, column: str, kind: str) -> str | None:
    """Return what is wrong with an index; None when it agrees with the rows."""
    if is_vector_kind(kind):
        return _wrong_neighbours(table, column, METRICS[kind])
    if kind == texts.KIND:
        return _wrong_words(store, table, column)
    return _wrong_parts(table, column) if kind == "NGRAM" else _wrong(table, column)


def _wrong(table: Table, column: str) -> str | None:
    rows = read_unindexed(table, [column], places=True)
    rows = rows.filter(pc.is_valid(rows[column]))
    values = _sample(rows[column].unique())
    asked = pc.field(column).isin(constants(values))
    try:
        found = read_indexed(table, [column], asked)
    except StorageError as error:
        return f"cannot be read: {error.message}"
    expected = rows.filter(pc.is_in(rows[column], value_set=values))
    lost, strange = (len(one) for one in _differences(expected, found))
    if not lost and not strange:
        return None
    return f"does not agree with the rows: {lost} missing, {strange} extra"


def _wrong_parts(table: Table, column: str) -> str | None:
    """Check that an n-gram index finds every text that contains a substring."""
    rows = read_unindexed(table, [column], places=True)
    texts_there = rows[column].drop_null().unique()
    long = texts_there.filter(pc.greater_equal(pc.utf8_length(texts_there), _PART))
    missed = 0
    for part in _sample(pc.utf8_slice_codeunits(long, 0, _LONGEST), _ASKED).to_pylist():
        try:
            found = read_indexed(table, [column], pc.match_substring(pc.field(column), part))
        except StorageError as error:
            return f"cannot be read: {error.message}"
        expected = rows.filter(pc.match_substring(rows[column], part))
        missed += len(_differences(expected, found)[0])
    return f"does not agree with the rows: {missed} missing" if missed else None


def _wrong_neighbours(table: Table, column: str, metric: str) -> str | None:
    """Check that a search near a stored vector finds it; by dot product others may be nearer."""
    held = covered(table)[column]
    batches = vector_batches(table, column, sorted(held & set(fragment_ids(table))))
    missed = 0
    for row, vector in islice(_vectors(batches, column, metric), _ASKED):
        found = candidates(table, column, metric, vector, _NEAR)
        if found is None:
            return "cannot be read"
        ids, about = found
        near = metric == "dot" or row in ids or (len(ids) == _NEAR and about[-1] <= _SAME)
        missed += not near
    return f"does not agree with the rows: {missed} missing" if missed else None


def _vectors(
    batches: Iterable[pa.RecordBatch], column: str, metric: str
) -> Iterator[tuple[int, Floats]]:
    """Return row ids and vectors that are valid queries of the index."""
    for batch in batches:
        for row, vector in zip(rows_of(batch), batch.column(column).to_pylist(), strict=True):
            point = np.asarray(vector, np.float64) if vector is not None else None
            if point is not None and np.any(point) and is_fit(metric, point):
                yield int(row), point


def _wrong_words(store: Store, table: Table, column: str) -> str | None:
    """Check a full-text index: extra candidates are allowed, missing rows or tokens are not."""
    lists = [
        texts.read_words(store, table, segment) for segment in texts.text_segments(table, column)
    ]
    known = [one["word"].combine_chunks() for one in lists if one is not None]
    if len(known) < len(lists):
        return "cannot be read"
    rows = read_unindexed(table, [column], places=True)
    held = pa.array(sorted(covered(table)[texts.text_slot(column)]), pa.uint64())
    rows = rows.filter(pc.is_in(pc.shift_right(rows[ROW_ADDRESS], 32), value_set=held))
    pieces = texts.cut(rows[column].combine_chunks())
    words = pieces.flatten()
    listed = pa.concat_arrays([*known, pa.array([""])])
    gone = len(words.filter(pc.invert(pc.is_in(words, value_set=listed))).unique())
    if gone:
        return f"does not list {gone} of the tokens in the rows"
    values = _sample(words.filter(pc.match_substring_regex(words, texts.SEEN)).unique())
    found = texts.candidates(table, column, values.to_pylist())
    if found is None:
        return "cannot be read"
    owners = pc.list_parent_indices(pieces).filter(pc.is_in(words, value_set=values)).unique()
    expected = rows[ROW_ID].combine_chunks().take(owners).to_numpy().astype(np.int64)
    lost = len(np.setdiff1d(expected, found))
    return f"does not agree with the rows: {lost} missing" if lost else None


def _sample(values: pa.Array, most: int = SAMPLE) -> pa.Array:
    """Return all values, or a sample at even distances."""
    if len(values) <= most:
        return values
    places = np.linspace(0, len(values) - 1, most).astype(np.int64)
    return values.take(pa.array(places))


def _differences(expected: pa.Table, found: pa.Table) -> tuple[pa.Array, pa.Array]:
    one, other = (rows[ROW_ID].combine_chunks() for rows in (expected, found))
    return (
        one.filter(pc.invert(pc.is_in(one, value_set=other))),
        other.filter(pc.invert(pc.is_in(other, value_set=one))),
    )
