"""Small fragments put together, as a staged change that keeps rows, their order and their row ids.

Owns that Lance forgets in which version a row came: it would note that for each row, twice, in
every later version of the table. Nobody asks, and a table of single inserts would stay large.
"""

import json
from collections.abc import Sequence
from typing import Any

from lance import FragmentMetadata, LanceOperation

from omnigraph import ids

from .store import Store
from .table import Staged, Table, data_files, field_digest, mark_of


def stage_rewrite(
    store: Store,
    table: Table,
    *,
    target_rows: int = 1 << 20,
    at_most: int | None = None,
    deletions: float = 0.0,
) -> Staged | None:
    """Small fragments put together, content unchanged; None when there is nothing to do.

    With `at_most` only so many neighbours go in, wherever they are: a smaller change is less often
    in the way of others, and chance finds a place that nobody changes just now. A fragment of which
    more than the share `deletions` is deleted is written anew even alone.
    """
    runs = _runs(table, target_rows, deletions)
    if not runs:
        return None
    if at_most is not None:
        runs = [_some(runs[int(ids.random_fraction() * len(runs))], at_most)]
    return _rewritten(store, table, [_task(table, one, target_rows) for one in runs])


def stage_joined(store: Store, table: Table, fragments: Sequence[Any]) -> Staged:
    """Exactly these fragments, in their order, put together as one; content unchanged."""
    return _rewritten(store, table, [_task(table, fragments, 1 << 30)])


def _runs(table: Table, target_rows: int, deletions: float) -> list[list[Any]]:
    """Neighbours that are small or have holes.

    Lance's own plan keeps apart what other segments of BTREE indexes cover: a table that was
    indexed often would stay as it is.
    """
    runs: list[list[Any]] = [[]]
    held = bound_by(table)
    for one in table.dataset.get_fragments():
        if runs[-1] and held.get(one.fragment_id) != held.get(runs[-1][-1].fragment_id):
            runs.append([])
        if one.physical_rows < target_rows or _holes(one) > deletions:
            runs[-1].append(one)
        elif runs[-1]:
            runs.append([])
    return [run for run in runs if len(run) > 1 or (run and _holes(run[0]) > deletions)]


def bound_by(table: Table) -> dict[int, frozenset[str]]:
    """The segments of indexes that follow a fragment when it is rewritten, by fragment.

    That are all but BTREE indexes. What is put together must be held by the same of them.
    """
    found: dict[int, frozenset[str]] = {}
    for one in table.dataset.describe_indices():
        for segment in one.segments if one.index_type != "BTree" else ():
            for number in segment.fragment_ids:
                found[number] = found.get(number, frozenset()) | {str(segment.uuid)}
    return found


def _holes(fragment: Any) -> float:
    gone = fragment.metadata.deletion_file
    return gone.num_deleted_rows / fragment.physical_rows if gone is not None else 0.0


def _some(run: list[Any], count: int) -> list[Any]:
    start = int(ids.random_fraction() * max(1, len(run) - count + 1))
    return run[start : start + count]


def _task(table: Table, fragments: Sequence[Any], target_rows: int) -> Any:
    from lance.optimize import Compaction, CompactionTask

    options: Any = {
        "materialize_deletions_threshold": 0.0,
        "target_rows_per_fragment": target_rows,
    }
    # Only for its form, with all options: what it would choose itself does not matter.
    planned: Any = Compaction.plan(table.dataset, options)
    facts = json.loads(planned.json())
    del facts["tasks"]
    facts["task"] = {"fragments": [one.metadata.to_json() for one in fragments]}
    untyped: Any = CompactionTask  # its types leave this method out
    return untyped.from_json(json.dumps(facts))


def _rewritten(store: Store, table: Table, tasks: Sequence[Any]) -> Staged:
    results: list[Any] = store.effects.run(
        "stage", table.location, lambda: [task.execute(table.dataset) for task in tasks]
    )
    pairs = [(one.original_fragments, [_bare(f) for f in one.new_fragments]) for one in results]
    groups = [LanceOperation.RewriteGroup(old, new) for old, new in pairs]
    touched = tuple(mark_of(one) for old, _ in pairs for one in old)
    files = data_files(table, [one for _, new in pairs for one in new])
    operation = LanceOperation.Rewrite(groups, [])
    return Staged(table.location, operation, field_digest(table), touched, 0, files)


def _bare(fragment: Any) -> FragmentMetadata:
    """The fragment without the versions in which its rows came and changed."""
    facts = fragment.to_json()
    unversioned = {"created_at_version_meta": None, "last_updated_at_version_meta": None}
    return FragmentMetadata.from_json(json.dumps({**facts, **unversioned}))
