"""Find rows whose strings match a text query, using a full-text index to propose candidates.

An index lists the terms in the strings that it covers. The terms that match a query are selected with the same text
analysis as in a scan without an index. Every row with a matching term is tested, and so is every row that no index
covers. The result therefore never depends on index coverage.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.engine.execution_context import ExecutionContext
from omnigraph.engine.expressions.evaluate import TableSource, is_constant, true_mask
from omnigraph.engine.operators.fetch import columns_read
from omnigraph.engine.operators.pushdown import to_storage_filter
from omnigraph.engine.operators.rows import IntArray
from omnigraph.engine.query_caches import caches_of, root_identity
from omnigraph.lang.query import plan
from omnigraph.storage.fragments import fragment_row_counts, list_fragment_ids, read_fragments
from omnigraph.storage.scan import row_id_array, take_rows
from omnigraph.storage.table import Table
from omnigraph.storage.text import fulltext
from omnigraph.values.table_key import TableKey

from .stem import stem_prefixes
from .text import DEFAULT_MAX_EDITS, Tokens, analyze_texts, token_of_word, tokenize, tokens_within_edits

MIN_INDEXED_ROWS = 1 << 12  # tables up to this size are read without an index
_MIN_ROWS_PER_CANDIDATE = 8  # if more than 1/8 of the rows are candidates, the table is read without the index
_MAX_WITH_PUSHDOWN = 1 << 10  # with more candidates, a filter in storage is faster than the index
_MAX_TERMS = 256  # maximum number of terms per lookup


@dataclass(frozen=True, slots=True, eq=False)
class TextLookup:
    """A full-text index lookup. Every matching string contains at least one of `terms`."""

    index_name: str
    column_name: str
    terms: tuple[str, ...]
    covered_fragments: frozenset[int]  # fragments that the index covers
    max_candidates: int  # upper bound on the number of candidates


def plan_lookup(
    context: ExecutionContext, table_key: TableKey, filters: Sequence[plan.Predicate], *, has_storage_filter: bool
) -> TextLookup | None:
    """Return the lookup with the fewest candidates, or None if no index is usable or a scan is likely to be faster."""
    if context.row_count(table_key) <= MIN_INDEXED_ROWS:
        return None
    text_searches = [predicate for predicate in filters if isinstance(predicate, plan.TextSearch)]
    planned_lookups = (_plan_search(context, table_key, search) for search in text_searches)
    usable_lookups = (text_lookup for text_lookup in planned_lookups if text_lookup is not None)
    best_lookup = min(usable_lookups, key=lambda text_lookup: text_lookup.max_candidates, default=None)
    if best_lookup is None or (has_storage_filter and best_lookup.max_candidates > _MAX_WITH_PUSHDOWN):
        return None
    return best_lookup


def find_matching_rows(
    context: ExecutionContext, table_key: TableKey, filters: Sequence[plan.Predicate], text_lookup: TextLookup
) -> IntArray | None:
    """Return the sorted row ids of the rows that pass all filters, or None if the index is unreadable."""
    table = context.table(table_key)
    filter_columns = sorted({column_name for _, column_name in columns_read(*filters)})
    context.meter.charge_bytes(text_lookup.max_candidates * 8 * (1 + 2 * len(filter_columns)))
    candidate_ids = fulltext.candidate_rows(table, text_lookup.column_name, text_lookup.terms)
    if candidate_ids is None:
        return None
    candidate_rows = take_rows(table, candidate_ids, filter_columns)
    matching_ids = [candidate_ids[_match_filters(context, candidate_rows, filters)]] if len(candidate_ids) else []
    uncovered_fragments = sorted(set(list_fragment_ids(table)) - text_lookup.covered_fragments)
    matching_ids += _read_uncovered(context, table, uncovered_fragments, filter_columns, filters)
    return np.unique(np.concatenate(matching_ids)) if matching_ids else np.empty(0, np.int64)


def _read_uncovered(
    context: ExecutionContext,
    table: Table,
    fragments: Sequence[int],
    columns: Sequence[str],
    filters: Sequence[plan.Predicate],
) -> Iterable[IntArray]:
    """Yield the row ids of the matching rows in fragments that the index does not cover."""
    if not fragments:
        return
    storage_filters = [to_storage_filter(table.schema, predicate, context.constant) for predicate in filters]
    pushed_expressions = [expression for expression in storage_filters if expression is not None]
    combined_filter: Any = None
    for expression in pushed_expressions:
        combined_filter = expression if combined_filter is None else combined_filter & expression
    for batch in read_fragments(table, fragments, columns, combined_filter, with_row_ids=True):
        context.meter.check_timeout()
        batch_rows = pa.Table.from_batches([batch])
        yield row_id_array(batch_rows)[_match_filters(context, batch_rows, filters)]


def _match_filters(context: ExecutionContext, candidate_rows: pa.Table, filters: Sequence[plan.Predicate]) -> Any:
    source = TableSource(candidate_rows, context.params)
    return np.logical_and.reduce([true_mask(source, predicate) for predicate in filters])


def _plan_search(context: ExecutionContext, table_key: TableKey, search: plan.TextSearch) -> TextLookup | None:
    table, column_name = context.table(table_key), search.field.name
    query_text = context.constant(search.query) if is_constant(search.query) else None
    query_tokens = frozenset(tokenize(query_text)) if query_text is not None else None
    segments = fulltext.text_segments(table, column_name) if query_tokens else []
    if not query_tokens or not segments:
        return None
    loaded_terms = [_load_segment_terms(context, table, segment) for segment in segments]
    segment_terms = [terms for terms in loaded_terms if terms is not None]
    if len(segment_terms) < len(segments):
        return None
    covered_fragments = frozenset[int]().union(*(segment.fragment_ids for segment in segments))
    fragment_rows = fragment_row_counts(table)
    max_candidates = sum(fragment_rows.get(fragment, 0) for fragment in covered_fragments) // _MIN_ROWS_PER_CANDIDATE
    selection = _select_terms(context, search, query_tokens, segment_terms)
    if selection is None or selection.max_candidates > max_candidates:
        return None
    return TextLookup(segments[0].index_name, column_name, selection.terms, covered_fragments, selection.max_candidates)


@dataclass(frozen=True, slots=True)
class _TermSelection:
    """Index terms, and an upper bound on the number of rows that contain them."""

    terms: tuple[str, ...]
    max_candidates: int


def _select_terms(
    context: ExecutionContext,
    search: plan.TextSearch,
    query_tokens: frozenset[str],
    segment_terms: Sequence["SegmentTerms"],
) -> _TermSelection | None:
    """Return the terms to look up, or None if there are too many terms or the index cannot find some of them."""
    if search.function == "match_text":  # all tokens must occur, so looking up the rarest token is sufficient
        token_selections = [_find_matching_terms(segment_terms, frozenset({token})) for token in sorted(query_tokens)]
        usable_selections = [selection for selection in token_selections if selection is not None]
        return min(usable_selections, key=lambda selection: selection.max_candidates, default=None)
    if search.function == "fuzzy":
        max_edits = context.constant(search.max_edits) if search.max_edits is not None else None
        max_edits = DEFAULT_MAX_EDITS if max_edits is None else max_edits
        all_tokens = {token for terms in segment_terms for token in terms.all_tokens()}
        query_tokens = tokens_within_edits(all_tokens, query_tokens, max_edits)
    return _find_matching_terms(segment_terms, query_tokens)


def _find_matching_terms(
    segment_terms: Sequence["SegmentTerms"], query_tokens: frozenset[str]
) -> _TermSelection | None:
    matches_per_segment = [terms.matching_terms(query_tokens) for terms in segment_terms]
    matching_terms = pa.concat_arrays([matching_terms for matching_terms, _ in matches_per_segment]).unique()
    if len(matching_terms) > _MAX_TERMS or next(fulltext.unindexed_tokens(matching_terms), None) is not None:
        return None
    return _TermSelection(tuple(matching_terms.to_pylist()), sum(occurrences for _, occurrences in matches_per_segment))


@dataclass(slots=True, eq=False)
class SegmentTerms:
    """The terms in an index segment.

    An ASCII term is a single token, whereas any other term may contain several tokens.
    """

    ascii_terms: pa.Array
    ascii_counts: pa.Array
    other_terms: pa.Array
    other_counts: pa.Array
    other_tokens: Tokens
    ascii_tokens: tuple[str, ...] = field(default=())

    def matching_terms(self, query_tokens: frozenset[str]) -> tuple[pa.Array, int]:
        """Return the terms that contain a query token, and their total number of occurrences."""
        ascii_positions = pa.array(self._find_ascii_terms(query_tokens), pa.int64())
        other_hits = self.other_tokens.text_indexes[self.other_tokens.is_any_of(query_tokens)]
        other_positions = pa.array(np.unique(other_hits))
        matched_terms = pa.concat_arrays(
            [self.ascii_terms.take(ascii_positions), self.other_terms.take(other_positions)]
        )
        occurrence_counts = pa.concat_arrays(
            [self.ascii_counts.take(ascii_positions), self.other_counts.take(other_positions)]
        )
        return matched_terms, int(pc.sum(occurrence_counts).as_py() or 0)

    def _find_ascii_terms(self, query_tokens: frozenset[str]) -> list[int]:
        if self.ascii_tokens:
            return [
                term_position
                for term_position, ascii_token in enumerate(self.ascii_tokens)
                if ascii_token in query_tokens
            ]
        term_prefixes = {prefix for token in query_tokens if token.isascii() for prefix in stem_prefixes(token)}
        positions: list[int] = []
        for prefix in term_prefixes:
            prefix_matches = np.flatnonzero(pc.starts_with(self.ascii_terms, prefix).to_numpy(False))
            prefix_terms = self.ascii_terms.take(pa.array(prefix_matches)).to_pylist()
            positions += [
                int(term_position)
                for term_position, term in zip(prefix_matches, prefix_terms, strict=True)
                if token_of_word(term) in query_tokens
            ]
        return sorted(set(positions))

    def all_tokens(self) -> Iterable[str]:
        """Yield the tokens of all terms, each at least once."""
        if not self.ascii_tokens:
            self.ascii_tokens = tuple(map(token_of_word, self.ascii_terms.to_pylist()))
        yield from (ascii_token for ascii_token in self.ascii_tokens if ascii_token)
        yield from self.other_tokens.vocabulary

    @property
    def nbytes(self) -> int:
        """The approximate memory size in bytes, including values that are computed on first use."""
        arrays = (self.ascii_terms, self.ascii_counts, self.other_terms, self.other_counts)
        return sum(int(array.nbytes) for array in arrays) + 64 * (len(self.ascii_terms) + len(self.other_terms))


def _load_segment_terms(context: ExecutionContext, table: Table, segment: fulltext.TextSegment) -> SegmentTerms | None:
    """Return a segment's terms, or None if they are unreadable. Segments never change, so the terms are cached."""
    store, caches = context.snapshot.store, caches_of(context)
    cache_key = ("words", root_identity(store), table.location, segment.uuid)
    cached_terms: SegmentTerms | None = caches.memory.get(cache_key)
    if cached_terms is None:
        context.meter.enter_gate()  # enter the gate before taking a lock that other threads may wait for
        cached_terms = caches.memory.get_or_build(
            cache_key,
            lambda: _build_segment_terms(fulltext.read_tokens(store, table, segment)),
            lambda built_terms: built_terms.nbytes,
        )
    return cached_terms


def _build_segment_terms(term_table: pa.Table | None) -> SegmentTerms | None:
    if term_table is None:
        return None
    terms, term_counts = term_table["word"].combine_chunks(), term_table["times"].combine_chunks()
    is_ascii_term = pc.match_substring_regex(terms, "^[a-z0-9]+$")
    other_terms = terms.filter(pc.invert(is_ascii_term))
    return SegmentTerms(
        terms.filter(is_ascii_term),
        term_counts.filter(is_ascii_term),
        other_terms,
        term_counts.filter(pc.invert(is_ascii_term)),
        analyze_texts(other_terms),
    )
