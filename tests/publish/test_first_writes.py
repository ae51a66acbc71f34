"""The first write to a table on a branch: nothing is written before it."""

from pathlib import Path
from typing import Any

import pytest

from omnigraph.errors import StorageError
from omnigraph.history.branch_state import BranchState
from omnigraph.history.branches import list_branches
from omnigraph.history.manifest import create_manifest
from omnigraph.publish.branch_lifecycle import create_branch, delete_branch
from omnigraph.storage.effects import Fault
from omnigraph.storage.store import Store, open_store
from tests.rig.independent_writers import apart, write_while
from tests.rig.invariants import files
from tests.rig.writes import (
    CITY,
    LIVES_IN,
    PERSON,
    TABLES,
    append,
    check_invariants,
    init_small,
    overwrite,
    read_branch,
    write,
)

ULID = "01J00000000000000000000000"


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """A graph with a row in each table, and a branch of it."""
    made = init_small(tmp_path / "g")
    main = apart(tmp_path / "g")
    write(main, append({"base": 0}), TABLES)
    create_branch(made, "f", main)
    return made


def _f(store: Store) -> BranchState:
    return apart(store.root.path, "f")


def _names(store: Store, *prefixes: str) -> set[str]:
    return {one for one in files(store) if one.startswith(prefixes)}


def test_reading_a_branch_writes_nothing(store: Store) -> None:
    before = files(store)
    assert read_branch(_f(store)) == {key: [("base", 0)] for key in TABLES}
    assert files(store) == before


def test_a_write_to_one_table_makes_a_version_of_that_table_only(store: Store) -> None:
    line = _f(store)
    entries = line.last_known().state.tables
    before = _names(store, "nodes/", "edges/")
    write(line, append({"own": 1}))
    made = _names(store, "nodes/", "edges/") - before
    assert {one.rpartition("/")[0].rpartition("/")[2] for one in made} == {"data", "_versions", "_transactions"}
    assert all(one.startswith(entries[PERSON].location) for one in made)
    after = line.last_known().state.tables
    assert {key for key in TABLES if entries[key] != after[key]} == {PERSON}
    assert [after[key].branch for key in (PERSON, CITY, LIVES_IN)] == ["f", "main", "main"]
    check_invariants(store.root.path)


def test_concurrent_first_writes_both_land(store: Store) -> None:
    one, other = _f(store), _f(store)
    made = write_while(one, append({"one": 1}), lambda: write(other, append({"other": 1})))
    assert made is not None
    assert [name for name, _ in read_branch(_f(store))[PERSON]] == ["base", "one", "other"]
    assert read_branch(apart(store.root.path))[PERSON] == [("base", 0)]
    check_invariants(store.root.path, acknowledged=[made])


@pytest.mark.parametrize("at", [1, 2, 3, 4])
def test_interrupted_first_write_leaves_the_branch_unchanged(store: Store, at: int) -> None:
    line = _f(store)
    with line.store.effects.failing(Fault(at, "before")), pytest.raises(StorageError) as caught:
        write(line, append({"own": 1}))
    assert caught.value.effect == "none"
    assert read_branch(_f(store))[PERSON] == [("base", 0)]
    assert write(_f(store), append({"own": 1})) is not None
    assert len(read_branch(_f(store))[PERSON]) == 2
    check_invariants(store.root.path)


@pytest.mark.parametrize("at", [1, 2, 3])
def test_an_interrupt_while_staging_changes_nothing(store: Store, at: int) -> None:
    line = _f(store)
    with line.store.effects.failing(Fault(at, "after", KeyboardInterrupt())), pytest.raises(KeyboardInterrupt):
        write(line, append({"own": 1}))
    assert read_branch(_f(store))[PERSON] == [("base", 0)]
    assert write(line, append({"own": 1})) is not None
    check_invariants(store.root.path)


def test_unnamed_manifest_is_ignored(store: Store) -> None:
    main = apart(store.root.path)
    create_manifest(store, ULID, main.last_known().state)
    assert list_branches(store) == ["f", "main"]
    create_branch(store, "g", main)
    assert read_branch(apart(store.root.path, "g"))[PERSON] == [("base", 0)]
    check_invariants(store.root.path)


def test_recreated_branch_shows_no_data_of_its_predecessor(store: Store) -> None:
    write(_f(store), append({"old": 1}), [PERSON, CITY])
    delete_branch(open_store(store.root.path, durability="os"), "f")
    create_branch(store, "f", apart(store.root.path))
    write(_f(store), append({"new": 1}))
    shown = read_branch(_f(store))
    assert (shown[PERSON], shown[CITY]) == ([("base", 0), ("new", 1)], [("base", 0)])
    check_invariants(store.root.path)


def test_overwrite_with_no_rows_leaves_an_empty_table(store: Store) -> None:
    line = _f(store)
    made = write(line, overwrite({}))
    assert made is not None
    assert read_branch(line)[PERSON] == []
    table: Any = line.store.open_dataset(
        made.tables[PERSON].location,  # type: ignore[union-attr]
        made.tables[PERSON].lance_version,  # type: ignore[union-attr]
    )
    assert table.has_stable_row_ids
    write(line, append({"next": 1}))
    assert read_branch(line)[PERSON] == [("next", 1)]
    check_invariants(store.root.path)
