"""Selection of the candidates for the nearest entities to a point: exact, in bounded memory.

An index proposes candidates; rows without index coverage are read batch by batch. Distances are
computed from the stored vectors in double precision, and a candidate is dropped only if it is
certainly farther away. A result must never depend on what an index covers.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from omnigraph.lang.query import plan
from omnigraph.storage import vectors
from omnigraph.storage.fragments import fragment_ids
from omnigraph.storage.index import covered, kinds_of
from omnigraph.storage.scan import distinct, take

from .context import Context
from .rows import Ids, Mask, Rows
from .search import Scores, distances, metric_of, point_of

FEW = 1 << 19  # total vector components up to which all vectors are compared directly
MANY = 1 << 24  # without an index: total components up to which all vectors are held in memory
_MOST = 1 << 16  # maximum candidates taken from an index; beyond it the vectors are read


def narrowed(context: Context, rows: Rows, ranking: plan.Nearest, most: int) -> Rows:
    """Return the rows that can be among the `row_limit` nearest, possibly with some others."""
    binding = rows[ranking.field.variable]
    point = point_of(context, ranking)
    if point is None or len(binding.ids) * len(point) <= FEW:
        return rows
    near = np.zeros(len(binding.ids), np.bool_)
    for key in binding.types:
        own = np.flatnonzero(binding.of_type(key))
        ids = binding.ids[own]
        best = _best(context, key, ranking, distinct(ids), most)
        near[own] = _among(ids, best)
    return rows.take(np.flatnonzero(near))


def index_of(context: Context, ranking: plan.Nearest, types: Sequence[str]) -> str | None:
    """Return the index name that `explain` shows for a ranking, or None without an index."""
    name = ranking.field.name
    kind = vectors.KINDS[metric_of(context, types, name)]
    width = ranking.field.type.vector_dim or 1
    large = (key for key in types if context.count(key) * width > FEW)
    used = (kinds_of(context.table(key)).get(name) == kind for key in large)
    return f"{name}_{kind.lower()}" if any(used) else None


def _best(context: Context, key: str, ranking: plan.Nearest, ids: Ids, most: int) -> Ids:
    search = _Search(context, key, ranking, ids, most)
    size = len(ids) * len(search.point)
    if size <= FEW or most * 2 >= len(ids):
        return ids
    held = search.held()
    if not held and size <= MANY:
        return ids
    search.read(frozenset(fragment_ids(search.table)) - held)
    if held and not search.ask():
        search.read(held)
    return search.found.ids


@dataclass(slots=True, eq=False)
class _Found:
    """The nearest entities so far, including those tied within rounding error."""

    most: int
    ids: Ids = field(default_factory=lambda: np.empty(0, np.int64))
    far: Scores = field(default_factory=lambda: np.empty(0))

    def add(self, ids: Ids, far: Scores) -> None:
        near = far <= self.limit()  # NaN (no distance) compares false
        self.ids, first = np.unique(np.concatenate([self.ids, ids[near]]), return_index=True)
        self.far = np.concatenate([self.far, far[near]])[first]
        near = self.far <= self.limit()
        self.ids, self.far = self.ids[near], self.far[near]

    def limit(self) -> float:
        """Return the distance beyond which no entity can be among the nearest."""
        if len(self.far) < self.most:
            return np.inf
        last = float(np.partition(self.far, self.most - 1)[self.most - 1])
        return last + 1e-9 * max(1.0, abs(last))


class _Search:
    """Search of one vector column of one table for one point."""

    def __init__(
        self, context: Context, key: str, ranking: plan.Nearest, ids: Ids, most: int
    ) -> None:
        self.context, self.ids = context, ids
        self.table = context.table(key)
        self.column = ranking.field.name
        self.metric = metric_of(context, (key,), self.column)
        point = point_of(context, ranking)
        assert point is not None  # noqa: S101 - checked by the caller
        self.point = point
        self.share = len(ids) / context.count(key)
        self.found = _Found(max(most, 1))

    def held(self) -> frozenset[int]:
        """Return the fragments covered by an index of the right kind."""
        fits = kinds_of(self.table).get(self.column) == vectors.KINDS[self.metric]
        if not fits or not vectors.is_fit(self.metric, self.point):
            return frozenset()
        return covered(self.table)[self.column] & frozenset(fragment_ids(self.table))

    def read(self, fragments: frozenset[int]) -> None:
        """Compare every vector of these fragments."""
        for batch in vectors.vector_batches(self.table, self.column, sorted(fragments)):
            self.context.meter.check()
            self._compare(vectors.rows_of(batch), batch.column(self.column))

    def ask(self) -> bool:
        """Compare index candidates until the rest is certainly farther; False if that fails."""
        wanted = int((2 * self.found.most + 64) / self.share)
        while wanted <= _MOST:
            self.context.meter.check()
            proposed = vectors.candidates(self.table, self.column, self.metric, self.point, wanted)
            if proposed is None:
                return False
            ids, about = proposed
            self._compare(ids, take(self.table, ids, [self.column])[self.column])
            if self._is_settled(about, len(ids) < wanted):
                return True
            if len(ids) < wanted:
                return False
            wanted *= 4
        return False

    def _is_settled(self, about: Scores, complete: bool) -> bool:
        limit = self.found.limit()
        if limit >= vectors.unreliable_from(self.metric):
            return False
        if complete or not len(about):
            return limit < np.inf
        wrong = vectors.slack(self.metric, len(self.point), self.point, float(about[-1]))
        return float(about[-1]) - wrong > limit

    def _compare(self, ids: Ids, column: pa.Array | pa.ChunkedArray) -> None:
        if isinstance(column, pa.ChunkedArray):
            column = column.combine_chunks()
        if self.share < 1:
            own = np.flatnonzero(_among(ids, self.ids))
            ids, column = ids[own], column.take(pa.array(own))
        self.found.add(ids, distances(column, self.point, self.metric))


def _among(ids: Ids, known: Ids) -> Mask:
    """Return a mask of the ids that occur in a sorted array."""
    if not len(known):
        return np.zeros(len(ids), np.bool_)
    place = np.minimum(np.searchsorted(known, ids), len(known) - 1)
    found: Mask = known[place] == ids
    return found
