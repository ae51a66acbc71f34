"""Vector indexes: determine whether an index can be built, and find the rows near a query vector.

An index uses single precision, which does not suffice for vectors whose Euclidean lengths are outside a certain range.
It is therefore built only over fragments without such vectors, although zero vectors are allowed. A search returns
candidates with approximate distances, and `distance_error_bound` returns an upper bound on the error. Callers compute
the exact distances.
"""

import math
from collections.abc import Collection, Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from omnigraph.records.frozen import record

from .index_fallback import query_index
from .scan import RowIdArray, row_id_array
from .table import Table

Floats = npt.NDArray[np.float64]
KINDS_BY_METRIC = {"cosine": "IVF_COSINE", "l2": "IVF_L2", "dot": "IVF_DOT"}
METRICS_BY_KIND = {kind: metric for metric, kind in KINDS_BY_METRIC.items()}
_ROUNDING_UNIT = 2.0**-24  # half the difference between 1 and the next larger single-precision number
# The range of vector lengths that can be squared and used as divisors in single precision. The limit is lower for dot
# products, because their error grows with the length.
_MIN_LENGTH, _MAX_LENGTH = 1e-10, 1e10
_MAX_DOT_LENGTH = 2.0
_PARTITION_BYTES = 32 << 20  # number of bytes that a search reads at a time
_MAX_PARTITIONS = 4096
_BATCH_ROWS = 8192
NOT_INDEXABLE = (
    "the magnitude of some vectors is too large or too small to index; searches scan the fragments that contain them"
)


@record
class IndexableVectors:
    """The fragments that an index can cover, and the number of vectors in them."""

    vector_count: int
    fragment_ids: tuple[int, ...]


def is_vector_kind(kind: str) -> bool:
    """Return whether an index kind is a kind of vector index."""
    return kind in METRICS_BY_KIND


def is_first_indexable(table: Table, column: str, index_kind: str, fragment_ids: Sequence[int]) -> bool | None:
    """Return whether the first fragment with vectors can be indexed, or None if no fragment has vectors."""
    for fragment_id in fragment_ids:
        indexable = find_indexable(table, column, index_kind, [fragment_id])
        if indexable.vector_count or not indexable.fragment_ids:
            return bool(indexable.fragment_ids)
    return None


def find_indexable(table: Table, column: str, index_kind: str, fragment_ids: Sequence[int]) -> IndexableVectors:
    """Read the vectors in the given fragments, and return the fragments that an index of this kind can cover."""
    vector_count, indexable_ids = 0, list[int]()
    for fragment_id in fragment_ids:
        batch_lengths = [_vector_lengths(batch, column) for batch in vector_batches(table, column, [fragment_id])]
        vector_lengths = np.concatenate(batch_lengths) if batch_lengths else np.empty(0)
        if _are_indexable(vector_lengths, METRICS_BY_KIND[index_kind]):
            indexable_ids.append(fragment_id)
            vector_count += len(vector_lengths)
    return IndexableVectors(vector_count, tuple(indexable_ids))


def partition_count(vector_count: int, dimensions: int) -> int:
    """Return the number of partitions for an index. A search visits all partitions, one after another."""
    needed_partitions = math.ceil(vector_count * dimensions * 4 / _PARTITION_BYTES)
    return max(1, min(needed_partitions, vector_count, _MAX_PARTITIONS))


def vector_batches(table: Table, column: str, fragment_ids: Collection[int] | None = None) -> Iterator[pa.RecordBatch]:
    """Yield row ids and vectors in batches, for all rows or for the rows in some fragments."""
    chosen_fragments = (
        None if fragment_ids is None else [table.dataset.get_fragment(fragment_id) for fragment_id in fragment_ids]
    )
    if chosen_fragments == []:
        return
    scanner = table.dataset.scanner(
        columns=[column], fragments=chosen_fragments, with_row_id=True, batch_size=_BATCH_ROWS
    )
    yield from scanner.to_batches()


def batch_row_ids(batch: pa.RecordBatch) -> RowIdArray:
    """Return the row ids in a batch."""
    return row_id_array(pa.Table.from_batches([batch]))


def nearest_candidates(
    table: Table, column: str, metric: str, query_vector: Floats, max_candidates: int
) -> tuple[RowIdArray, Floats] | None:
    """Return the row ids nearest to a query vector according to the index, and their distances, nearest first.

    The result is None if the index cannot be read. The distances are approximate and use the same scale as distances in
    the query engine.
    """
    scanner = table.dataset.scanner(
        columns=["_distance"],
        nearest={
            "column": column,
            "q": query_vector.astype(np.float32),
            "k": max_candidates,
            "metric": metric,
            "minimum_nprobes": _MAX_PARTITIONS,
            "maximum_nprobes": _MAX_PARTITIONS,
        },
        with_row_id=True,
        fast_search=True,
    )
    index_rows = query_index(table, scanner)
    if index_rows is None:
        return None
    approximate_distances: Floats = index_rows["_distance"].to_numpy().astype(np.float64)
    sort_order = np.argsort(approximate_distances, kind="stable")
    return row_id_array(index_rows)[sort_order], _to_engine_distances(metric, approximate_distances[sort_order])


def distance_error_bound(metric: str, dimensions: int, query_vector: Floats, distance: float) -> float:
    """Return an upper bound on the error of an approximate distance."""
    relative_error = 8 * (dimensions + 16) * _ROUNDING_UNIT
    if metric == "cosine":
        return relative_error
    vector_length = float(np.sqrt(np.einsum("i,i->", query_vector, query_vector)))
    if metric == "dot":
        return relative_error * (1 + _MAX_DOT_LENGTH * vector_length)
    rounding_error = 4 * _ROUNDING_UNIT * vector_length  # the query vector itself is rounded to single precision
    return relative_error * abs(distance) + rounding_error + 1e-15


def is_searchable(metric: str, query_vector: Floats) -> bool:
    """Return whether single precision is sufficient for searching with a query vector."""
    vector_length = float(np.sqrt(np.einsum("i,i->", query_vector, query_vector)))
    return _MIN_LENGTH <= vector_length <= _MAX_LENGTH or (metric == "l2" and vector_length <= _MAX_LENGTH)


def reliable_distance_limit(metric: str) -> float:
    """Return the distance at or beyond which a search may miss rows, because a cosine index omits zero vectors."""
    return 1.0 - 1e-3 if metric == "cosine" else math.inf


def _to_engine_distances(metric: str, lance_distances: Floats) -> Floats:
    return np.sqrt(np.maximum(lance_distances, 0.0)) if metric == "l2" else lance_distances


def _vector_lengths(batch: pa.RecordBatch, column: str) -> Floats:
    vectors: Any = batch.column(column).drop_null()
    dimensions = vectors.type.list_size
    components = vectors.flatten().to_numpy(zero_copy_only=False).reshape(-1, dimensions).astype(np.float64)
    vector_lengths: Floats = np.sqrt(np.einsum("ij,ij->i", components, components))
    return vector_lengths


def _are_indexable(vector_lengths: Floats, metric: str) -> bool:
    """Return whether an index can be built over vectors of these lengths.

    NaN fails every comparison, so a vector with NaN cannot be indexed.
    """
    max_length = _MAX_DOT_LENGTH if metric == "dot" else _MAX_LENGTH
    min_length = _MIN_LENGTH if metric == "cosine" else 0.0
    return bool((((vector_lengths >= min_length) & (vector_lengths <= max_length)) | (vector_lengths == 0.0)).all())
