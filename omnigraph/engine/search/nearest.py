"""Select all rows that may be among the nearest to a point, while keeping memory use bounded.

An index proposes candidates. Rows that the index does not cover are read in batches. Distances are computed from the
stored vectors in double precision, and a candidate is dropped only if it cannot be among the nearest. Index coverage
must never affect a result.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from omnigraph.engine.execution_context import ExecutionContext
from omnigraph.engine.operators.rows import IntArray, Mask, Rows
from omnigraph.lang.query import plan
from omnigraph.storage import vector_index
from omnigraph.storage.column_index import index_coverage, kinds_by_index_key
from omnigraph.storage.fragments import list_fragment_ids
from omnigraph.storage.scan import distinct_row_ids, take_rows
from omnigraph.values.table_key import TableKey

from .scoring import Scores, distance_metric, distances, query_point

COMPARE_ALL_MAX = 1 << 19  # up to this total number of vector components, all vectors are compared directly
IN_MEMORY_MAX = 1 << 24  # up to this total number of vector components, vectors without an index are kept in memory
# Maximum number of candidates taken from an index; if more are needed, the vectors are read instead.
_MAX_CANDIDATES = 1 << 16


def narrow_to_nearest(context: ExecutionContext, rows: Rows, ranking: plan.Nearest, row_limit: int) -> Rows:
    """Return all rows that may be among the `row_limit` nearest; the result may include other rows."""
    binding = rows[ranking.field.variable]
    point = query_point(context, ranking)
    if point is None or len(binding.row_ids) * len(point) <= COMPARE_ALL_MAX:
        return rows
    is_candidate = np.zeros(len(binding.row_ids), np.bool_)
    for table_key in binding.table_keys:
        type_positions = np.flatnonzero(binding.is_type(table_key))
        type_ids = binding.row_ids[type_positions]
        nearest_ids = _nearest_ids(context, table_key, ranking, distinct_row_ids(type_ids), row_limit)
        is_candidate[type_positions] = _membership_mask(type_ids, nearest_ids)
    return rows.take(np.flatnonzero(is_candidate))


def vector_index_name(context: ExecutionContext, ranking: plan.Nearest, table_keys: Sequence[TableKey]) -> str | None:
    """Return the index name that `explain` shows for a ranking, or None if no index is used."""
    column_name = ranking.field.name
    index_kind = vector_index.KINDS_BY_METRIC[distance_metric(context, table_keys, column_name)]
    dimension = ranking.field.type.vector_dim or 1
    large_tables = (table_key for table_key in table_keys if context.row_count(table_key) * dimension > COMPARE_ALL_MAX)
    index_matches = (
        kinds_by_index_key(context.table(table_key)).get(column_name) == index_kind for table_key in large_tables
    )
    return f"{column_name}_{index_kind.lower()}" if any(index_matches) else None


def _nearest_ids(
    context: ExecutionContext, table_key: TableKey, ranking: plan.Nearest, candidate_ids: IntArray, row_limit: int
) -> IntArray:
    search = _NearestSearch(context, table_key, ranking, candidate_ids, row_limit)
    vector_numbers = len(candidate_ids) * len(search.point)
    if vector_numbers <= COMPARE_ALL_MAX or row_limit * 2 >= len(candidate_ids):
        return candidate_ids
    indexed_fragments = search.indexed_fragments()
    if not indexed_fragments and vector_numbers <= IN_MEMORY_MAX:
        return candidate_ids
    search.scan_fragments(frozenset(list_fragment_ids(search.table)) - indexed_fragments)
    if indexed_fragments and not search.search_index():
        search.scan_fragments(indexed_fragments)
    return search.nearest.ids


@dataclass(slots=True, eq=False)
class _NearestSoFar:
    """The nearest entities found so far, including those tied within rounding error."""

    row_limit: int
    ids: IntArray = field(default_factory=lambda: np.empty(0, np.int64))
    distances: Scores = field(default_factory=lambda: np.empty(0))

    def add_candidates(self, new_ids: IntArray, new_distances: Scores) -> None:
        # NaN represents a missing distance, for which the comparison is false.
        is_near = new_distances <= self.max_distance()
        self.ids, first_positions = np.unique(np.concatenate([self.ids, new_ids[is_near]]), return_index=True)
        self.distances = np.concatenate([self.distances, new_distances[is_near]])[first_positions]
        is_near = self.distances <= self.max_distance()
        self.ids, self.distances = self.ids[is_near], self.distances[is_near]

    def max_distance(self) -> float:
        """Return the distance beyond which no entity can be among the nearest."""
        if len(self.distances) < self.row_limit:
            return np.inf
        farthest_kept = float(np.partition(self.distances, self.row_limit - 1)[self.row_limit - 1])
        return farthest_kept + 1e-9 * max(1.0, abs(farthest_kept))


class _NearestSearch:
    """A search for the vectors nearest to a point in one vector column."""

    def __init__(
        self,
        context: ExecutionContext,
        table_key: TableKey,
        ranking: plan.Nearest,
        candidate_ids: IntArray,
        row_limit: int,
    ) -> None:
        self.context, self.ids = context, candidate_ids
        self.table = context.table(table_key)
        self.column = ranking.field.name
        self.metric = distance_metric(context, (table_key,), self.column)
        point = query_point(context, ranking)
        assert point is not None  # noqa: S101 - checked by the caller
        self.point = point
        self.selected_share = len(candidate_ids) / context.row_count(table_key)
        self.nearest = _NearestSoFar(max(row_limit, 1))

    def indexed_fragments(self) -> frozenset[int]:
        """Return the fragments covered by an index for this metric, or an empty set if there is no usable index."""
        has_index = kinds_by_index_key(self.table).get(self.column) == vector_index.KINDS_BY_METRIC[self.metric]
        if not has_index or not vector_index.is_searchable(self.metric, self.point):
            return frozenset()
        return index_coverage(self.table)[self.column] & frozenset(list_fragment_ids(self.table))

    def scan_fragments(self, fragments: frozenset[int]) -> None:
        """Compare every vector in the given fragments with the point."""
        for batch in vector_index.vector_batches(self.table, self.column, sorted(fragments)):
            self.context.meter.check_timeout()
            self._compare_vectors(vector_index.batch_row_ids(batch), batch.column(self.column))

    def search_index(self) -> bool:
        """Compare index candidates with the point until all other rows are provably farther away.

        Returns False if it cannot be proven that all other rows are farther away.
        """
        candidate_count = int((2 * self.nearest.row_limit + 64) / self.selected_share)
        while candidate_count <= _MAX_CANDIDATES:
            self.context.meter.check_timeout()
            proposed = vector_index.nearest_candidates(
                self.table, self.column, self.metric, self.point, candidate_count
            )
            if proposed is None:
                return False
            proposed_ids, approximate = proposed
            self._compare_vectors(proposed_ids, take_rows(self.table, proposed_ids, [self.column])[self.column])
            if self._is_complete(approximate, len(proposed_ids) < candidate_count):
                return True
            if len(proposed_ids) < candidate_count:
                return False
            candidate_count *= 4
        return False

    def _is_complete(self, approximate: Scores, is_exhausted: bool) -> bool:
        max_distance = self.nearest.max_distance()
        if max_distance >= vector_index.reliable_distance_limit(self.metric):
            return False
        if is_exhausted or not len(approximate):
            return max_distance < np.inf
        error_bound = vector_index.distance_error_bound(
            self.metric, len(self.point), self.point, float(approximate[-1])
        )
        return float(approximate[-1]) - error_bound > max_distance

    def _compare_vectors(self, row_ids: IntArray, vector_column: pa.Array | pa.ChunkedArray) -> None:
        if isinstance(vector_column, pa.ChunkedArray):
            vector_column = vector_column.combine_chunks()
        if self.selected_share < 1:
            selected = np.flatnonzero(_membership_mask(row_ids, self.ids))
            row_ids, vector_column = row_ids[selected], vector_column.take(pa.array(selected))
        self.nearest.add_candidates(row_ids, distances(vector_column, self.point, self.metric))


def _membership_mask(ids: IntArray, sorted_ids: IntArray) -> Mask:
    """Return a mask of the ids that occur in `sorted_ids`."""
    if not len(sorted_ids):
        return np.zeros(len(ids), np.bool_)
    insert_positions = np.minimum(np.searchsorted(sorted_ids, ids), len(sorted_ids) - 1)
    is_member: Mask = sorted_ids[insert_positions] == ids
    return is_member
