"""Compact small fragments: a staged change that keeps rows, their order and their row ids.

A plan is a list of tasks as text. Each task produces one fragment, in this process or in another;
the results of all tasks form the change. Row versions are dropped on purpose: Lance would record
for each row the versions that created and updated it, in every later version of the table. Nothing
reads them, and a table of single inserts would stay large.
"""

import json
from collections.abc import Callable, Collection, Sequence
from typing import Any

import pyarrow as pa
from lance import FragmentMetadata, LanceOperation

from omnigraph import ids

from .blobs import is_blob
from .checksums import FileChecksum
from .failures import DamagedError
from .fields import columns_of
from .fragments import read_fragments, write_rows
from .scan import ROW_ID
from .sizes import FRAGMENT_ROWS
from .store import Store
from .table import Staged, Table, data_files, field_digest, files_of, mark_of

TARGET = FRAGMENT_ROWS
_SIDES = ("old", "new")
_ONE = 1 << 30  # rows: the input of a task always becomes one fragment


def stage_rewrite(  # noqa: PLR0913 - all but two are keyword-only
    store: Store,
    table: Table,
    *,
    target_rows: int | None = None,
    at_most: int | None = None,
    deletions: float = 0.0,
    also: Collection[int] = (),
    verify: Callable[[Sequence[str]], None] = lambda _: None,
) -> Staged | None:
    """Compact small fragments without changing their content; None when nothing is due.

    `verify_files` receives the files to be read, and raises for one that must not be rewritten:
    compacting a damaged file would give its content a new, valid checksum.
    """
    tasks = plan_rewrite(
        table, target_rows=target_rows, at_most=at_most, deletions=deletions, also=also
    )
    verify([name for task in tasks for name in task_sources(table, task)])
    return rewritten(table, [run_task(store, table, one) for one in tasks]) if tasks else None


def stage_joined(store: Store, table: Table, fragments: Sequence[Any]) -> Staged:
    """Join exactly these fragments, in order, into one; the content is unchanged."""
    if not store.root.local:
        return rewritten(table, [_join_here(store, table, fragments)])
    (task,) = _tasks(table, [fragments])
    return rewritten(table, [run_task(store, table, task)])


def _join_here(store: Store, table: Table, fragments: Sequence[Any]) -> str:
    """Join small fragments by writing the rows ourselves, so the checksum needs no request."""
    numbers = [one.fragment_id for one in fragments]
    batches = read_fragments(table, numbers, table.schema.names, places=True)
    rows = pa.Table.from_batches(batches)
    row_ids = rows[ROW_ID].to_pylist()
    facts = write_rows(store, table, rows.select(table.schema.names), row_ids)
    checksums = facts.pop("checksums")
    old = [one.metadata.to_json() for one in fragments]
    return json.dumps({"old": old, "new": [facts], "checksums": checksums})


def plan_rewrite(
    table: Table,
    *,
    target_rows: int | None = None,
    at_most: int | None = None,
    deletions: float = 0.0,
    also: Collection[int] = (),
) -> list[str]:
    """Return the tasks that compact small fragments; an empty list when nothing is due.

    With `max_fragments` only that many neighbors are compacted, at a random position: a smaller
    change conflicts less often, and a random position avoids fragments that are being written.
    A fragment with more than the share `max_deleted_share` of its rows deleted is rewritten even
    alone, and so are the fragments in `extra_fragment_ids`.
    """
    enough = TARGET if target_rows is None else target_rows

    def due(one: Any) -> bool:
        return _holes(one) > deletions or one.fragment_id in also

    runs = [
        part
        for run in _runs(table, enough, due)
        for part in _parts(run, enough)
        if len(part) > 1 or due(part[0])
    ]
    if runs and at_most is not None:
        runs = [_some(runs[int(ids.random_fraction() * len(runs))], at_most)]
    return _tasks(table, runs)


def task_bytes(task: str) -> int:
    """Return how many bytes a task reads, as far as fragments record it."""
    files = (one for part in json.loads(task)["task"]["fragments"] for one in part["files"])
    return sum(one.get("file_size_bytes") or 0 for one in files)


def task_files(table: Table, task: str) -> tuple[str, ...]:
    """Return the data files that a task replaces, which the new version no longer names."""
    return data_files(table, _sources(task))


def task_sources(table: Table, task: str) -> tuple[str, ...]:
    """Return every file that a task reads, including deletion files."""
    return files_of(table, _sources(task))


def _sources(task: str) -> list[Any]:
    fragments = json.loads(task)["task"]["fragments"]
    return [FragmentMetadata.from_json(json.dumps(one)) for one in fragments]


def run_task(store: Store, table: Table, task: str) -> str:
    """Run one task; return the fragments it replaces and the one it wrote, as JSON text."""
    from lance.optimize import CompactionTask

    untyped: Any = CompactionTask  # its type stubs lack `from_json`
    work = untyped.from_json(task)
    try:
        done = store.effects.run("stage", table.location, lambda: work.execute(table.dataset))
    except pa.ArrowInvalid as error:  # how Lance reports a failed read
        raise DamagedError(f"{table.location} cannot be read: {error}") from error
    old = [one.to_json() for one in done.original_fragments]
    has_blobs = any(is_blob(column) for column in table.schema)
    checksums = store.read_back(data_files(table, done.new_fragments), blobs=has_blobs)
    return json.dumps(
        {
            "old": old,
            "new": [_bare(one) for one in done.new_fragments],
            "checksums": {name: checksum.to_json() for name, checksum in checksums.items()},
        }
    )


def rewritten(table: Table, results: Sequence[str]) -> Staged:
    """Stage the results of the tasks of one plan as one change of the table they were made for."""
    pairs = [
        [
            [FragmentMetadata.from_json(json.dumps(entry)) for entry in facts[part]]
            for part in _SIDES
        ]
        for facts in map(json.loads, results)
    ]
    groups = [LanceOperation.RewriteGroup(old, new) for old, new in pairs]
    touched = tuple(mark_of(one) for old, _ in pairs for one in old)
    files = data_files(table, [one for _, new in pairs for one in new])
    operation = LanceOperation.Rewrite(groups, [])
    checksums = {
        name: FileChecksum.from_json(checksum)
        for facts in map(json.loads, results)
        for name, checksum in facts["checksums"].items()
    }
    fields = field_digest(table)
    return Staged(table.location, operation, fields, touched, 0, files, checksums=checksums)


def _runs(table: Table, target_rows: int, due: Callable[[Any], bool]) -> list[list[Any]]:
    """Return runs of neighboring fragments that are small or due for rewriting.

    Lance's own plan does not mix fragments that different segments of BTREE indexes cover: a table
    that was indexed often would never be compacted.
    """
    runs: list[list[Any]] = [[]]
    for one in table.dataset.get_fragments():
        if one.physical_rows < target_rows or due(one):
            runs[-1].append(one)
        elif runs[-1]:
            runs.append([])
    return [run for run in runs if run]


def _parts(run: Sequence[Any], target_rows: int) -> list[list[Any]]:
    """Split a run into groups that each become one fragment of 1 to 2 times `target_rows`."""
    parts: list[list[Any]] = [[]]
    held = 0
    for one in run:
        if held >= target_rows:
            parts.append([])
            held = 0
        parts[-1].append(one)
        held += round(one.physical_rows * (1 - _holes(one)))
    return parts


def held_fragments(table: Table) -> frozenset[int]:
    """Return fragments whose rewriting costs an index: all kinds but BTREE lose a whole segment."""
    every = (one for one in table.dataset.describe_indices() if one.index_type != "BTree")
    return frozenset(
        number for one in every for part in one.segments for number in part.fragment_ids
    )


def fragments_with_dropped(table: Table) -> frozenset[int]:
    """Return the fragments whose files still hold values of dropped columns."""
    known = {number for one in columns_of(table.dataset.lance_schema) for number in one.ids}
    return frozenset(
        fragment.fragment_id
        for fragment in table.dataset.get_fragments()
        if any(number not in known for file in fragment.metadata.files for number in file.fields)
    )


def _holes(fragment: Any) -> float:
    gone = fragment.metadata.deletion_file
    return gone.num_deleted_rows / fragment.physical_rows if gone is not None else 0.0


def _some(run: list[Any], count: int) -> list[Any]:
    start = int(ids.random_fraction() * max(1, len(run) - count + 1))
    return run[start : start + count]


def _tasks(table: Table, runs: Sequence[Sequence[Any]]) -> list[str]:
    """Build a compaction task for each run, in Lance's format."""
    if not runs:
        return []
    from lance.optimize import Compaction

    options: Any = {"materialize_deletions_threshold": 0.0, "target_rows_per_fragment": _ONE}
    # Only the format and its options are used; the fragments that Lance would choose are dropped.
    planned: Any = Compaction.plan(table.dataset, options)
    form = json.loads(planned.json())
    del form["tasks"]
    held = ([fragment.metadata.to_json() for fragment in run] for run in runs)
    return [json.dumps({**form, "task": {"fragments": one}}) for one in held]


def _bare(fragment: Any) -> Any:
    """Return the fragment without the versions that created and last updated its rows."""
    unversioned = {"created_at_version_meta": None, "last_updated_at_version_meta": None}
    return {**fragment.to_json(), **unversioned}
