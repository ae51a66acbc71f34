"""Compute `bm25` and `nearest` scores exactly, from the stored values.

Scores are computed once per entity. `nearest.py` determines which entities need a score. The `bm25` statistics cover
all nodes of the ranked types in the snapshot, so a score does not depend on the rest of the query.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from omnigraph.engine.execution_context import ExecutionContext
from omnigraph.engine.expressions.value_codes import dense_codes, entity_codes
from omnigraph.engine.operators.fetch import fetch_columns
from omnigraph.engine.operators.rows import IntArray, Rows, VariableBinding
from omnigraph.engine.query_caches import caches_of, root_identity
from omnigraph.errors import EmbeddingError, QueryExecutionError
from omnigraph.lang.query import plan
from omnigraph.lang.schema.catalog import Index
from omnigraph.records.frozen import record
from omnigraph.storage import scan as storage
from omnigraph.values.table_key import TableKey

from .text import Tokens, analyze_texts, tokenize

Scores = npt.NDArray[np.float64]  # NaN means that a row has no score

_K1, _B = 1.2, 0.75


def compute_scores(context: ExecutionContext, rows: Rows, ranking: plan.Ranking) -> Scores:
    """Return each row's score, or NaN for a row that the ranking excludes."""
    if isinstance(ranking, plan.Fuse):
        from .fuse import fused_scores

        return fused_scores(context, rows, ranking)
    binding = rows[ranking.field.variable]
    codes, first_positions = dense_codes(entity_codes(binding))
    if len(first_positions) == 0:
        return np.empty(0)
    distinct_scores = entity_scores(context, binding.take(first_positions), ranking)
    return distinct_scores[codes]


def entity_scores(context: ExecutionContext, binding: VariableBinding, ranking: plan.Bm25 | plan.Nearest) -> Scores:
    """Return a score for each entity that a variable is bound to."""
    query_value = context.constant(ranking.query)
    if query_value is None or not binding.table_keys:
        return np.full(len(binding.row_ids), np.nan)
    if isinstance(ranking, plan.Bm25):
        return bm25(context, binding, ranking.field.name, query_value)
    vector_column = fetch_columns(context, binding, [ranking.field.name])[0]
    metric = distance_metric(context, binding.table_keys, ranking.field.name)
    return distances(vector_column, _resolve_vector(context, ranking, query_value), metric)


def ascending_from_best(ranking: plan.Ranking, scores: Scores) -> Scores:
    """Return a sort key for each row; the keys increase from the best row to the worst."""
    return scores if isinstance(ranking, plan.Nearest) else -scores


def score_column(scores: Scores) -> pa.Array:
    """Return scores as a result column."""
    return pa.array(scores, mask=np.isnan(scores))


def bm25(context: ExecutionContext, binding: VariableBinding, property_name: str, query: str) -> Scores:
    """Return Okapi BM25 scores with k1 = 1.2 and b = 0.75, or NaN for a string that contains no query token."""
    query_tokens = sorted(set(tokenize(query)))
    corpora = {table_key: _load_corpus(context, table_key, property_name) for table_key in binding.table_keys}
    text_count = sum(corpus.tokens.text_count for corpus in corpora.values())
    token_count = sum(len(corpus.tokens.codes) for corpus in corpora.values())
    frequencies = {
        token: {table_key: corpus.frequencies(token) for table_key, corpus in corpora.items()} for token in query_tokens
    }
    mean_length = max(token_count / max(text_count, 1), 1e-9)
    row_scores = np.full(len(binding.row_ids), np.nan)
    for table_key, corpus in corpora.items():
        text_scores = np.zeros(corpus.tokens.text_count)
        has_token = np.zeros(corpus.tokens.text_count, np.bool_)
        length_norm = _K1 * (1 - _B + _B * corpus.tokens.token_counts() / mean_length)
        for token in query_tokens:
            document_frequency = sum(
                int(np.count_nonzero(token_counts)) for token_counts in frequencies[token].values()
            )
            idf = np.log1p((text_count - document_frequency + 0.5) / (document_frequency + 0.5))
            text_scores += (
                idf * frequencies[token][table_key] * (_K1 + 1) / (frequencies[token][table_key] + length_norm)
            )
            has_token |= frequencies[token][table_key] > 0
        type_positions = np.flatnonzero(binding.is_type(table_key))
        row_scores[type_positions] = corpus.scores_for_rows(
            np.where(has_token, text_scores, np.nan), binding.row_ids[type_positions]
        )
    return row_scores


@record(eq=False)
class _Corpus:
    """The tokens in all strings of a property, and the row ids of the strings in ascending order."""

    tokens: Tokens
    row_ids: IntArray

    def frequencies(self, token: str) -> IntArray:
        """Return how often a token occurs in each string."""
        text_hits = self.tokens.text_indexes[self.tokens.is_any_of(frozenset({token}))]
        return np.bincount(text_hits, minlength=self.tokens.text_count)

    def scores_for_rows(self, scores: Scores, row_ids: IntArray) -> Scores:
        """Return the scores of the given rows, or NaN for a row without a string."""
        if len(self.row_ids) == 0:
            return np.full(len(row_ids), np.nan)
        corpus_positions = np.minimum(np.searchsorted(self.row_ids, row_ids), len(self.row_ids) - 1)
        return np.where(self.row_ids[corpus_positions] == row_ids, scores[corpus_positions], np.nan)

    @property
    def nbytes(self) -> int:
        """The approximate memory size in bytes."""
        return self.tokens.text_indexes.nbytes * 2 + self.row_ids.nbytes + 64 * len(self.tokens.vocabulary)


def _load_corpus(context: ExecutionContext, table_key: TableKey, property_name: str) -> _Corpus:
    """Return the tokenized strings of a property. The text analysis runs once per table version."""
    caches, table = caches_of(context), context.table(table_key)
    family = ("tokens", root_identity(context.snapshot.store), table.location, property_name)
    cache_key = (*family, table.version)
    cached_corpus: _Corpus | None = caches.memory.get(cache_key)
    if cached_corpus is None:
        context.meter.enter_gate()  # enter the gate before taking a lock that other threads may wait for
        cached_corpus = caches.memory.get_or_build(
            cache_key, lambda: _read_corpus(context, table_key, property_name), _corpus_bytes, family
        )
    return cached_corpus if cached_corpus is not None else _read_corpus(context, table_key, property_name)


def _corpus_bytes(corpus: _Corpus) -> int:
    return corpus.nbytes


def _read_corpus(context: ExecutionContext, table_key: TableKey, property_name: str) -> _Corpus:
    scanned = storage.scan(context.table(table_key), [property_name], row_ids=True)
    context.meter.charge_bytes(scanned.nbytes * 3)
    row_ids, texts = storage.row_id_array(scanned), scanned[property_name].combine_chunks()
    text_order = np.argsort(row_ids, kind="stable")
    text_order = text_order[texts.is_valid().to_numpy(zero_copy_only=False)[text_order]]
    corpus = _Corpus(analyze_texts(texts.take(pa.array(text_order))), row_ids[text_order])
    context.meter.release_bytes(scanned.nbytes * 3)
    return corpus


def distances(vectors: pa.Array, query_vector: Sequence[float] | Scores, metric: str = "cosine") -> Scores:
    """Return each vector's distance from the query vector, or NaN for a null vector.

    A zero vector has no direction, so its cosine similarity to any vector is 0 and its distance is 1.

    >>> stored = pa.array([[3.0, 4.0], None, [0.0, 0.0]], pa.list_(pa.float32(), 2))
    >>> distances(stored, [0.0, 1.0]).round(3).tolist()
    [0.2, nan, 1.0]
    """
    dimensions = vectors.type.list_size
    is_valid = vectors.is_valid().to_numpy(zero_copy_only=False)
    flat_values = vectors.drop_null().flatten().to_numpy(zero_copy_only=False)
    matrix = flat_values.reshape(-1, dimensions).astype(np.float64)
    point = np.asarray(query_vector, np.float64)
    vector_distances = np.full(len(vectors), np.nan)
    vector_distances[is_valid] = _METRICS[metric](matrix, point)
    return vector_distances


def _cosine_distances(matrix: Any, point: Any) -> Any:
    norm_products = np.sqrt(np.einsum("ij,ij->i", matrix, matrix)) * np.sqrt(np.einsum("i,i->", point, point))
    dot_products = np.einsum("ij,j->i", matrix, point)
    return 1.0 - np.divide(dot_products, norm_products, out=np.zeros(len(matrix)), where=norm_products > 0)


def _euclidean_distances(matrix: Any, point: Any) -> Any:
    differences = matrix - point
    return np.sqrt(np.einsum("ij,ij->i", differences, differences))


def _dot_distances(matrix: Any, point: Any) -> Any:
    return 1.0 - np.einsum("ij,j->i", matrix, point)


_METRICS = {"cosine": _cosine_distances, "l2": _euclidean_distances, "dot": _dot_distances}


def distance_metric(context: ExecutionContext, table_keys: Sequence[TableKey], property_name: str) -> str:
    """Return the metric used by the index on a property, or cosine if no index is declared."""
    metrics = {
        dict(constraint.options).get("metric", "cosine")
        for table_key in table_keys
        for constraint in context.declared_type(table_key).constraints
        if isinstance(constraint, Index) and constraint.columns == (property_name,)
    }
    if len(metrics) > 1:
        raise QueryExecutionError(reason=f"the ranked types use different index metrics for `{property_name}`")
    return metrics.pop() if metrics else "cosine"


def query_point(context: ExecutionContext, ranking: plan.Nearest) -> Scores | None:
    """Return the query vector of a ranking, or None if the query argument is null."""
    query_value = context.constant(ranking.query)
    return None if query_value is None else np.asarray(_resolve_vector(context, ranking, query_value), np.float64)


def _resolve_vector(context: ExecutionContext, ranking: plan.Nearest, query_value: Any) -> Sequence[float]:
    """Return the query vector. If the argument is a string, the string is embedded once per query."""
    if not isinstance(query_value, str):
        vector: Sequence[float] = query_value
        return vector
    cache_key = ("embedded", query_value, ranking.field.type.vector_dim, ranking.model)
    if cache_key not in context.adjacency_cache:
        context.adjacency_cache[cache_key] = _embed_query(context, ranking, query_value)
    embedded: Sequence[float] = context.adjacency_cache[cache_key]
    return embedded


def _embed_query(context: ExecutionContext, ranking: plan.Nearest, query_text: str) -> Sequence[float]:
    if context.embed is None:
        raise EmbeddingError(
            f"`nearest` with a string requires an embedding provider for '{ranking.field.name}'",
            hint="pass a vector, or configure an embedding provider",
            provider="none",
            effect="none",
        )
    return context.embed(query_text, ranking.field.type.vector_dim or 0, ranking.model)
