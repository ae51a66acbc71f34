"""Rows whose texts match a query, found by a full-text index that proposes candidates.

An index lists the terms of its texts. The terms that match a query are selected here by the same
analysis that is used without an index, and every row with such a term is tested; rows that no
index covers are read. So the result never depends on what an index covers.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.lang.query import plan
from omnigraph.storage import texts
from omnigraph.storage.fragments import fragment_ids, fragment_sizes, read_fragments
from omnigraph.storage.scan import row_id_array, take
from omnigraph.storage.table import Table

from .cache import root_name
from .context import Context
from .evaluate import TableSource, is_constant, mask
from .fetch import needs
from .neighbours import caches_of
from .push import push
from .rows import Ids
from .stem import openings
from .text import DEFAULT_EDITS, Tokens, analyse, near, token_of, tokenize

FEW = 1 << 12  # tables up to this many rows are simply read
_SHARE = 8  # an index must exclude all but one row in this many to be worth using
_BESIDE = 1 << 10  # maximum candidates if storage also has another filter to apply
_MOST = 256  # terms in one lookup


@dataclass(frozen=True, slots=True, eq=False)
class Question:
    """An index lookup: a matching text has at least one of these terms."""

    index: str
    column: str
    words: tuple[str, ...]
    held: frozenset[int]  # fragments that the index covers
    most: int  # upper bound of proposed rows


def question(
    context: Context, key: str, filters: Sequence[plan.Predicate], *, pushed: bool
) -> Question | None:
    """Return the lookup with the fewest candidates; None if another scan is better."""
    if context.count(key) <= FEW:
        return None
    searches = [one for one in filters if isinstance(one, plan.TextSearch)]
    asked = (_question(context, key, search) for search in searches)
    known = (each for each in asked if each is not None)
    found = min(known, key=lambda each: each.most, default=None)
    if found is None or (pushed and found.most > _BESIDE):
        return None
    return found


def fitting_rows(
    context: Context, key: str, filters: Sequence[plan.Predicate], asked: Question
) -> Ids | None:
    """Return the row ids that pass all filters, in order; None if the index is unreadable."""
    table = context.table(key)
    columns = sorted({name for _, name in needs(*filters)})
    context.meter.charge(asked.most * 8 * (1 + 2 * len(columns)))
    proposed = texts.candidates(table, asked.column, asked.words)
    if proposed is None:
        return None
    rows = take(table, proposed, columns)
    found = [proposed[_fits(context, rows, filters)]] if len(proposed) else []
    left = sorted(set(fragment_ids(table)) - asked.held)
    found += _read(context, table, left, columns, filters)
    return np.unique(np.concatenate(found)) if found else np.empty(0, np.int64)


def _read(
    context: Context,
    table: Table,
    fragments: Sequence[int],
    columns: Sequence[str],
    filters: Sequence[plan.Predicate],
) -> Iterable[Ids]:
    """Yield the matching rows of fragments that no index covers."""
    if not fragments:
        return
    pushed = [push(table.schema, one, context.constant) for one in filters]
    known = [expression for expression in pushed if expression is not None]
    where: Any = None
    for expression in known:
        where = expression if where is None else where & expression
    for batch in read_fragments(table, fragments, columns, where, places=True):
        context.meter.check()
        rows = pa.Table.from_batches([batch])
        yield row_id_array(rows)[_fits(context, rows, filters)]


def _fits(context: Context, rows: pa.Table, filters: Sequence[plan.Predicate]) -> Any:
    source = TableSource(rows, context.params)
    return np.logical_and.reduce([mask(source, one) for one in filters])


def _question(context: Context, key: str, search: plan.TextSearch) -> Question | None:
    table, column = context.table(key), search.field.name
    query = context.constant(search.query) if is_constant(search.query) else None
    wanted = frozenset(tokenize(query)) if query is not None else None
    parts = texts.text_segments(table, column) if wanted else []
    if not wanted or not parts:
        return None
    read = [_listed(context, table, segment) for segment in parts]
    lists = [terms for terms in read if terms is not None]
    if len(lists) < len(parts):
        return None
    held = frozenset[int]().union(*(segment.fragments for segment in parts))
    sizes = fragment_sizes(table)
    enough = sum(sizes.get(fragment, 0) for fragment in held) // _SHARE
    chosen = _chosen(context, search, wanted, lists)
    if chosen is None or chosen.most > enough:
        return None
    return Question(parts[0].name, column, chosen.words, held, chosen.most)


@dataclass(frozen=True, slots=True)
class _Chosen:
    """Index terms, and an upper bound of the rows that contain them."""

    words: tuple[str, ...]
    most: int


def _chosen(
    context: Context, search: plan.TextSearch, wanted: frozenset[str], lists: Sequence["WordList"]
) -> _Chosen | None:
    """Select the terms to look up; None if there are too many or the index cannot hold some."""
    if search.function == "match_text":  # all tokens must occur: look up the rarest one
        each = [_merged(lists, frozenset({token})) for token in sorted(wanted)]
        known = [selection for selection in each if selection is not None]
        return min(known, key=lambda selection: selection.most, default=None)
    if search.function == "fuzzy":
        edits = context.constant(search.max_edits) if search.max_edits is not None else None
        edits = DEFAULT_EDITS if edits is None else edits
        every = {token for terms in lists for token in terms.every_token()}
        wanted = near(every, wanted, edits)
    return _merged(lists, wanted)


def _merged(lists: Sequence["WordList"], wanted: frozenset[str]) -> _Chosen | None:
    found = [terms.meaning(wanted) for terms in lists]
    words = pa.concat_arrays([words for words, _ in found]).unique()
    if len(words) > _MOST or next(texts.unseen(words), None) is not None:
        return None
    return _Chosen(tuple(words.to_pylist()), sum(times for _, times in found))


@dataclass(slots=True, eq=False)
class WordList:
    """The terms of a segment; an ASCII term is a single word, others may split into several."""

    plain: pa.Array
    plain_times: pa.Array
    other: pa.Array
    other_times: pa.Array
    analysed: Tokens
    stems: tuple[str, ...] = field(default=())

    def meaning(self, wanted: frozenset[str]) -> tuple[pa.Array, int]:
        """Return the terms that contain a query token, and how often they occur."""
        plain = pa.array(self._plain(wanted), pa.int64())
        hits = self.analysed.owners[self.analysed.numbers(wanted)]
        other = pa.array(np.unique(hits))
        words = pa.concat_arrays([self.plain.take(plain), self.other.take(other)])
        times = pa.concat_arrays([self.plain_times.take(plain), self.other_times.take(other)])
        return words, int(pc.sum(times).as_py() or 0)

    def _plain(self, wanted: frozenset[str]) -> list[int]:
        if self.stems:
            return [at for at, stem in enumerate(self.stems) if stem in wanted]
        begins = {start for token in wanted if token.isascii() for start in openings(token)}
        found: list[int] = []
        for start in begins:
            near_by = np.flatnonzero(pc.starts_with(self.plain, start).to_numpy(False))
            words = self.plain.take(pa.array(near_by)).to_pylist()
            found += [
                int(at) for at, word in zip(near_by, words, strict=True) if token_of(word) in wanted
            ]
        return sorted(set(found))

    def every_token(self) -> Iterable[str]:
        """Yield the tokens of all terms, each at least once."""
        if not self.stems:
            self.stems = tuple(map(token_of, self.plain.to_pylist()))
        yield from (one for one in self.stems if one)
        yield from self.analysed.words

    @property
    def nbytes(self) -> int:
        """Approximate bytes in memory, including what is computed later."""
        held = (self.plain, self.plain_times, self.other, self.other_times)
        return sum(int(one.nbytes) for one in held) + 64 * (len(self.plain) + len(self.other))


def _listed(context: Context, table: Table, segment: texts.Segment) -> WordList | None:
    """Return the terms of a segment, read once: a segment never changes."""
    store, caches = context.snapshot.store, caches_of(context)
    place = ("words", root_name(store), table.location, segment.uuid)
    held: WordList | None = caches.memory.get(place)
    if held is None:
        context.meter.enter()  # must precede a lock that other threads may wait for
        held = caches.memory.make(
            place, lambda: _made(texts.read_words(store, table, segment)), lambda one: one.nbytes
        )
    return held


def _made(words: pa.Table | None) -> WordList | None:
    if words is None:
        return None
    names, times = words["word"].combine_chunks(), words["times"].combine_chunks()
    plain = pc.match_substring_regex(names, "^[a-z0-9]+$")
    other = names.filter(pc.invert(plain))
    return WordList(
        names.filter(plain),
        times.filter(plain),
        other,
        times.filter(pc.invert(plain)),
        analyse(other),
    )
