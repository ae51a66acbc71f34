"""Small fragments put together, as a staged change that keeps rows, their order and their row ids.

A plan is a list of tasks as text; each makes one fragment, in this process or in another one, and
all results together are the change. Owns that Lance forgets in which version a row came: it would
note that for each row, twice, in every later version of the table. Nobody asks, and a table of
single inserts would stay large.
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
_ONE = 1 << 30  # rows: whatever a task is given becomes one fragment


def stage_rewrite(  # noqa: PLR0913 - all but two are named
    store: Store,
    table: Table,
    *,
    target_rows: int | None = None,
    at_most: int | None = None,
    deletions: float = 0.0,
    also: Collection[int] = (),
    verify: Callable[[Sequence[str]], None] = lambda _: None,
) -> Staged | None:
    """Small fragments put together, content unchanged; None when there is nothing to do.

    `verify` is given the files that will be read, and raises for one that must not be rewritten.
    """
    tasks = plan_rewrite(
        table, target_rows=target_rows, at_most=at_most, deletions=deletions, also=also
    )
    verify([name for task in tasks for name in task_sources(table, task)])
    return rewritten(table, [run_task(store, table, one) for one in tasks]) if tasks else None


def stage_joined(store: Store, table: Table, fragments: Sequence[Any]) -> Staged:
    """Exactly these fragments, in their order, put together as one; content unchanged."""
    if not store.root.local:
        return rewritten(table, [_join_here(store, table, fragments)])
    (task,) = _tasks(table, [fragments])
    return rewritten(table, [run_task(store, table, task)])


def _join_here(store: Store, table: Table, fragments: Sequence[Any]) -> str:
    """A few small fragments as one, written by us: so that its checksum needs no request."""
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
    """The tasks that put small fragments together, none when there is nothing to do.

    With `at_most` only so many neighbours go in, wherever they are: a smaller change is less often
    in the way of others, and chance finds a place that nobody changes just now. A fragment of which
    more than the share `deletions` is deleted is written anew even alone, and so are those whose
    numbers are in `also`.
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
    """How many bytes a task reads, as far as fragments tell."""
    files = (one for part in json.loads(task)["task"]["fragments"] for one in part["files"])
    return sum(one.get("file_size_bytes") or 0 for one in files)


def task_files(table: Table, task: str) -> tuple[str, ...]:
    """The data files that a task puts together, which no new version names."""
    return data_files(table, _sources(task))


def task_sources(table: Table, task: str) -> tuple[str, ...]:
    """Every file that a task reads, deletion files included."""
    return files_of(table, _sources(task))


def _sources(task: str) -> list[Any]:
    fragments = json.loads(task)["task"]["fragments"]
    return [FragmentMetadata.from_json(json.dumps(one)) for one in fragments]


def run_task(store: Store, table: Table, task: str) -> str:
    """Do one task: the fragments it takes and the one it made, as text."""
    from lance.optimize import CompactionTask

    untyped: Any = CompactionTask  # its types leave this method out
    work = untyped.from_json(task)
    try:
        done = store.effects.run("stage", table.location, lambda: work.execute(table.dataset))
    except pa.ArrowInvalid as error:  # how Lance says that it could not read
        raise DamagedError(f"{table.location} cannot be read: {error}") from error
    old = [one.to_json() for one in done.original_fragments]
    has_blobs = any(is_blob(column) for column in table.schema)
    checksums = store.read_back(data_files(table, done.new_fragments), blobs=has_blobs)
    return json.dumps(
        {
            "old": old,
            "new": [_bare(one) for one in done.new_fragments],
            "checksums": {name: one.to_json() for name, one in checksums.items()},
        }
    )


def rewritten(table: Table, results: Sequence[str]) -> Staged:
    """What tasks of a plan made, as one change of the table that they were planned for."""
    pairs = [
        [[FragmentMetadata.from_json(json.dumps(one)) for one in facts[part]] for part in _SIDES]
        for facts in map(json.loads, results)
    ]
    groups = [LanceOperation.RewriteGroup(old, new) for old, new in pairs]
    touched = tuple(mark_of(one) for old, _ in pairs for one in old)
    files = data_files(table, [one for _, new in pairs for one in new])
    operation = LanceOperation.Rewrite(groups, [])
    checksums = {
        name: FileChecksum.from_json(one)
        for facts in map(json.loads, results)
        for name, one in facts["checksums"].items()
    }
    fields = field_digest(table)
    return Staged(table.location, operation, fields, touched, 0, files, checksums=checksums)


def _runs(table: Table, target_rows: int, due: Callable[[Any], bool]) -> list[list[Any]]:
    """Neighbours that are small or due anyway.

    Lance's own plan keeps apart what other segments of BTREE indexes cover: a table that was
    indexed often would stay as it is.
    """
    runs: list[list[Any]] = [[]]
    for one in table.dataset.get_fragments():
        if one.physical_rows < target_rows or due(one):
            runs[-1].append(one)
        elif runs[-1]:
            runs.append([])
    return [run for run in runs if run]


def _parts(run: Sequence[Any], target_rows: int) -> list[list[Any]]:
    """A run in pieces that each become one fragment: large enough, and less than twice that."""
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
    """The fragments whose rewriting costs an index: all but BTREE lose a whole segment by it."""
    every = (one for one in table.dataset.describe_indices() if one.index_type != "BTree")
    return frozenset(
        number for one in every for part in one.segments for number in part.fragment_ids
    )


def fragments_with_dropped(table: Table) -> frozenset[int]:
    """The fragments whose files hold values of columns that the table does not have any more."""
    known = {number for one in columns_of(table.dataset.lance_schema) for number in one.ids}
    return frozenset(
        one.fragment_id
        for one in table.dataset.get_fragments()
        if any(number not in known for file in one.metadata.files for number in file.fields)
    )


def _holes(fragment: Any) -> float:
    gone = fragment.metadata.deletion_file
    return gone.num_deleted_rows / fragment.physical_rows if gone is not None else 0.0


def _some(run: list[Any], count: int) -> list[Any]:
    start = int(ids.random_fraction() * max(1, len(run) - count + 1))
    return run[start : start + count]


def _tasks(table: Table, runs: Sequence[Sequence[Any]]) -> list[str]:
    """A task for each run, in the form of Lance."""
    if not runs:
        return []
    from lance.optimize import Compaction

    options: Any = {"materialize_deletions_threshold": 0.0, "target_rows_per_fragment": _ONE}
    # Only for its form, with all options: what it would choose itself does not matter.
    planned: Any = Compaction.plan(table.dataset, options)
    form = json.loads(planned.json())
    del form["tasks"]
    held = ([one.metadata.to_json() for one in run] for run in runs)
    return [json.dumps({**form, "task": {"fragments": one}}) for one in held]


def _bare(fragment: Any) -> Any:
    """The fragment without the versions in which its rows came and changed."""
    unversioned = {"created_at_version_meta": None, "last_updated_at_version_meta": None}
    return {**fragment.to_json(), **unversioned}
