"""Which entities can be among the nearest to a point: a few, found exactly in bounded memory.

An index proposes candidates, rows that none covers are read batch by batch. Distances are computed
from the stored vectors in double precision, whatever proposed them, and a candidate is given up
only when it is farther away for certain. So an answer never depends on what an index covers.
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

FEW = 1 << 19  # numbers in all vectors together that are simply compared
MANY = 1 << 24  # without an index: so many are not held in memory at once
_MOST = 1 << 16  # candidates of an index; whoever needs more reads the vectors themselves


def narrowed(context: Context, rows: Rows, ranking: plan.Nearest, most: int) -> Rows:
    """The rows that can be among the `most` nearest, and perhaps some more."""
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
    """The name that `explain` shows of the index that a ranking asks, if there is one."""
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
    """The nearest so far, with those that are as near as makes no difference."""

    most: int
    ids: Ids = field(default_factory=lambda: np.empty(0, np.int64))
    far: Scores = field(default_factory=lambda: np.empty(0))

    def add(self, ids: Ids, far: Scores) -> None:
        near = far <= self.limit()  # nothing holds for what has no distance
        self.ids, first = np.unique(np.concatenate([self.ids, ids[near]]), return_index=True)
        self.far = np.concatenate([self.far, far[near]])[first]
        near = self.far <= self.limit()
        self.ids, self.far = self.ids[near], self.far[near]

    def limit(self) -> float:
        """No entity that is farther away can be among the nearest."""
        if len(self.far) < self.most:
            return np.inf
        last = float(np.partition(self.far, self.most - 1)[self.most - 1])
        return last + 1e-9 * max(1.0, abs(last))


class _Search:
    """One table, one column, one point."""

    def __init__(
        self, context: Context, key: str, ranking: plan.Nearest, ids: Ids, most: int
    ) -> None:
        self.context, self.ids = context, ids
        self.table = context.table(key)
        self.column = ranking.field.name
        self.metric = metric_of(context, (key,), self.column)
        point = point_of(context, ranking)
        assert point is not None  # noqa: S101 - asked before
        self.point = point
        self.share = len(ids) / context.count(key)
        self.found = _Found(max(most, 1))

    def held(self) -> frozenset[int]:
        """The fragments that an index of the right kind can be asked about."""
        fits = kinds_of(self.table).get(self.column) == vectors.KINDS[self.metric]
        if not fits or not vectors.is_fit(self.metric, self.point):
            return frozenset()
        return covered(self.table)[self.column] & frozenset(fragment_ids(self.table))

    def read(self, fragments: frozenset[int]) -> None:
        """Compare every vector of some fragments."""
        for batch in vectors.vector_batches(self.table, self.column, sorted(fragments)):
            self.context.meter.check()
            self._compare(vectors.rows_of(batch), batch.column(self.column))

    def ask(self) -> bool:
        """Compare what the index proposes, until the rest is too far away; False if it never is."""
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
    """Which ids are in a sorted array."""
    if not len(known):
        return np.zeros(len(ids), np.bool_)
    place = np.minimum(np.searchsorted(known, ids), len(known) - 1)
    found: Mask = known[place] == ids
    return found
