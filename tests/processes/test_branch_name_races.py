"""Processes that create and delete the same branch names concurrently."""

from pathlib import Path

import pytest

from omnigraph.history import refs
from omnigraph.history.branches import list_branches
from omnigraph.storage import layout
from omnigraph.storage.store import open_store
from tests.processes import write_tasks
from tests.processes.conftest import Crew
from tests.processes.worker_processes import all_at_once
from tests.rig.writes import check_invariants, init_small


@pytest.fixture
def root(tmp_path: Path) -> str:
    init_small(tmp_path / "g")
    return str(tmp_path / "g")


@pytest.mark.parametrize("rounds", [3, pytest.param(25, marks=pytest.mark.full)])
def test_each_recreation_of_a_name_has_one_winner(crew: Crew, root: str, rounds: int) -> None:
    told = all_at_once(crew(4), write_tasks.create_and_delete, [(root, "n", rounds)] * 4)
    created = [ulid for ulids, _, _ in told for ulid in ulids]
    at_once, deleted = (sum(one[n] for one in told) for n in (1, 2))
    store = open_store(root)
    names = sorted(one.name for one in store.objects.list(f"{layout.REFS}/n"))
    facts = [store.objects.read_json(name) or {} for name in names]
    assert names == [layout.ref_name("n", n + 1) for n in range(len(names))]
    opened, closed = facts[0::2], facts[1::2]
    assert len(created) + at_once == len(opened) == len({one["ulid"] for one in opened})
    assert set(created) <= {one["ulid"] for one in opened}
    assert len(closed) == deleted
    assert [one["deleted"] for one in closed] == [one["ulid"] for one in opened][: len(closed)]
    assert len(opened) - len(closed) == ("n" in list_branches(store))
    check_invariants(root)


def test_one_creator_of_a_name_wins(crew: Crew, root: str) -> None:
    told = all_at_once(crew(4), write_tasks.create, [(root, "same")] * 4)
    assert sorted(told) == ["AlreadyExists"] * 3 + ["same"]
    assert refs.find_ref(open_store(root), "same").number == 1
    check_invariants(root)


def test_names_that_differ_only_in_case_do_not_both_exist(crew: Crew, root: str) -> None:
    told = all_at_once(crew(2), write_tasks.create, [(root, "same"), (root, "Same")])
    stayed = [one for one in told if one != "AlreadyExists"]
    assert len(stayed) <= 1
    assert set(list_branches(open_store(root))) == {"main", *stayed}
    check_invariants(root)


def test_parent_and_child_names_do_not_both_exist(crew: Crew, root: str) -> None:
    for n in range(3):
        told = all_at_once(crew(2), write_tasks.create, [(root, f"r{n}"), (root, f"r{n}/a")])
        stayed = [one for one in told if one != "AlreadyExists"]
        assert len(stayed) <= 1
        assert [one for one in list_branches(open_store(root)) if one.startswith(f"r{n}")] == stayed
    check_invariants(root)
