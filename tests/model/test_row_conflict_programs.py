"""Strict writes and transactions of several handles agree with the model of row conflicts."""

from collections import Counter
from collections.abc import Callable
from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest

import omnigraph
from omnigraph.engine.writes import row_dependencies
from omnigraph.engine.writes.row_dependencies import RowDependencies, TableDependency
from omnigraph.errors import OmnigraphError
from omnigraph.ingest import load as ingest_load
from omnigraph.ingest.strict_rows import NamedRows
from omnigraph.publish import read_set, unread_changes
from omnigraph.publish.read_set import ReadSet
from omnigraph.publish.unread_changes import TableReads
from tests.model.row_conflict_programs import NAMES, TEAMS, Client, Interleaving
from tests.model.row_conflicts import COLUMNS, SCHEMA, World
from tests.rig.depth import repeats
from tests.rig.invariants import check_invariants

Patch = pytest.MonkeyPatch


def run(root: Path, seed: int, steps: int) -> Counter[str]:
    """Interleave three handles; two share what a process knows, one is on its own."""
    dice = Random(seed)
    graph = omnigraph.init(root, SCHEMA, durability="os")
    items = {name: {"team": dice.choice(TEAMS), "score": dice.randrange(6), "note": None} for name in NAMES[:6]}
    graph.insert("Item", [{"name": name, **item} for name, item in items.items()])
    world = World(items, {("i0", "i1"), ("i2", "i0")})
    graph.connect_nodes("Link", sorted(world.links))
    handles = [graph, *(omnigraph.open(root, durability=how) for how in ("os", "fsync"))]
    interleaving = Interleaving(dice, world, [Client(handle.refresh(), deepcopy(world)) for handle in handles])
    for _ in range(steps):
        interleaving.step()
    rows = [row["p"] for row in graph.refresh().query("match { $p: Item } return { $p }").to_dicts()]
    assert {row["name"]: {column: row[column] for column in COLUMNS} for row in rows} == world.items
    check_invariants(root)
    return interleaving.outcomes


def test_random_interleavings_agree_with_the_model(tmp_path: Path) -> None:
    outcomes = run(tmp_path / "g", 1, 60)
    print(outcomes)
    assert outcomes["landed beside unseen changes"]
    assert outcomes["conflict"]
    assert outcomes["load"]
    assert outcomes["match"]


@pytest.mark.full
@pytest.mark.timeout(600)
@pytest.mark.parametrize("seed", range(2, 2 + repeats(2)))
def test_many_random_interleavings_agree_with_the_model(tmp_path: Path, seed: int) -> None:
    outcomes = run(tmp_path / "g", seed, 150)
    print(outcomes)
    assert outcomes["transaction conflict"]
    assert outcomes["transaction landed beside changes"]


# Planted defects ----------------------------------------------------------------------------------


def _changing_changes(patch: Patch, defect: Callable[[Any], Any]) -> None:
    original = unread_changes.find_changed_ids
    patch.setattr(read_set, "find_changed_ids", lambda txn, changes, rows: original(txn, defect(changes), rows))


def phantoms_ignored(patch: Patch) -> None:
    """Rows that the predicate gained are not looked at."""
    _changing_changes(patch, lambda changes: replace(changes, inserted=changes.inserted.slice(0, 0)))


def deleted_rows_ignored(patch: Patch) -> None:
    """Rows that the predicate lost are not looked at."""
    _changing_changes(patch, lambda changes: replace(changes, deleted=changes.deleted.slice(0, 0)))


def old_values_ignored(patch: Patch) -> None:
    """A row that moved out of the predicate is not looked at, because only its new values are tested."""
    original = unread_changes.find_changed_ids

    def test_new_values(txn: Any, changes: Any, rows: Any) -> list[str]:
        is_match = rows.matches(txn, changes.updated_after)
        after, before = (table.filter(pa.array(is_match)) for table in (changes.updated_after, changes.updated_before))
        return original(txn, replace(changes, updated_after=after, updated_before=before), rows)

    patch.setattr(read_set, "find_changed_ids", test_new_values)


def own_writes_not_counted(patch: Patch) -> None:
    """A handle's own write is a change that it has not seen."""
    patch.setattr(ReadSet, "record_write", lambda *_: None)


def own_write_shows_everything(patch: Patch) -> None:
    """After an own write, the changes of others below it count as seen."""
    patch.setattr(TableReads, "after_own_write", lambda _, base, new, steps=None: TableReads(new))


def written_columns_ignored(patch: Patch) -> None:
    """Only the columns of the predicate are compared."""

    def predicate_columns(self: TableDependency) -> frozenset[str]:
        return frozenset({"id"}.union(*(predicate.columns for predicate in self.predicates)))

    patch.setattr(TableDependency, "columns", property(predicate_columns))


def cascades_ignored(patch: Patch) -> None:
    """A delete does not depend on the edges of its nodes."""
    patch.setattr(RowDependencies, "_add_cascade", lambda *_: None)


def queries_ignored(patch: Patch) -> None:
    """What a transaction reads is not checked when it ends."""
    patch.setattr(RowDependencies, "add_query", lambda *_: None)


def traversals_by_row(patch: Patch) -> None:
    """A traversal counts as a read of the rows that its scan returns."""
    patch.setattr(row_dependencies, "_depends_on_rows_alone", lambda _: True)


def patched_columns_ignored(patch: Patch) -> None:
    """A load by patch compares only the ids of its rows."""
    patch.setattr(
        ingest_load,
        "patched_row_filters",
        lambda rows: {k: NamedRows(v.ids, frozenset({"id"})) for k, v in rows.items()},
    )


def edges_of_listed_nodes_ignored(patch: Patch) -> None:
    """A load by delete does not depend on the edges of its nodes."""
    patch.setattr(
        ingest_load, "deleted_row_filters", lambda _, rows: {key: NamedRows(named.ids) for key, named in rows.items()}
    )


def named_rows_ignored(patch: Patch) -> None:
    """An upsert or a patch overwrites what its handle has not seen."""
    patch.setattr(RowDependencies, "add_rows", lambda *_: None)


def matches_ignored(patch: Patch) -> None:
    """An update or a delete that a match feeds depends on nothing."""
    patch.setattr(RowDependencies, "_add_matched", lambda *_: None)


DEFECTS = [
    matches_ignored,
    phantoms_ignored,
    deleted_rows_ignored,
    old_values_ignored,
    own_writes_not_counted,
    own_write_shows_everything,
    written_columns_ignored,
    cascades_ignored,
    queries_ignored,
    traversals_by_row,
    patched_columns_ignored,
    edges_of_listed_nodes_ignored,
    named_rows_ignored,
]


@pytest.mark.full
@pytest.mark.timeout(600)
@pytest.mark.parametrize("plant", DEFECTS)
def test_a_planted_defect_is_caught(tmp_path: Path, plant: Callable[[Patch], None]) -> None:
    with Patch.context() as patch:
        plant(patch)
        with pytest.raises((AssertionError, OmnigraphError)):
            _run_often(tmp_path)


def _run_often(tmp_path: Path) -> None:
    for seed in range(1, 7):
        run(tmp_path / f"g{seed}", seed, 150)
