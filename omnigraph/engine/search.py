"""Scores of `bm25` and `nearest`, computed exactly from the stored values.

Scores are computed once per entity; `nearest.py` decides which entities need one. The statistics
of `bm25` cover all nodes of the type in the snapshot, so that a score does not depend on the rest
of a query.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from omnigraph.errors import EmbeddingError, QueryExecutionError
from omnigraph.lang.query import plan
from omnigraph.lang.schema.catalog import Index
from omnigraph.storage import scan as storage

from .cache import root_name
from .codes import dense, entity_codes
from .context import Context
from .fetch import fetch
from .neighbours import caches_of
from .rows import Binding, Ids, Rows
from .text import Tokens, analyse, tokenize

Scores = npt.NDArray[np.float64]  # NaN where a row has none

_K1, _B = 1.2, 0.75


def scores_of(context: Context, rows: Rows, ranking: plan.Ranking) -> Scores:
    """Return the score of every row; NaN for a row that the ranking excludes."""
    if isinstance(ranking, plan.Fuse):
        from .fuse import fused

        return fused(context, rows, ranking)
    binding = rows[ranking.field.variable]
    codes, first = dense(entity_codes(binding))
    if len(first) == 0:
        return np.empty(0)
    found = entity_scores(context, binding.take(first), ranking)
    return found[codes]


def entity_scores(context: Context, binding: Binding, ranking: plan.Bm25 | plan.Nearest) -> Scores:
    """Return the score of each entity of a variable."""
    query = context.constant(ranking.query)
    if query is None or not binding.types:
        return np.full(len(binding.ids), np.nan)
    if isinstance(ranking, plan.Bm25):
        return bm25(context, binding, ranking.field.name, query)
    column = fetch(context, binding, [ranking.field.name])[0]
    metric = metric_of(context, binding.types, ranking.field.name)
    return distances(column, _vector(context, ranking, query), metric)


def best_first(ranking: plan.Ranking, scores: Scores) -> Scores:
    """Return numbers that ascend from the best row to the worst."""
    return scores if isinstance(ranking, plan.Nearest) else -scores


def as_column(scores: Scores) -> pa.Array:
    """Return scores as a result column."""
    return pa.array(scores, mask=np.isnan(scores))


def bm25(context: Context, binding: Binding, name: str, query: str) -> Scores:
    """Okapi BM25 with k1 = 1.2 and b = 0.75; NaN for a text without any token of the query."""
    wanted = sorted(set(tokenize(query)))
    held = {key: _corpus(context, key, name) for key in binding.types}
    count = sum(one.tokens.texts for one in held.values())
    total = sum(len(one.tokens.codes) for one in held.values())
    often = {word: {key: one.frequencies(word) for key, one in held.items()} for word in wanted}
    mean = max(total / max(count, 1), 1e-9)
    found = np.full(len(binding.ids), np.nan)
    for key, corpus in held.items():
        scores, hit = np.zeros(corpus.tokens.texts), np.zeros(corpus.tokens.texts, np.bool_)
        norm = _K1 * (1 - _B + _B * corpus.tokens.lengths() / mean)
        for word in wanted:
            holding = sum(int(np.count_nonzero(counts)) for counts in often[word].values())
            rarity = np.log1p((count - holding + 0.5) / (holding + 0.5))
            scores += rarity * often[word][key] * (_K1 + 1) / (often[word][key] + norm)
            hit |= often[word][key] > 0
        own = np.flatnonzero(binding.of_type(key))
        found[own] = corpus.of(np.where(hit, scores, np.nan), binding.ids[own])
    return found


@dataclass(frozen=True, slots=True, eq=False)
class _Corpus:
    """The tokens of all texts of a property, and the row ids they belong to, in order."""

    tokens: Tokens
    rows: Ids

    def frequencies(self, word: str) -> Ids:
        """Return how often a token occurs in each text."""
        hits = self.tokens.owners[self.tokens.numbers(frozenset({word}))]
        return np.bincount(hits, minlength=self.tokens.texts)

    def of(self, scores: Scores, rows: Ids) -> Scores:
        """Return the scores of rows; NaN for a row without a text."""
        if len(self.rows) == 0:
            return np.full(len(rows), np.nan)
        place = np.minimum(np.searchsorted(self.rows, rows), len(self.rows) - 1)
        return np.where(self.rows[place] == rows, scores[place], np.nan)

    @property
    def nbytes(self) -> int:
        """Approximate bytes in memory."""
        return self.tokens.owners.nbytes * 2 + self.rows.nbytes + 64 * len(self.tokens.words)


def _corpus(context: Context, key: str, name: str) -> _Corpus:
    """Return the texts of a property, analysed once per version of the table."""
    caches, table = caches_of(context), context.table(key)
    place = ("tokens", root_name(context.snapshot.store), table.location, table.version, name)
    held: _Corpus | None = caches.memory.get(place)
    if held is None:
        context.meter.enter()  # must precede a lock that other threads may wait for
        held = caches.memory.make(place, lambda: _analysed(context, key, name), _size)
    return held if held is not None else _analysed(context, key, name)


def _size(corpus: _Corpus) -> int:
    return corpus.nbytes


def _analysed(context: Context, key: str, name: str) -> _Corpus:
    found = storage.scan(context.table(key), [name], row_ids=True)
    context.meter.charge(found.nbytes * 3)
    rows, texts = storage.row_id_array(found), found[name].combine_chunks()
    order = np.argsort(rows, kind="stable")
    order = order[texts.is_valid().to_numpy(zero_copy_only=False)[order]]
    corpus = _Corpus(analyse(texts.take(pa.array(order))), rows[order])
    context.meter.release(found.nbytes * 3)
    return corpus


def distances(vectors: pa.Array, query: Sequence[float] | Scores, metric: str = "cosine") -> Scores:
    """Return the distance of each vector from the query vector; NaN for null.

    A vector of length zero has no direction: its cosine with any vector is 0, its distance 1.

    >>> stored = pa.array([[3.0, 4.0], None, [0.0, 0.0]], pa.list_(pa.float32(), 2))
    >>> distances(stored, [0.0, 1.0]).round(3).tolist()
    [0.2, nan, 1.0]
    """
    width = vectors.type.list_size
    valid = vectors.is_valid().to_numpy(zero_copy_only=False)
    flat = vectors.drop_null().flatten().to_numpy(zero_copy_only=False)
    held = flat.reshape(-1, width).astype(np.float64)
    point = np.asarray(query, np.float64)
    found = np.full(len(vectors), np.nan)
    found[valid] = _METRICS[metric](held, point)
    return found


def _cosine(held: Any, point: Any) -> Any:
    lengths = np.sqrt(np.einsum("ij,ij->i", held, held)) * np.sqrt(np.einsum("i,i->", point, point))
    products = np.einsum("ij,j->i", held, point)
    return 1.0 - np.divide(products, lengths, out=np.zeros(len(held)), where=lengths > 0)


def _euclidean(held: Any, point: Any) -> Any:
    apart = held - point
    return np.sqrt(np.einsum("ij,ij->i", apart, apart))


def _dot(held: Any, point: Any) -> Any:
    return 1.0 - np.einsum("ij,j->i", held, point)


_METRICS = {"cosine": _cosine, "l2": _euclidean, "dot": _dot}


def metric_of(context: Context, types: Sequence[str], name: str) -> str:
    """Return the metric of the index on a property; cosine when none is declared."""
    found = {
        dict(one.options).get("metric", "cosine")
        for key in types
        for one in context.declared(key).constraints
        if isinstance(one, Index) and one.columns == (name,)
    }
    if len(found) > 1:
        raise QueryExecutionError(reason=f"the ranked types index `{name}` with different metrics")
    return found.pop() if found else "cosine"


def point_of(context: Context, ranking: plan.Nearest) -> Scores | None:
    """Return the query vector of a ranking; None when its argument is null."""
    query = context.constant(ranking.query)
    return None if query is None else np.asarray(_vector(context, ranking, query), np.float64)


def _vector(context: Context, ranking: plan.Nearest, query: Any) -> Sequence[float]:
    """Return the query vector; a text is embedded, once per query."""
    if not isinstance(query, str):
        found: Sequence[float] = query
        return found
    known = ("embedded", query, ranking.field.type.vector_dim, ranking.model)
    if known not in context.ways:
        context.ways[known] = _embedded(context, ranking, query)
    embedded: Sequence[float] = context.ways[known]
    return embedded


def _embedded(context: Context, ranking: plan.Nearest, query: str) -> Sequence[float]:
    if context.embed is None:
        raise EmbeddingError(
            f"`nearest` with a text needs an embedding provider for '{ranking.field.name}'",
            hint="pass a vector, or configure an embedding provider",
            provider="none",
            effect="none",
        )
    return context.embed(query, ranking.field.type.vector_dim or 0, ranking.model)
