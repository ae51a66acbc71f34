"""Full-text indexes: the tokens that texts contain, and the rows that contain given tokens.

An index finds tokens exactly as they appear in the texts, and a list of all tokens is stored beside
it. The caller decides which tokens are equivalent, so changing that makes no index wrong. A text is
split only where Lance splits it too, so that a query token is split as it was in its text. Results
are candidates: all rows that contain a token, and perhaps others.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from lance.dataset import Index

from .ascii import cut_plain
from .failures import unpanicked
from .fragments import read_fragments
from .layout import WORDS
from .lost_index import FAILURES, ask_alone, tell
from .scan import Ids, row_id_array
from .staging import FORMAT
from .store import Store
from .table import Table

KIND = "INVERTED"
# What Lance and the engine both split at. Where only one of them splits, a token stays whole here.
CUTS = r"[\p{P}\p{Z}\p{C}$+<=>^`|~]+"
SEEN = r"[\p{L}\p{N}]"  # a token without any of these may contain nothing that Lance indexes
_SLOT = "fulltext:"
_HOW: dict[str, Any] = {
    "base_tokenizer": "simple",
    "lower_case": True,
    "ascii_folding": True,
    "stem": False,
    "remove_stop_words": False,
    "max_token_length": None,
    "with_position": False,
}
_WIDTH = 1 << 20  # tokens that are collected before equal ones are merged


@dataclass(frozen=True, slots=True)
class Segment:
    """A segment of a full-text index, and the fragments it covers."""

    name: str
    uuid: str
    fragments: frozenset[int]


def text_slot(column: str) -> str:
    """Return the key of the full-text index of a column, next to the column's other index.

    >>> text_slot("body"), column_of("fulltext:body"), column_of("body")
    ('fulltext:body', 'body', 'body')
    """
    return _SLOT + column


def column_of(slot: str) -> str:
    """Return the column of an index key."""
    return slot.removeprefix(_SLOT)


def text_segments(table: Table, column: str) -> list[Segment]:
    """Return the segments of the full-text index of a column; an empty list if it has none."""
    return [
        Segment(one.name, str(part.uuid), frozenset(part.fragment_ids))
        for one in table.dataset.describe_indices()
        if one.index_type == "Inverted" and one.field_names == [column]
        for part in one.segments
    ]


def write_text_index(
    store: Store, table: Table, column: str, name: str, fragments: Sequence[int]
) -> Index:
    """Write a segment over some fragments, with its tokens. No version names it yet."""

    def write() -> Index:
        made = table.dataset.create_index_uncommitted(
            column, KIND, name=name, fragment_ids=list(fragments), replace=True, **_HOW
        )
        # Before the merge, Lance keeps the segment in a form that it cannot read.
        whole: Index = table.dataset.merge_existing_index_segments([made])
        _write_words(store, table, whole.uuid, words_of(table, column, fragments))
        return whole

    return store.effects.run("index", table.location, write)


def words_of(table: Table, column: str, fragments: Sequence[int]) -> pa.Table:
    """Return the tokens of the texts in some fragments, each with its number of occurrences."""
    held: list[pa.Table] = []
    for batch in read_fragments(table, fragments, [column]):
        held += _counted(batch.column(column))
        if sum(one.num_rows for one in held) > _WIDTH:
            held = [_together(held)]
    found = _together(held or list(_counted(pa.array([], pa.string()))))
    return found.filter(pc.not_equal(found["word"], "")).sort_by("word")


def cut(column: pa.Array) -> pa.Array:
    """Return the tokens of each text, some may be empty; lower case only as far as Lance agrees."""
    return pc.split_pattern_regex(pc.ascii_lower(column), CUTS)


def _counted(column: pa.Array) -> Iterator[pa.Table]:
    plain = pc.fill_null(pc.string_is_ascii(column), True)
    others = cut(column.filter(pc.invert(plain))).flatten()
    for one in (cut_plain(column.filter(plain))[1], others):
        found = one.value_counts()
        yield pa.table({"word": found.field("values"), "times": found.field("counts")})


def _together(parts: Sequence[pa.Table]) -> pa.Table:
    grouped = pa.concat_tables(parts).group_by("word").aggregate([("times", "sum")])
    return pa.table({"word": grouped["word"], "times": grouped["times_sum"].cast(pa.int64())})


def _write_words(store: Store, table: Table, uuid: str, words: pa.Table) -> None:
    from lance.file import LanceFileWriter

    path = store.root.at(words_file(table, uuid))
    how: dict[str, Any] = {"version": FORMAT, "storage_options": store.options}
    with LanceFileWriter(path, words.schema, **how) as writer:
        for batch in words.to_batches():
            writer.write_batch(batch)


def words_file(table: Table, uuid: str) -> str:
    """Return the root-relative name of the token file of a segment."""
    return f"{table.location}/_indices/{uuid}/{WORDS}"


def read_words(store: Store, table: Table, segment: Segment) -> pa.Table | None:
    """Return the tokens of a segment; None, with a warning, if they cannot be read."""
    from lance.file import LanceFileReader

    path = store.root.at(words_file(table, segment.uuid))
    try:
        with unpanicked():
            reader = LanceFileReader(path, storage_options=store.options)
            return reader.read_all().to_table()
    except (*FAILURES, ValueError):
        tell(table)
        return None


def candidates(table: Table, column: str, words: Sequence[str]) -> Ids | None:
    """Return the rows that contain one of these tokens by the index, and perhaps some others.

    Row ids are sorted. None if the index cannot be read. Rows that it does not cover are missing.
    """
    from lance.query import MatchQuery

    if not words:
        return np.empty(0, np.int64)
    scanner = table.dataset.scanner(
        columns=["_score"],
        full_text_query=MatchQuery(" ".join(words), column),
        with_row_id=True,
        fast_search=True,
    )
    found = ask_alone(table, scanner)
    if found is None:
        return None
    return np.unique(row_id_array(found))


def unseen(words: pa.Array) -> Iterator[str]:
    """Yield those tokens that an index may not find although it covers them."""
    yield from words.filter(pc.invert(pc.match_substring_regex(words, SEEN))).to_pylist()
