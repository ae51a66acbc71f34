"""Compact small fragments with a staged change that preserves the rows, their order and their row ids.

A compaction plan is a list of serialized tasks. Each task joins fragments or splits a fragment with too much text, and
can run in this process or in another one. The results of all tasks together form the change. Row versions, which record
when each row was created and last updated, are deliberately dropped. They are never read, and keeping them in every
later version would prevent a table that was built from single-row inserts from shrinking.
"""

import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa
from lance import FragmentMetadata, LanceOperation

from omnigraph.values import clock_and_ids

from .batch_sizes import is_overflow
from .blobs import is_blob_field
from .checksums import FileChecksum
from .failures import DamagedError, panics_as_errors
from .find_rows import read_blobs
from .fragment_sizes import estimate_text_bytes
from .fragments import read_fragments, write_fragment
from .large_blobs import blob_bytes_by_fragment, blob_columns, find_heavy_fragments, with_placeholders
from .pending_blobs import PendingBlobs
from .scan import ROW_ID
from .sizes import FRAGMENT_BYTES, FRAGMENT_ROWS
from .store import Store
from .table import StagedChange, Table, data_files, fragment_files, fragment_fingerprint, schema_fingerprint
from .table_fields import lance_columns
from .wide_rows import split_by_size

TARGET_ROWS = FRAGMENT_ROWS
_RESULT_SIDES = ("old", "new")
_MAX_BLOB_BYTES_IN_MEMORY = 32 << 20  # Lance joins fragments in memory if their total blob size is within this limit
_OVERSIZE_RATIO = 4  # a fragment is split if its texts are this many times larger than `FRAGMENT_BYTES`
_OVERSIZED_MEMBER = "oversized"  # the JSON member that marks a task whose output must be split
_UNLIMITED_ROWS = 1 << 30  # row limit high enough that the output of a task is always a single fragment


def stage_compaction(  # noqa: PLR0913 - all but two are keyword-only
    store: Store,
    table: Table,
    *,
    target_rows: int | None = None,
    max_fragments: int | None = None,
    max_deleted_share: float = 0.0,
    extra_fragment_ids: Collection[int] = (),
    verify_files: Callable[[Sequence[str]], None] = lambda _: None,
) -> StagedChange | None:
    """Compact small fragments without changing their content, or return None if there is nothing to compact.

    `verify_files` receives the names of the files to read and must raise an error if any of them is damaged. Without
    this check, compaction would copy the damaged content to a new file with a valid checksum.
    """
    tasks = plan_compaction(
        table,
        target_rows=target_rows,
        max_fragments=max_fragments,
        max_deleted_share=max_deleted_share,
        extra_fragment_ids=extra_fragment_ids,
    )
    verify_files([file_name for task in tasks for file_name in task_input_files(table, task)])
    return stage_task_results(table, [run_task(store, table, task) for task in tasks]) if tasks else None


def stage_joined_rows(store: Store, table: Table, fragments: Sequence[Any], rows: pa.Table) -> StagedChange:
    """Join adjacent fragments into one, given all of their rows in order, with row ids.

    The rows are written in this process, so that computing checksums needs no storage requests.
    """
    return stage_task_results(table, [_write_pieces(store, table, fragments, [rows])])


def _stream_fragments(store: Store, table: Table, fragments: Sequence[Any]) -> str:
    """Rewrite fragments in this process, and start a new fragment whenever the current one reaches `FRAGMENT_BYTES`.

    Blobs are streamed from file to file, whereas Lance would hold them in memory.
    """
    names = table.schema.names
    write = PendingBlobs((), {}, compares_stored=False)
    try:
        return _write_pieces(
            store,
            table,
            fragments,
            (
                with_placeholders(table, piece, blob_columns(table, names), write, read_blobs)
                for piece in _read_pieces(table, fragments)
            ),
        )
    finally:
        write.close()


def _read_pieces(table: Table, fragments: Sequence[Any]) -> Iterator[pa.Table]:
    """Yield all rows with row ids and blob descriptions; each piece becomes a fragment."""
    fragment_ids, batches = [fragment.fragment_id for fragment in fragments], list[pa.RecordBatch]()
    for batch in read_fragments(
        table, fragment_ids, table.schema.names, with_row_ids=True, blob_handling="blobs_descriptions"
    ):
        for part in split_by_size(pa.Table.from_batches([batch]), FRAGMENT_BYTES):
            batches += part.to_batches()
            if sum(pending.nbytes for pending in batches) >= FRAGMENT_BYTES:
                yield pa.Table.from_batches(batches)
                batches = []
    if batches:
        yield pa.Table.from_batches(batches)


def _write_pieces(store: Store, table: Table, fragments: Sequence[Any], pieces: Iterable[pa.Table]) -> str:
    new_fragments, checksums = [], dict[str, Any]()
    for rows in pieces:
        fragment_json = write_fragment(store, table, rows.select(table.schema.names), rows[ROW_ID].to_pylist())
        checksums |= fragment_json.pop("checksums")
        new_fragments.append(fragment_json)
    old_fragments = [fragment.metadata.to_json() for fragment in fragments]
    return json.dumps({"old": old_fragments, "new": new_fragments, "checksums": checksums})


def plan_compaction(
    table: Table,
    *,
    target_rows: int | None = None,
    max_fragments: int | None = None,
    max_deleted_share: float = 0.0,
    extra_fragment_ids: Collection[int] = (),
) -> list[str]:
    """Return the tasks that compact small fragments, or an empty list if there is nothing to compact.

    If `max_fragments` is given, at most that many adjacent fragments are compacted, starting at a random position. A
    smaller change conflicts less often, and a random position makes it less likely that other writers change the same
    fragments. A single fragment is also rewritten if its fraction of deleted rows exceeds `max_deleted_share`, if its
    id is in `extra_fragment_ids`, or if its texts are too large for one fragment.
    """
    enough_rows = TARGET_ROWS if target_rows is None else target_rows

    def is_due(fragment: Any) -> bool:
        return _deleted_share(fragment) > max_deleted_share or fragment.fragment_id in extra_fragment_ids

    runs, text_bytes = [], dict[int, int]()
    for run in _find_runs(table, enough_rows, is_due):
        text_bytes |= estimate_text_bytes(table, run)
        runs += [
            run_part
            for run_part in _split_run(run, enough_rows, text_bytes, is_due)
            if len(run_part) > 1 or is_due(run_part[0]) or _is_oversized(run_part, text_bytes)
        ]
    if runs and max_fragments is not None:
        runs = [_pick_window(runs[int(clock_and_ids.random_fraction() * len(runs))], max_fragments)]
    return _make_tasks(table, runs, text_bytes)


def task_bytes(task: str) -> int:
    """Return the number of bytes that a task reads. A file without a recorded size counts as zero."""
    file_entries = (
        file_entry for fragment_entry in json.loads(task)["task"]["fragments"] for file_entry in fragment_entry["files"]
    )
    return sum(file_entry.get("file_size_bytes") or 0 for file_entry in file_entries)


def task_data_files(table: Table, task: str) -> tuple[str, ...]:
    """Return the data files that a task replaces."""
    return data_files(table, _task_fragments(task))


def task_input_files(table: Table, task: str) -> tuple[str, ...]:
    """Return every file that a task reads, including deletion files."""
    return fragment_files(table, _task_fragments(task))


def _task_fragments(task: str) -> list[Any]:
    fragments = json.loads(task)["task"]["fragments"]
    return [FragmentMetadata.from_json(json.dumps(fragment_json)) for fragment_json in fragments]


def run_task(store: Store, table: Table, task: str) -> str:
    """Run one task; return the replaced fragments, the new fragments and their checksums as a JSON string."""
    from lance.optimize import CompactionTask

    blob_bytes, task_fragments = blob_bytes_by_fragment(table), _task_fragments(task)
    fragments = [table.dataset.get_fragment(fragment.id) for fragment in task_fragments]
    task_json = json.loads(task)
    is_oversized = task_json.pop(_OVERSIZED_MEMBER, False)
    if is_oversized or sum(blob_bytes.get(fragment.id, 0) for fragment in task_fragments) > _MAX_BLOB_BYTES_IN_MEMORY:
        return _stream_fragments(store, table, fragments)
    task_class: Any = CompactionTask  # Lance's type stubs lack `from_json`
    compaction_task = task_class.from_json(json.dumps(task_json))
    try:
        with panics_as_errors():
            task_result = store.effects.run("stage", table.location, lambda: compaction_task.execute(table.dataset))
    except (OSError, pa.ArrowInvalid) as error:  # Lance raises `ArrowInvalid` if a read fails
        if is_overflow(error):  # the estimate was too low
            return _stream_fragments(store, table, fragments)
        if isinstance(error, OSError):
            raise
        raise DamagedError(f"{table.location} cannot be read: {error}") from error
    old_fragments = [fragment.to_json() for fragment in task_result.original_fragments]
    has_blobs = any(is_blob_field(column) for column in table.schema)
    checksums = store.read_back_checksums(data_files(table, task_result.new_fragments), include_blobs=has_blobs)
    return json.dumps(
        {
            "old": old_fragments,
            "new": [_without_row_versions(fragment) for fragment in task_result.new_fragments],
            "checksums": {file_name: checksum.to_json() for file_name, checksum in checksums.items()},
        }
    )


def stage_task_results(table: Table, task_results: Sequence[str]) -> StagedChange:
    """Stage all task results as one change to the table for which the tasks were planned."""
    fragment_pairs = [
        [
            [FragmentMetadata.from_json(json.dumps(entry)) for entry in result_json[result_side]]
            for result_side in _RESULT_SIDES
        ]
        for result_json in map(json.loads, task_results)
    ]
    rewrite_groups = [
        LanceOperation.RewriteGroup(old_fragments, new_fragments) for old_fragments, new_fragments in fragment_pairs
    ]
    touched_fragments = tuple(
        fragment_fingerprint(fragment) for old_fragments, _ in fragment_pairs for fragment in old_fragments
    )
    new_files = data_files(table, [fragment for _, new_fragments in fragment_pairs for fragment in new_fragments])
    operation = LanceOperation.Rewrite(rewrite_groups, [])
    checksums = {
        file_name: FileChecksum.from_json(checksum)
        for result_json in map(json.loads, task_results)
        for file_name, checksum in result_json["checksums"].items()
    }
    fingerprint = schema_fingerprint(table)
    return StagedChange(table.location, operation, fingerprint, touched_fragments, 0, new_files, checksums=checksums)


def _find_runs(table: Table, target_rows: int, is_due: Callable[[Any], bool]) -> list[list[Any]]:
    """Return runs of adjacent fragments that are small or must be rewritten.

    A fragment with a very large blob never counts as small, because each rewrite would copy the blob. This function
    replaces Lance's own plan, which never combines fragments covered by different BTREE segments and therefore would
    never compact a table that is indexed often.
    """
    runs: list[list[Any]] = [[]]
    heavy_fragments = find_heavy_fragments(table)
    for fragment in table.dataset.get_fragments():
        is_small = fragment.physical_rows < target_rows and fragment.fragment_id not in heavy_fragments
        if is_small or is_due(fragment):
            runs[-1].append(fragment)
        elif runs[-1]:
            runs.append([])
    return [run for run in runs if run]


def _split_run(
    run: Sequence[Any], target_rows: int, text_bytes: Mapping[int, int], is_due: Callable[[Any], bool]
) -> list[list[Any]]:
    """Split a run into groups.

    A group ends once it contains `target_rows` rows or `FRAGMENT_BYTES` of text. It ends earlier only at the end of the
    run or before a fragment that has enough text already and does not have to be rewritten.
    """
    run_parts: list[list[Any]] = [[]]
    live_rows = live_bytes = 0
    for fragment in run:
        fragment_bytes = text_bytes.get(fragment.fragment_id, 0)
        is_full = fragment_bytes >= FRAGMENT_BYTES and not is_due(fragment)
        if run_parts[-1] and (live_rows >= target_rows or live_bytes >= FRAGMENT_BYTES or is_full):
            run_parts.append([])
            live_rows = live_bytes = 0
        run_parts[-1].append(fragment)
        live_rows += round(fragment.physical_rows * (1 - _deleted_share(fragment)))
        live_bytes += fragment_bytes
    return run_parts


def _is_oversized(fragments: Sequence[Any], text_bytes: Mapping[int, int]) -> bool:
    """Return whether the texts in these fragments are too large for one fragment."""
    return sum(text_bytes.get(fragment.fragment_id, 0) for fragment in fragments) > _OVERSIZE_RATIO * FRAGMENT_BYTES


def index_bound_fragments(table: Table) -> frozenset[int]:
    """Return the fragments covered by index segments that a rewrite would lose: segments of any kind except BTREE."""
    other_indexes = (index for index in table.dataset.describe_indices() if index.index_type != "BTree")
    return frozenset(
        fragment_id for index in other_indexes for segment in index.segments for fragment_id in segment.fragment_ids
    )


def fragments_with_dropped_columns(table: Table) -> frozenset[int]:
    """Return the fragments whose files still contain values from dropped columns."""
    current_field_ids = {
        field_id for column in lance_columns(table.dataset.lance_schema) for field_id in column.field_ids
    }
    return frozenset(
        fragment.fragment_id
        for fragment in table.dataset.get_fragments()
        if any(
            field_id not in current_field_ids for data_file in fragment.metadata.files for field_id in data_file.fields
        )
    )


def _deleted_share(fragment: Any) -> float:
    deletion_file = fragment.metadata.deletion_file
    return deletion_file.num_deleted_rows / fragment.physical_rows if deletion_file is not None else 0.0


def _pick_window(run: list[Any], window_length: int) -> list[Any]:
    window_start = int(clock_and_ids.random_fraction() * max(1, len(run) - window_length + 1))
    return run[window_start : window_start + window_length]


def _make_tasks(table: Table, runs: Sequence[Sequence[Any]], text_bytes: Mapping[int, int]) -> list[str]:
    """Build a compaction task for each run, in Lance's format."""
    if not runs:
        return []
    from lance.optimize import Compaction

    options: Any = {"materialize_deletions_threshold": 0.0, "target_rows_per_fragment": _UNLIMITED_ROWS}
    # Use only the format and the options from Lance's plan, and discard its choice of fragments.
    lance_plan: Any = Compaction.plan(table.dataset, options)
    task_template = json.loads(lance_plan.json())
    del task_template["tasks"]
    tasks = []
    for run in runs:
        mark = {_OVERSIZED_MEMBER: True} if _is_oversized(run, text_bytes) else {}
        fragment_list = [fragment.metadata.to_json() for fragment in run]
        tasks.append(json.dumps({**task_template, **mark, "task": {"fragments": fragment_list}}))
    return tasks


def _without_row_versions(fragment: Any) -> Any:
    """Return the fragment without the record of which versions created and last updated its rows."""
    cleared_members = {"created_at_version_meta": None, "last_updated_at_version_meta": None}
    return {**fragment.to_json(), **cleared_members}
