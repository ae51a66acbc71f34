"""Maintenance verbs of the crash matrix: indexes, optimize, cleanup, erase, repair.

None of them may lose anything that is retained, wherever it is cut off; whoever does the same again
brings it to its end.
"""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path

import lance
import pyarrow as pa

from omnigraph.history.branch_state import BranchState
from omnigraph.history.branches import open_branch
from omnigraph.history.recovery_records import list_recovery_records
from omnigraph.maintenance.executors.local import LocalExecutor
from omnigraph.maintenance.index_maintenance import ensure_indices
from omnigraph.maintenance.optimize import optimize
from omnigraph.maintenance.repair import repair_graph
from omnigraph.maintenance.retention import claim
from omnigraph.maintenance.retention.absence import find_traces
from omnigraph.maintenance.retention.collect_garbage import cleanup, preview_cleanup
from omnigraph.maintenance.retention.erase import rewrite_deleted_data
from omnigraph.maintenance.retention.policy import RetentionPolicy
from omnigraph.maintenance.retention.report import Cleanup
from omnigraph.publish.branch_lifecycle import create_branch, delete_branch
from omnigraph.publish.tag_lifecycle import create_tag
from omnigraph.storage.column_index import index_coverage
from omnigraph.storage.layout import MAIN
from omnigraph.storage.stage_rows import stage_append
from omnigraph.storage.store import Store, open_store
from omnigraph.storage.table import open_table
from omnigraph.values.table_key import TableKey
from tests.crash.verb import Verb
from tests.rig.writes import PERSON, append, delete, init_small, line_at, read_rows, shaped, update
from tests.rig.writes import write as write_rows

KEPT = 2
ALL = 99
ERASED = "somebody-who-wants-to-be-forgotten"
FOREIGN = "appended-by-another-program"
_POLICY = RetentionPolicy(keep=KEPT, grace=timedelta())
_ONE = LocalExecutor(1)  # one table after another: effects are numbered


def _clean(store: Store) -> Cleanup:
    return cleanup(store, _POLICY)


def _erase(store: Store) -> Cleanup:
    rewrite_deleted_data(store)
    return cleanup(store, RetentionPolicy(keep=1, grace=timedelta()))


def _repair(store: Store) -> None:
    repair_graph(store, open_branch(store, MAIN), confirm=True, force=True)


def _index(store: Store) -> object:
    return ensure_indices(open_branch(store, MAIN), executor=_ONE)


def _optimize(store: Store) -> object:
    return optimize(open_branch(store, MAIN), executor=_ONE)


@contextmanager
def _abandoned() -> Iterator[None]:
    """Whoever claimed the cleanup is taken for gone."""
    before, claim.CLAIM_LEASE = claim.CLAIM_LEASE, timedelta(seconds=-10)
    try:
        yield
    finally:
        claim.CLAIM_LEASE = before


def _cleaned(store: Store) -> None:
    """The next cleanup ends the work: nothing is left that nobody needs."""
    with _abandoned():
        assert not _clean(store).failed
    assert preview_cleanup(store, _POLICY).datasets == ()
    assert store.objects.list("__gc") == []


def _erased(store: Store) -> None:
    """The next erasure leaves no byte of what was deleted, in whatever file, and no index less."""
    with _abandoned():
        assert not _erase(store).failed
    found = find_traces(open_store(store.root.uri), "Person", ERASED)
    assert found, found.traces
    _assert_covered(open_branch(store, MAIN), PERSON)


def _tended(store: Store) -> None:
    """Every row is covered when the same is done again."""
    line = open_branch(store, MAIN)
    ensure_indices(line)
    _assert_covered(line, *line.refresh().state.tables)


def _assert_covered(line: BranchState, *keys: TableKey) -> None:
    for key in keys:
        entry = line.refresh().state.tables[key]
        table = open_table(line.store, entry.location, entry.lance_version)
        present = {one.fragment_id for one in table.dataset.get_fragments()}
        assert present <= index_coverage(table).get("id", frozenset())


def _repaired(store: Store) -> None:
    """Rows of others are taken over exactly once, with one record of it."""
    _repair(store)
    line = open_branch(store, MAIN)
    rows = [one for one, _ in read_rows(store, line.refresh().state.tables[PERSON])]
    assert rows.count(FOREIGN) == 1
    assert [one.kind for one in list_recovery_records(store)].count("repaired") == 1


def _wear(root: Path) -> None:
    """Something of every kind to remove, and beside it what has to stay; few, since each is cut."""
    line = _anew(root, {"a": 1, "b": 2})
    store = line.store
    gone = create_branch(store, "gone", line)
    write_rows(gone, append({"g": 1}))
    delete_branch(store, "gone")
    create_tag(store, "v1", line)
    ensure_indices(line, types=[PERSON])
    write_rows(line, update({"a": 8}))
    write_rows(line, delete(["b"]))
    entry = line.refresh().state.tables[PERSON]
    table = open_table(store, entry.location, entry.lance_version)
    stage_append(store, table, shaped(table, {"lost": 1}))


def _delete_somebody(root: Path) -> None:
    """Deleted on the only branch there is, and still in files, versions and indexes."""
    line = _anew(root, {ERASED: 5, "d": 6})
    ensure_indices(line, types=[PERSON])
    write_rows(line, delete([ERASED]))


def _anew(root: Path, rows: dict[str, int]) -> BranchState:
    shutil.rmtree(root)
    init_small(root)
    line = line_at(root)
    write_rows(line, append(rows))
    return line


def _drift(root: Path) -> None:
    line = line_at(root)
    place = str(root / line.last_known().state.tables[PERSON].location)
    schema = lance.dataset(place).schema
    rows = pa.Table.from_pylist([{"id": FOREIGN, "n": 5}], schema=schema)
    lance.write_dataset(rows, place, mode="append")


UPKEEP_VERBS: dict[str, Verb] = {
    "ensure-indices": Verb(_index, keeps=ALL, end=_tended),
    "optimize": Verb(_optimize, keeps=ALL, end=_tended),
    "cleanup": Verb(_clean, "worn", keeps=KEPT, end=_cleaned),
    "erase": Verb(_erase, "forgetting", end=_erased, quiet=True),
    "repair": Verb(_repair, "drifted", keeps=ALL, end=_repaired, drifted=True),
}
UPKEEP_STARTS = {"worn": _wear, "forgetting": _delete_somebody, "drifted": _drift}
