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
    from lance.optimize import Compaction

    options: Any = {
        "materialize_deletions_threshold": deletions,
        "target_rows_per_fragment": target_rows,
    }
    tasks = Compaction.plan(table.dataset, options).tasks
    if not tasks:
        return None
    return _rewritten(store, table, tasks if at_most is None else [_some(tasks[0], at_most)])


def stage_joined(store: Store, table: Table, fragments: Sequence[Any]) -> Staged:
    """Exactly these fragments, in their order, put together as one; content unchanged."""
    from lance.optimize import Compaction

    # Only for its form: which fragments it would choose itself does not matter.
    options: Any = {
        "materialize_deletions_threshold": 0.0,
        "target_rows_per_fragment": 1 << 30,
    }
    plan = Compaction.plan(table.dataset, options)
    chosen = [one.metadata.to_json() for one in fragments]
    return _rewritten(store, table, [_of(plan.tasks[0], chosen)])


def _some(task: Any, count: int) -> Any:
    every = json.loads(task.json())["task"]["fragments"]
    start = int(ids.random_fraction() * max(1, len(every) - count + 1))
    return _of(task, every[start : start + count])


def _of(task: Any, fragments: Sequence[Any]) -> Any:
    from lance.optimize import CompactionTask

    facts = json.loads(task.json())
    facts["task"]["fragments"] = list(fragments)
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
