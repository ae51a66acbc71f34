"""Single-column indexes: which exist, what they cover, and new segments as a staged change.

BTREE for equality, ranges and prefixes, NGRAM for substrings, IVF for nearest neighbors: one per
column, since Lance filters by the first index it finds. A full-text index (INVERTED) may exist in
addition, under a key of its own (`text_index_key`). An index is a set of segments, each over some
fragments. Fragments that none covers are scanned, so no result depends on coverage. Segments are
immutable.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import pyarrow.compute as pc
from lance import LanceOperation
from lance.dataset import Index

from .fragments import fragment_ids
from .store import Store
from .table import Staged, Table, field_digest, index_segments, mark_of
from .texts import KIND as WORDS
from .texts import column_of, text_slot, words_file, write_text_index
from .vectors import METRICS, UNFIT, first_fit, is_vector_kind, look_at, partitions_of

_SEGMENTS = 8  # per index; at this number they are merged into one
_PARTS = 4  # segments that are built at once
_KINDS = {"BTree": "BTREE", "NGram": "NGRAM", "Inverted": WORDS}


def covered(table: Table) -> dict[str, frozenset[int]]:
    """Return the fragments that each index covers, by index key."""
    found: dict[str, frozenset[int]] = {}
    for one in _indexes(table):
        held = (frozenset(segment.fragment_ids) for segment in one.segments)
        found[_slot(one)] = frozenset().union(*held)
    return found


def kinds_of(table: Table) -> dict[str, str]:
    """Return the kind of each index, by index key."""
    return {_slot(one): _kind(one) for one in _indexes(table)}


def used_by(table: Table, where: Any) -> list[str]:
    """Return the names of the indexes that a scan with this filter uses."""
    text: str = table.dataset.scanner(columns=["id"], filter=where).explain_plan()
    return list(dict.fromkeys(re.findall(r"\]@(\w+)\(", text)))


def _indexes(table: Table) -> list[Any]:
    every = table.dataset.describe_indices()
    return [one for one in every if _kind(one) and len(one.field_names) == 1]


def _slot(index: Any) -> str:
    """Return the key of an index: its column, or the text index key of its column."""
    name: str = index.field_names[0]
    return text_slot(name) if _kind(index) == WORDS else name


def _kind(index: Any) -> str:
    """Return the kind of an index, "" if it is not ours; the metric of vectors is in its name."""
    if index.index_type != "IVF_FLAT":
        return _KINDS.get(index.index_type, "")
    found = re.search(r"_(ivf_(?:cosine|l2|dot))(?:_\d+)?$", index.name)
    return found[1].upper() if found else ""


@dataclass(frozen=True, slots=True)
class Build:
    """One segment to build: an index, by its key, over some fragments."""

    column: str
    kind: str
    name: str
    fragments: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Builds:
    """All segments that a table needs, and by key those that they replace.

    With `rebuild` the old segments are removed even if there is no data to build an index from.
    """

    new: tuple[Build, ...] = ()
    old: Mapping[str, Sequence[Index]] = field(default_factory=dict)
    anew: bool = False


def stage_indexes(
    store: Store, table: Table, columns: Mapping[str, str], *, anew: bool = False
) -> Staged | None:
    """Build indexes of these kinds over every uncovered fragment; None if all are covered.

    `rebuild` builds them over all fragments and replaces the present ones. So does a column whose
    index is of another kind.
    """
    plan = plan_indexes(table, columns, anew=anew)
    return finished(table, plan, [build(store, table, one) for one in plan.new])


def plan_indexes(
    table: Table, columns: Mapping[str, str], *, anew: bool = False, part_rows: int | None = None
) -> Builds:
    """Plan what `stage_indexes` builds. With `part_rows` a large BTREE becomes several segments.

    Full-text indexes come last, and are rebuilt wherever they would precede the other index of
    their column: Lance filters by the first index of a column.
    """
    sizes = {
        fragment.fragment_id: fragment.physical_rows for fragment in table.dataset.get_fragments()
    }
    known, kinds = covered(table), kinds_of(table)
    new: list[Build] = []
    old: dict[str, Sequence[Index]] = {}
    for column, kind in sorted(columns.items(), key=lambda pair: pair[1] == WORDS):
        other = anew or kinds.get(column, kind) != kind
        if kind == WORDS and column in known:
            first = column_of(column)
            other |= first in old and (first not in kinds or bool(old[first]))
            other |= _is_hidden(table, first, kinds.get(first))
        left = [number for number in sizes if other or number not in known.get(column, ())]
        if not left and not anew:
            continue
        segments = _segments(table, column)
        empty = [segment for segment in segments if sizes.keys().isdisjoint(segment.fragment_ids)]
        together = other or len(segments) - len(empty) >= _SEGMENTS
        chosen, name = list(sizes) if together else left, _name(table, column, kind)
        parts = _parts(chosen, sizes, part_rows if kind == "BTREE" else None)
        new += [Build(column, kind, name, tuple(group)) for group in parts if group]
        old[column] = segments if together else empty
    return Builds(tuple(new), old, anew)


def _is_hidden(table: Table, column: str, kind: str | None) -> bool:
    """Return whether Lance picks the full-text index for filters, which cannot answer them."""
    probe = {
        "BTREE": pc.field(column) == "any",
        "NGRAM": pc.match_substring(pc.field(column), "any"),
    }
    return kind in probe and not used_by(table, probe[kind])


def finished(table: Table, plan: Builds, made: Sequence[Index | None]) -> Staged | None:
    """Stage the segments that were built for a plan as one change; None when nothing changes."""
    pairs = [(one.column, index) for one, index in zip(plan.new, made, strict=True) if index]
    built = {column for column, _ in pairs}
    old = [
        segment for name, some in plan.old.items() if plan.anew or name in built for segment in some
    ]
    return created(table, [index for _, index in pairs], old) if built or old else None


def why_waiting(table: Table, column: str, kind: str) -> str | None:
    """Return why a vector index that was built does not cover all rows; None if it does."""
    present, held = fragment_ids(table), covered(table).get(column, frozenset())
    left = [one for one in present if one not in held]
    fit = first_fit(table, column, kind, left)
    if fit is None:
        return None if held else "there are no vectors yet to build it from"
    return None if fit else UNFIT


def _parts(
    fragments: Sequence[int], sizes: Mapping[int, int], rows: int | None
) -> Iterator[Sequence[int]]:
    """Split fragments into a few groups with many rows each; a group becomes a segment."""
    if rows is None:
        yield fragments
        return
    total = sum(sizes[one] for one in fragments)
    most = max(rows, -(-total // _PARTS))
    group: list[int] = []
    for one in fragments:
        group.append(one)
        if sum(sizes[held] for held in group) >= most:
            yield group
            group = []
    if group:
        yield group


def extended(
    store: Store, table: Table, columns: Mapping[str, str], fragments: Sequence[int]
) -> Staged | None:
    """Build indexes of these kinds over those of the given fragments that are not covered.

    Segments whose fragments are all gone are removed. Other fragments stay uncovered, and a column
    whose index is of another kind is left alone.
    """
    known, kinds = covered(table), kinds_of(table)
    new: list[Index] = []
    old: list[Index] = []
    present = {fragment.fragment_id for fragment in table.dataset.get_fragments()}
    for column, kind in columns.items():
        left = [number for number in fragments if number not in known.get(column, ())]
        if left and kinds.get(column, kind) == kind:
            name = _name(table, column, kind)
            new.append(_written(store, table, Build(column, kind, name, tuple(left)), {}))
            if text_slot(column) in kinds:
                continue  # removing segments would let the full-text index precede this one
            segments = _segments(table, column)
            old += [segment for segment in segments if present.isdisjoint(segment.fragment_ids)]
    return created(table, new, old) if new else None


def created(table: Table, new: Sequence[Index], old: Sequence[Index]) -> Staged:
    """Stage new and removed segments as one change of the table they were planned for."""
    fresh = {number for one in new for number in one.fragment_ids}
    every = table.dataset.get_fragments()
    fragments = [fragment.metadata for fragment in every if fragment.fragment_id in fresh]
    return Staged(
        table.location,
        LanceOperation.CreateIndex(list(new), list(old)),
        field_digest(table),
        tuple(mark_of(metadata) for metadata in fragments),
        files=_files(table, new),
    )


def build(store: Store, table: Table, one: Build) -> Index | None:
    """Write a segment. No version names it yet; it may be passed to another process.

    A vector segment covers those of its fragments that it can index; None if there are no vectors.
    """
    if one.kind == WORDS:
        return write_text_index(store, table, column_of(one.column), one.name, one.fragments)
    if not is_vector_kind(one.kind):
        return _written(store, table, one, {})
    seen = look_at(table, one.column, one.kind, one.fragments)
    if not seen.count:
        return None
    parts = partitions_of(seen.count, table.schema.field(one.column).type.list_size)
    how = {"metric": METRICS[one.kind], "num_partitions": parts}
    return _written(store, table, replace(one, kind="IVF_FLAT", fragments=seen.fit), how)


def _written(store: Store, table: Table, one: Build, how: Mapping[str, Any]) -> Index:
    action = partial(
        table.dataset.create_index_uncommitted,
        one.column,
        one.kind,
        name=one.name,
        fragment_ids=list(one.fragments),
        replace=True,
        **how,
    )
    made: Index = store.effects.run("index", table.location, action)
    return made


def _name(table: Table, column: str, kind: str) -> str:
    """Return the name of an index; after a rename of its column an index keeps its name."""
    same = (one for one in _indexes(table) if _slot(one) == column)
    own = next((one.name for one in same if _kind(one) == kind), None)
    taken = {one.name for one in table.dataset.describe_indices()}
    column = column_of(column)
    plain = f"{column}_{'fulltext' if kind == WORDS else kind.lower()}"
    number = next(f.id() for f in table.dataset.lance_schema.fields() if f.name() == column)
    return own or (plain if plain not in taken else f"{plain}_{number}")


def _segments(table: Table, column: str) -> list[Index]:
    """Return the segments of the index with this key, as an operation that removes them needs."""
    own = (one for one in _indexes(table) if _slot(one) == column)
    return [segment for one in own for segment in index_segments(one)]


def _files(table: Table, made: Sequence[Index]) -> tuple[str, ...]:
    worded = (one for one in made if "Inverted" in (one.index_details or ("",))[0])
    return (
        *(
            f"{table.location}/_indices/{one.uuid}/{file.path}"
            for one in made
            for file in one.files or ()
        ),
        *(words_file(table, one.uuid) for one in worded),
    )
