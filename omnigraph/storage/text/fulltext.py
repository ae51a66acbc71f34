"""Full-text indexes, which list the tokens in a text column and find the rows that contain given tokens.

An index finds tokens exactly as they appear in the column. A list of all tokens is stored next to the index. The caller
determines which tokens are equivalent, so a change in the rules for equivalence does not invalidate an index. Text is
split only where Lance also splits it, so that Lance splits a query token in the same way as the stored text. Results
are candidates: they include every row that contains a token, and possibly other rows.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from lance.dataset import Index

from omnigraph.records.frozen import record
from omnigraph.storage.data_writer import LANCE_FILE_VERSION
from omnigraph.storage.failures import panics_as_errors
from omnigraph.storage.fragments import read_fragments
from omnigraph.storage.index_fallback import SCAN_FAILURES, query_index, warn_unreadable_index
from omnigraph.storage.layout import TOKENS_FILE
from omnigraph.storage.scan import RowIdArray, row_id_array
from omnigraph.storage.store import Store
from omnigraph.storage.table import Table

from .ascii_tokens import tokenize_ascii

TEXT_INDEX_KIND = "INVERTED"
# The characters that both Lance and the engine treat as separators.
SEPARATOR_PATTERN = r"[\p{P}\p{Z}\p{C}$+<=>^`|~]+"
# Lance may not index a token that contains none of these characters.
INDEXED_CHARACTERS = r"[\p{L}\p{N}]"
_TEXT_KEY_PREFIX = "fulltext:"
_TOKENIZER_OPTIONS: dict[str, Any] = {
    "base_tokenizer": "simple",
    "lower_case": True,
    "ascii_folding": True,
    "stem": False,
    "remove_stop_words": False,
    "max_token_length": None,
    "with_position": False,
}
_MAX_PENDING_TOKENS = 1 << 20  # number of tokens to collect before merging equal ones


@record
class TextSegment:
    """A full-text index segment, and the fragments that it covers."""

    index_name: str
    uuid: str
    fragment_ids: frozenset[int]


def text_index_key(column: str) -> str:
    """Return the key for the full-text index on a column, which may have another index as well.

    >>> text_index_key("body"), index_column("fulltext:body"), index_column("body")
    ('fulltext:body', 'body', 'body')
    """
    return _TEXT_KEY_PREFIX + column


def index_column(index_key: str) -> str:
    """Return the column that an index key refers to."""
    return index_key.removeprefix(_TEXT_KEY_PREFIX)


def text_segments(table: Table, column: str) -> list[TextSegment]:
    """Return the segments of the full-text index on a column, or an empty list if there is none."""
    return [
        TextSegment(index.name, str(segment.uuid), frozenset(segment.fragment_ids))
        for index in table.dataset.describe_indices()
        if index.index_type == "Inverted" and index.field_names == [column]
        for segment in index.segments
    ]


def write_text_index(store: Store, table: Table, column: str, index_name: str, fragment_ids: Sequence[int]) -> Index:
    """Write a segment over some fragments, together with its tokens.

    No version references the segment yet.
    """

    def write_segment() -> Index:
        dataset = table.unshared_dataset()
        raw_segment = dataset.create_index_uncommitted(
            column,
            TEXT_INDEX_KIND,
            name=index_name,
            fragment_ids=list(fragment_ids),
            replace=True,
            **_TOKENIZER_OPTIONS,
        )
        # Lance cannot read the segment until it has been merged.
        merged_segment: Index = dataset.merge_existing_index_segments([raw_segment])
        _write_tokens(store, table, merged_segment.uuid, count_tokens(table, column, fragment_ids))
        return merged_segment

    return store.effects.run("index", table.location, write_segment)


def count_tokens(table: Table, column: str, fragment_ids: Sequence[int]) -> pa.Table:
    """Return the tokens in some fragments, each with its number of occurrences."""
    pending_counts: list[pa.Table] = []
    for batch in read_fragments(table, fragment_ids, [column]):
        pending_counts += _count_batch_tokens(batch.column(column))
        if sum(count_table.num_rows for count_table in pending_counts) > _MAX_PENDING_TOKENS:
            pending_counts = [_merge_counts(pending_counts)]
    token_counts = _merge_counts(pending_counts or list(_count_batch_tokens(pa.array([], pa.string()))))
    return token_counts.filter(pc.not_equal(token_counts["word"], "")).sort_by("word")


def tokenize(column: pa.Array) -> pa.Array:
    """Return the tokens in each string. Tokens may be empty, and only ASCII letters are converted to lower case."""
    return pc.split_pattern_regex(pc.ascii_lower(column), SEPARATOR_PATTERN)


def _count_batch_tokens(column: pa.Array) -> Iterator[pa.Table]:
    is_ascii = pc.fill_null(pc.string_is_ascii(column), True)
    other_tokens = tokenize(column.filter(pc.invert(is_ascii))).flatten()
    for tokens in (tokenize_ascii(column.filter(is_ascii))[1], other_tokens):
        value_counts = tokens.value_counts()
        yield pa.table({"word": value_counts.field("values"), "times": value_counts.field("counts")})


def _merge_counts(count_tables: Sequence[pa.Table]) -> pa.Table:
    summed_counts = pa.concat_tables(count_tables).group_by("word").aggregate([("times", "sum")])
    return pa.table({"word": summed_counts["word"], "times": summed_counts["times_sum"].cast(pa.int64())})


def _write_tokens(store: Store, table: Table, uuid: str, token_counts: pa.Table) -> None:
    from lance.file import LanceFileWriter

    file_uri = store.root.uri_of(tokens_file(table, uuid))
    writer_options: dict[str, Any] = {"version": LANCE_FILE_VERSION, "storage_options": store.options}
    with LanceFileWriter(file_uri, token_counts.schema, **writer_options) as writer:
        for batch in token_counts.to_batches():
            writer.write_batch(batch)


def tokens_file(table: Table, uuid: str) -> str:
    """Return the root-relative name of the token file for a segment."""
    return f"{table.location}/_indices/{uuid}/{TOKENS_FILE}"


def read_tokens(store: Store, table: Table, segment: TextSegment) -> pa.Table | None:
    """Return the tokens in a segment with their counts; if they cannot be read, warn and return None."""
    from lance.file import LanceFileReader

    file_uri = store.root.uri_of(tokens_file(table, segment.uuid))
    try:
        with panics_as_errors():
            reader = LanceFileReader(file_uri, storage_options=store.options)
            return reader.read_all().to_table()
    except (*SCAN_FAILURES, ValueError):
        warn_unreadable_index(table)
        return None


def candidate_rows(table: Table, column: str, tokens: Sequence[str]) -> RowIdArray | None:
    """Return the row ids of all indexed rows that contain one of these tokens, and possibly of other indexed rows.

    The row ids are sorted. The result is None if the index cannot be read.
    """
    from lance.query import MatchQuery

    if not tokens:
        return np.empty(0, np.int64)
    scanner = table.dataset.scanner(
        columns=["_score"], full_text_query=MatchQuery(" ".join(tokens), column), with_row_id=True, fast_search=True
    )
    index_rows = query_index(table, scanner)
    if index_rows is None:
        return None
    return np.unique(row_id_array(index_rows))


def unindexed_tokens(tokens: pa.Array) -> Iterator[str]:
    """Yield the tokens that an index may fail to find even in rows that it covers."""
    yield from tokens.filter(pc.invert(pc.match_substring_regex(tokens, INDEXED_CHARACTERS))).to_pylist()
