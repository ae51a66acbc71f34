"""Single-column indexes: list them, determine their coverage, and stage new segments as a change.

A BTREE index supports equality, range and prefix filters, an NGRAM index supports substring filters, and an IVF index
supports nearest-neighbor searches. A column has at most one of these indexes, because Lance evaluates filters with the
first index that it finds. A column may also have a full-text index (INVERTED) under a separate key (`text_index_key`).
An index is a set of immutable segments, each of which covers some fragments. Fragments without coverage are scanned, so
results never depend on coverage.
"""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import field, replace
from functools import partial
from typing import Any

import pyarrow.compute as pc
from lance import LanceOperation
from lance.dataset import Index

from omnigraph.records.frozen import record

from .fragments import fragment_row_counts, list_fragment_ids
from .store import Store
from .table import StagedChange, Table, fragment_fingerprint, index_segments, schema_fingerprint
from .text.fulltext import TEXT_INDEX_KIND as WORDS
from .text.fulltext import index_column, text_index_key, tokens_file, write_text_index
from .vector_index import (
    METRICS_BY_KIND,
    NOT_INDEXABLE,
    find_indexable,
    is_first_indexable,
    is_vector_kind,
    partition_count,
)

IndexSegment = Index  # re-exported for callers that must not import `lance`
_MAX_SEGMENTS = 8  # an index with this many segments is merged into a single segment
_CONCURRENT_PARTS = 4  # number of segments built in parallel
_KINDS_BY_LANCE_TYPE = {"BTree": "BTREE", "NGram": "NGRAM", "Inverted": WORDS}


def index_coverage(table: Table) -> dict[str, frozenset[int]]:
    """Return the fragments that each index covers, by index key."""
    fragments_by_key: dict[str, frozenset[int]] = {}
    for index in _own_indexes(table):
        segment_fragments = (frozenset(segment.fragment_ids) for segment in index.segments)
        fragments_by_key[_index_key(index)] = frozenset().union(*segment_fragments)
    return fragments_by_key


def count_uncovered_rows(table: Table, index_key: str) -> int:
    """Return the number of rows that a lookup has to scan because no segment of the index covers them."""
    covered_fragments = index_coverage(table).get(index_key, frozenset())
    fragment_rows = fragment_row_counts(table).items()
    return sum(row_count for fragment_id, row_count in fragment_rows if fragment_id not in covered_fragments)


def kinds_by_index_key(table: Table) -> dict[str, str]:
    """Return the kind of each index, by index key."""
    return {_index_key(index): _index_kind(index) for index in _own_indexes(table)}


def list_segments(table: Table) -> list[tuple[str, str, str]]:
    """Return the segments of all indexes as (UUID, index key, kind).

    For an index created by another tool, the kind is the type name that Lance uses.
    """
    return [
        (
            str(segment.uuid),
            _index_key(index) if index.field_names else index.name,
            _index_kind(index) or index.index_type,
        )
        for index in table.dataset.describe_indices()
        for segment in index.segments
    ]


def indexes_used_by(table: Table, filter_expression: Any) -> list[str]:
    """Return the names of the indexes used by a scan with this filter."""
    query_plan: str = table.dataset.scanner(columns=["id"], filter=filter_expression).explain_plan()
    return list(dict.fromkeys(re.findall(r"\]@(\w+)\(", query_plan)))


def _own_indexes(table: Table) -> list[Any]:
    all_indexes = table.dataset.describe_indices()
    return [index for index in all_indexes if _index_kind(index) and len(index.field_names) == 1]


def _index_key(index: Any) -> str:
    """Return the key of an index, which is the text index key for a full-text index and the column name otherwise."""
    column_name: str = index.field_names[0]
    return text_index_key(column_name) if _index_kind(index) == WORDS else column_name


def _index_kind(index: Any) -> str:
    """Return the kind of an index, or "" for an index created by another tool.

    The name of a vector index includes its metric.
    """
    if index.index_type != "IVF_FLAT":
        return _KINDS_BY_LANCE_TYPE.get(index.index_type, "")
    metric_match = re.search(r"_(ivf_(?:cosine|l2|dot))(?:_\d+)?$", index.name)
    return metric_match[1].upper() if metric_match else ""


@record
class SegmentBuild:
    """One segment to build: its index, and the fragments that it will cover."""

    index_key: str
    kind: str
    index_name: str
    fragment_ids: tuple[int, ...]


@record
class IndexPlan:
    """The segments to build for a table, and the segments that they replace, by index key.

    The old segments for `rebuilt_keys` are removed even if there are no rows to index.
    """

    builds: tuple[SegmentBuild, ...] = ()
    replaced_segments: Mapping[str, Sequence[Index]] = field(default_factory=dict)
    rebuilt_keys: frozenset[str] = frozenset()


def stage_indexes(
    store: Store, table: Table, kinds_by_key: Mapping[str, str], *, rebuild: bool = False
) -> StagedChange | None:
    """Build indexes of these kinds over all uncovered fragments, or return None if nothing changes.

    If `rebuild` is true, the indexes are built over all fragments and replace the existing indexes. An existing index
    of a different kind is always replaced.
    """
    plan = plan_indexes(table, kinds_by_key, rebuilt_keys=kinds_by_key if rebuild else ())
    return stage_built_segments(
        table, plan, [build_segment(store, table, segment_build) for segment_build in plan.builds]
    )


def plan_indexes(
    table: Table,
    kinds_by_key: Mapping[str, str],
    *,
    rebuilt_keys: Collection[str] = (),
    part_rows: int | None = None,
) -> IndexPlan:
    """Plan the segments that `stage_indexes` builds.

    With `part_rows`, a large BTREE index is split into several segments. The indexes in `rebuilt_keys` are built over
    all fragments, or removed if they are not in `kinds_by_key`. Lance filters with the first index on a column.
    Full-text indexes are therefore built last, and a full-text index is rebuilt if it would otherwise precede another
    index on the same column.
    """
    fragment_rows = {fragment.fragment_id: fragment.physical_rows for fragment in table.dataset.get_fragments()}
    covered_by_key, present_kinds = index_coverage(table), kinds_by_index_key(table)
    new_builds: list[SegmentBuild] = []
    replaced_segments: dict[str, Sequence[Index]] = {}
    for index_key, wanted_kind in sorted(kinds_by_key.items(), key=lambda key_and_kind: key_and_kind[1] == WORDS):
        must_rebuild = index_key in rebuilt_keys or present_kinds.get(index_key, wanted_kind) != wanted_kind
        if wanted_kind == WORDS and index_key in covered_by_key:
            column_name = index_column(index_key)
            must_rebuild |= column_name in replaced_segments and (
                column_name not in present_kinds or bool(replaced_segments[column_name])
            )
            must_rebuild |= _is_shadowed_by_text_index(table, column_name, present_kinds.get(column_name))
        uncovered_ids = [
            fragment_id
            for fragment_id in fragment_rows
            if must_rebuild or fragment_id not in covered_by_key.get(index_key, ())
        ]
        if not uncovered_ids and index_key not in rebuilt_keys:
            continue
        segments = _segments_of_key(table, index_key)
        empty_segments = [segment for segment in segments if fragment_rows.keys().isdisjoint(segment.fragment_ids)]
        replace_all = must_rebuild or len(segments) - len(empty_segments) >= _MAX_SEGMENTS
        chosen_ids = list(fragment_rows) if replace_all else uncovered_ids
        index_name = _index_name(table, index_key, wanted_kind)
        fragment_groups = _group_fragments(chosen_ids, fragment_rows, part_rows if wanted_kind == "BTREE" else None)
        new_builds += [
            SegmentBuild(index_key, wanted_kind, index_name, tuple(group)) for group in fragment_groups if group
        ]
        replaced_segments[index_key] = segments if replace_all else empty_segments
    for index_key in sorted(present_kinds.keys() & set(rebuilt_keys) - kinds_by_key.keys()):  # no longer declared
        replaced_segments[index_key] = _segments_of_key(table, index_key)
    return IndexPlan(tuple(new_builds), replaced_segments, frozenset(rebuilt_keys))


def _is_shadowed_by_text_index(table: Table, column: str, kind: str | None) -> bool:
    """Return whether the full-text index on a column prevents Lance from filtering with the column's other index."""
    probe_filters = {"BTREE": pc.field(column) == "any", "NGRAM": pc.match_substring(pc.field(column), "any")}
    return kind in probe_filters and not indexes_used_by(table, probe_filters[kind])


def stage_built_segments(table: Table, plan: IndexPlan, built_segments: Sequence[Index | None]) -> StagedChange | None:
    """Stage the segments built for a plan as one change, or return None if nothing changes."""
    built_pairs = [
        (segment_build.index_key, index)
        for segment_build, index in zip(plan.builds, built_segments, strict=True)
        if index
    ]
    built_keys = {index_key for index_key, _ in built_pairs}
    removed_segments = [
        segment
        for index_key, segments in plan.replaced_segments.items()
        if index_key in plan.rebuilt_keys or index_key in built_keys
        for segment in segments
    ]
    return (
        stage_segments(table, [index for _, index in built_pairs], removed_segments)
        if built_keys or removed_segments
        else None
    )


def why_not_covered(table: Table, index_key: str, kind: str) -> str | None:
    """Return the reason why a vector index cannot cover the remaining rows, or None if there is no obstacle."""
    present_ids = list_fragment_ids(table)
    covered_ids = index_coverage(table).get(index_key, frozenset())
    uncovered_ids = [fragment_id for fragment_id in present_ids if fragment_id not in covered_ids]
    is_indexable = is_first_indexable(table, index_key, kind, uncovered_ids)
    if is_indexable is None:
        return None if covered_ids else "there are no vectors to index yet"
    return None if is_indexable else NOT_INDEXABLE


def count_buildable_rows(table: Table, index_key: str, kind: str) -> int:
    """Return the number of rows that the next build would add to an index."""
    covered_ids = index_coverage(table).get(index_key, frozenset())
    uncovered_ids = [fragment_id for fragment_id in list_fragment_ids(table) if fragment_id not in covered_ids]
    if is_vector_kind(kind) and not is_first_indexable(table, index_key, kind, uncovered_ids):
        return 0
    return count_uncovered_rows(table, index_key)


def _group_fragments(
    fragment_ids: Sequence[int], fragment_rows: Mapping[int, int], min_rows: int | None
) -> Iterator[Sequence[int]]:
    """Split fragments into a few groups with many rows each. One segment is built for each group."""
    if min_rows is None:
        yield fragment_ids
        return
    total_rows = sum(fragment_rows[fragment_id] for fragment_id in fragment_ids)
    group_rows = max(min_rows, -(-total_rows // _CONCURRENT_PARTS))
    group: list[int] = []
    for fragment_id in fragment_ids:
        group.append(fragment_id)
        if sum(fragment_rows[member_id] for member_id in group) >= group_rows:
            yield group
            group = []
    if group:
        yield group


def stage_index_extension(
    store: Store, table: Table, kinds_by_key: Mapping[str, str], fragment_ids: Sequence[int]
) -> StagedChange | None:
    """Build indexes of these kinds over the given fragments, skipping fragments that are already covered.

    Other fragments stay uncovered. If an index is extended, its segments whose fragments no longer exist are removed,
    unless the column also has a full-text index. If a column has an index of a different kind, that index is left
    unchanged.
    """
    covered_by_key, present_kinds = index_coverage(table), kinds_by_index_key(table)
    new_segments: list[Index] = []
    removed_segments: list[Index] = []
    present_ids = {fragment.fragment_id for fragment in table.dataset.get_fragments()}
    for index_key, wanted_kind in kinds_by_key.items():
        uncovered_ids = [
            fragment_id for fragment_id in fragment_ids if fragment_id not in covered_by_key.get(index_key, ())
        ]
        if uncovered_ids and present_kinds.get(index_key, wanted_kind) == wanted_kind:
            index_name = _index_name(table, index_key, wanted_kind)
            new_segments.append(
                _write_segment(store, table, SegmentBuild(index_key, wanted_kind, index_name, tuple(uncovered_ids)), {})
            )
            if text_index_key(index_key) in present_kinds:
                continue  # removing segments would move the full-text index ahead of this index
            segments = _segments_of_key(table, index_key)
            removed_segments += [segment for segment in segments if present_ids.isdisjoint(segment.fragment_ids)]
    return stage_segments(table, new_segments, removed_segments) if new_segments else None


def stage_segments(table: Table, new_segments: Sequence[Index], removed_segments: Sequence[Index]) -> StagedChange:
    """Stage added and removed segments as one change to the table."""
    covered_ids = {fragment_id for segment in new_segments for fragment_id in segment.fragment_ids}
    all_fragments = table.dataset.get_fragments()
    covered_metadata = [fragment.metadata for fragment in all_fragments if fragment.fragment_id in covered_ids]
    return StagedChange(
        table.location,
        LanceOperation.CreateIndex(list(new_segments), list(removed_segments)),
        schema_fingerprint(table),
        tuple(fragment_fingerprint(metadata) for metadata in covered_metadata),
        written_files=_segment_files(table, new_segments),
    )


def build_segment(store: Store, table: Table, segment_build: SegmentBuild) -> Index | None:
    """Write a segment that no version references yet.

    The result can be passed to another process. A vector segment covers only those requested fragments that can be
    indexed. The result is None if there are no vectors to index.
    """
    if segment_build.kind == WORDS:
        return write_text_index(
            store, table, index_column(segment_build.index_key), segment_build.index_name, segment_build.fragment_ids
        )
    if not is_vector_kind(segment_build.kind):
        return _write_segment(store, table, segment_build, {})
    indexable = find_indexable(table, segment_build.index_key, segment_build.kind, segment_build.fragment_ids)
    if not indexable.vector_count:
        return None
    partitions = partition_count(indexable.vector_count, table.schema.field(segment_build.index_key).type.list_size)
    index_options = {"metric": METRICS_BY_KIND[segment_build.kind], "num_partitions": partitions}
    return _write_segment(
        store, table, replace(segment_build, kind="IVF_FLAT", fragment_ids=indexable.fragment_ids), index_options
    )


def _write_segment(store: Store, table: Table, segment_build: SegmentBuild, index_options: Mapping[str, Any]) -> Index:
    action = partial(
        table.unshared_dataset().create_index_uncommitted,
        segment_build.index_key,
        segment_build.kind,
        name=segment_build.index_name,
        fragment_ids=list(segment_build.fragment_ids),
        replace=True,
        **index_options,
    )
    segment: Index = store.effects.run("index", table.location, action)
    return segment


def _index_name(table: Table, index_key: str, kind: str) -> str:
    """Return the name for an existing or new index. An index keeps its name when its column is renamed."""
    key_indexes = (index for index in _own_indexes(table) if _index_key(index) == index_key)
    current_name = next((index.name for index in key_indexes if _index_kind(index) == kind), None)
    used_names = {index.name for index in table.dataset.describe_indices()}
    index_key = index_column(index_key)
    default_name = f"{index_key}_{'fulltext' if kind == WORDS else kind.lower()}"
    field_id = next(
        lance_field.id() for lance_field in table.dataset.lance_schema.fields() if lance_field.name() == index_key
    )
    return current_name or (default_name if default_name not in used_names else f"{default_name}_{field_id}")


def _segments_of_key(table: Table, index_key: str) -> list[Index]:
    """Return the segments of the index with this key, in the form that Lance needs to remove them."""
    key_indexes = (index for index in _own_indexes(table) if _index_key(index) == index_key)
    return [segment for index in key_indexes for segment in index_segments(index)]


def _segment_files(table: Table, segments: Sequence[Index]) -> tuple[str, ...]:
    text_segments = (segment for segment in segments if "Inverted" in (segment.index_details or ("",))[0])
    return (
        *(
            f"{table.location}/_indices/{segment.uuid}/{segment_file.path}"
            for segment in segments
            for segment_file in segment.files or ()
        ),
        *(tokens_file(table, segment.uuid) for segment in text_segments),
    )
