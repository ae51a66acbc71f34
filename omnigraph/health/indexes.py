"""Whether an index answers as the rows do.

Looks a sample of values, or of words, up through the index and by a scan of the column, and
compares which rows come back. Indexes are derived: what is wrong here is no loss of data.
"""

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.errors import StorageError
from omnigraph.storage import texts
from omnigraph.storage.find import read_indexed, read_unindexed
from omnigraph.storage.index import covered, kinds_of
from omnigraph.storage.scan import ROW_ADDRESS, ROW_ID
from omnigraph.storage.substrait import constants
from omnigraph.storage.table import Table
from omnigraph.storage.vectors import is_vector_kind

from .finding import Finding

SAMPLE = 512  # values of a column that are looked up
REBUILD = "answers may be wrong until it is built anew: `omnigraph cleanup --erase` builds them"


def check_indexes(table: Table, key: str) -> Iterator[Finding]:
    """Every index of a table that can be asked for equal values or words."""
    for slot, kind in sorted(kinds_of(table).items()):
        if is_vector_kind(kind):
            continue
        column, worded = texts.column_of(slot), kind == texts.KIND
        reason = _wrong_words(table, column) if worded else _wrong(table, column)
        if reason is not None:
            text = f"the {'full-text ' if worded else ''}index of {column} {reason}"
            yield Finding("index", text, type_key=key, hint=REBUILD)


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
    return f"does not answer as the rows do: {lost} missed, {strange} too many"


def _wrong_words(table: Table, column: str) -> str | None:
    """An index of words may propose too many rows, never too few."""
    rows = read_unindexed(table, [column], places=True)
    held = pa.array(sorted(covered(table)[texts.text_slot(column)]), pa.uint64())
    rows = rows.filter(pc.is_in(pc.shift_right(rows[ROW_ADDRESS], 32), value_set=held))
    pieces = texts.cut(rows[column].combine_chunks())
    words = pieces.flatten()
    values = _sample(words.filter(pc.match_substring_regex(words, texts.SEEN)).unique())
    found = texts.candidates(table, column, values.to_pylist())
    if found is None:
        return "cannot be read"
    owners = pc.list_parent_indices(pieces).filter(pc.is_in(words, value_set=values)).unique()
    expected = rows[ROW_ID].combine_chunks().take(owners).to_numpy().astype(np.int64)
    lost = len(np.setdiff1d(expected, found))
    return f"does not answer as the rows do: {lost} missed" if lost else None


def _sample(values: pa.Array) -> pa.Array:
    """All values, or some at even distances."""
    if len(values) <= SAMPLE:
        return values
    places = np.linspace(0, len(values) - 1, SAMPLE).astype(np.int64)
    return values.take(pa.array(places))


def _differences(expected: pa.Table, found: pa.Table) -> tuple[pa.Array, pa.Array]:
    one, other = (rows[ROW_ID].combine_chunks() for rows in (expected, found))
    return (
        one.filter(pc.invert(pc.is_in(one, value_set=other))),
        other.filter(pc.invert(pc.is_in(other, value_set=one))),
    )
