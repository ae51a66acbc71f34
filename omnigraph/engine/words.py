"""Rows whose texts fit a query, by a full-text index: it proposes, and the texts decide.

An index lists the words of its texts. Those that mean what a query asks for are chosen here, by the
same analysis that decides without an index, and every row that has one of them is looked at; rows
that no index covers are read. So an answer never depends on what an index covers.
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

FEW = 1 << 12  # rows that are simply read
_SHARE = 8  # an index that proposes more than one row in so many is no help
_BESIDE = 1 << 10  # rows that it may propose when storage has another condition to go by
_MOST = 256  # words in one question


@dataclass(frozen=True, slots=True, eq=False)
class Question:
    """What an index is asked: words, of which a text that fits has at least one."""

    index: str
    column: str
    words: tuple[str, ...]
    held: frozenset[int]  # the fragments that it covers
    most: int  # rows that it can propose


def question(
    context: Context, key: str, filters: Sequence[plan.Predicate], *, pushed: bool
) -> Question | None:
    """The question that proposes the fewest rows; None when rows are better found otherwise."""
    if context.count(key) <= FEW:
        return None
    searches = [one for one in filters if isinstance(one, plan.TextSearch)]
    asked = (_question(context, key, one) for one in searches)
    found = min((one for one in asked if one is not None), key=lambda one: one.most, default=None)
    if found is None or (pushed and found.most > _BESIDE):
        return None
    return found


def fitting_rows(
    context: Context, key: str, filters: Sequence[plan.Predicate], asked: Question
) -> Ids | None:
    """The row ids that pass all filters, in order; None when the index cannot be read."""
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
    """The rows of fragments that no index covers."""
    if not fragments:
        return
    pushed = [push(table.schema, one, context.constant) for one in filters]
    known = [one for one in pushed if one is not None]
    where: Any = None
    for one in known:
        where = one if where is None else where & one
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
    read = [_listed(context, table, one) for one in parts]
    lists = [one for one in read if one is not None]
    if len(lists) < len(parts):
        return None
    held = frozenset[int]().union(*(one.fragments for one in parts))
    sizes = fragment_sizes(table)
    enough = sum(sizes.get(one, 0) for one in held) // _SHARE
    chosen = _chosen(context, search, wanted, lists)
    if chosen is None or chosen.most > enough:
        return None
    return Question(parts[0].name, column, chosen.words, held, chosen.most)


@dataclass(frozen=True, slots=True)
class _Chosen:
    """Words, and in how many rows they can stand."""

    words: tuple[str, ...]
    most: int


def _chosen(
    context: Context, search: plan.TextSearch, wanted: frozenset[str], lists: Sequence["WordList"]
) -> _Chosen | None:
    """The words to ask for; None when there are too many, or some that an index does not see."""
    if search.function == "match_text":  # all must stand there: the rarest tells
        each = [_merged(lists, frozenset({one})) for one in sorted(wanted)]
        known = [one for one in each if one is not None]
        return min(known, key=lambda one: one.most, default=None)
    if search.function == "fuzzy":
        edits = context.constant(search.max_edits) if search.max_edits is not None else None
        edits = DEFAULT_EDITS if edits is None else edits
        every = {word for one in lists for word in one.every_token()}
        wanted = near(every, wanted, edits)
    return _merged(lists, wanted)


def _merged(lists: Sequence["WordList"], wanted: frozenset[str]) -> _Chosen | None:
    found = [one.meaning(wanted) for one in lists]
    words = pa.concat_arrays([one for one, _ in found]).unique()
    if len(words) > _MOST or next(texts.unseen(words), None) is not None:
        return None
    return _Chosen(tuple(words.to_pylist()), sum(times for _, times in found))


@dataclass(slots=True, eq=False)
class WordList:
    """The words of a segment. Plain ones are a single piece of ASCII, others may be several."""

    plain: pa.Array
    plain_times: pa.Array
    other: pa.Array
    other_times: pa.Array
    analysed: Tokens
    stems: tuple[str, ...] = field(default=())

    def meaning(self, wanted: frozenset[str]) -> tuple[pa.Array, int]:
        """The words that have a token that is wanted, and how often these stand in the texts."""
        plain = pa.array(self._plain(wanted), pa.int64())
        hits = self.analysed.owners[self.analysed.numbers(wanted)]
        other = pa.array(np.unique(hits))
        words = pa.concat_arrays([self.plain.take(plain), self.other.take(other)])
        times = pa.concat_arrays([self.plain_times.take(plain), self.other_times.take(other)])
        return words, int(pc.sum(times).as_py() or 0)

    def _plain(self, wanted: frozenset[str]) -> list[int]:
        if self.stems:
            return [at for at, one in enumerate(self.stems) if one in wanted]
        begins = {start for one in wanted if one.isascii() for start in openings(one)}
        found: list[int] = []
        for start in begins:
            near_by = np.flatnonzero(pc.starts_with(self.plain, start).to_numpy(False))
            words = self.plain.take(pa.array(near_by)).to_pylist()
            found += [
                int(at) for at, word in zip(near_by, words, strict=True) if token_of(word) in wanted
            ]
        return sorted(set(found))

    def every_token(self) -> Iterable[str]:
        """All tokens of all words, each at least once."""
        if not self.stems:
            self.stems = tuple(map(token_of, self.plain.to_pylist()))
        yield from (one for one in self.stems if one)
        yield from self.analysed.words

    @property
    def nbytes(self) -> int:
        """Bytes in memory, about, with all that is made later."""
        held = (self.plain, self.plain_times, self.other, self.other_times)
        return sum(int(one.nbytes) for one in held) + 64 * (len(self.plain) + len(self.other))


def _listed(context: Context, table: Table, segment: texts.Segment) -> WordList | None:
    """The words of a segment, read once: a segment never changes."""
    store, caches = context.snapshot.store, caches_of(context)
    place = ("words", root_name(store), table.location, segment.uuid)
    held: WordList | None = caches.memory.get(place)
    if held is None:
        context.meter.enter()  # before a lock that others may wait for
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
