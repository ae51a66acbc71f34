"""Branches in normal use: create, list, write, delete, read the past."""

from pathlib import Path

import pytest

from omnigraph.errors import AlreadyExists, BranchBusy, BranchNotFound, CommitNotFound, InputError, NotFound
from omnigraph.history.branch_state import BranchState, branch_state_of
from omnigraph.history.branches import list_branches, open_branch
from omnigraph.history.commit_log import HistoryLog, sort_newest_first
from omnigraph.history.refs import find_ref
from omnigraph.publish.branch_lifecycle import create_branch, delete_branch
from omnigraph.storage.store import Store, open_store
from omnigraph.values.clock_and_ids import deterministic_ids, new_ulid
from tests.rig.independent_writers import apart, people
from tests.rig.invariants import files
from tests.rig.writes import PERSON, append, check_invariants, init_small, read_branch, write


@pytest.fixture
def store(tmp_path: Path) -> Store:
    store = init_small(tmp_path / "g")
    write(open_branch(store, "main"), append({"base": 0}))
    return store


def _main(store: Store) -> BranchState:
    return open_branch(store, "main")


def test_a_new_branch_adds_no_commit_and_touches_no_table(store: Store) -> None:
    before = _main(store).last_known()
    create_branch(store, "review/a", _main(store))
    assert list_branches(store) == ["main", "review/a"]
    after = _main(store).refresh()
    assert (after.version, after.state) == (before.version, before.state)
    assert open_branch(store, "review/a").last_known().state.tables == before.state.tables
    ref = find_ref(store, "review/a")
    assert (ref.parent, ref.fork_commit) == ("main", before.state.head.commit_id)


@pytest.mark.parametrize("name", ["", "  ", "main", "a//b", "/a", "a/", "x.lock", "__x", "a b", "é", ".."])
def test_a_bad_name_is_refused_before_anything_is_written(store: Store, name: str) -> None:
    before = files(store)
    with pytest.raises(InputError):
        create_branch(store, name, _main(store))
    assert files(store) == before


def test_branch_names_are_unique_and_do_not_overlap(store: Store) -> None:
    create_branch(store, " review/a ", _main(store))
    before = files(store)
    for name in ("review/a", "review", "review/a/b"):
        with pytest.raises(AlreadyExists, match="review/a"):
            create_branch(store, name, _main(store))
    assert files(store) == before
    create_branch(store, "review/b", _main(store))
    create_branch(store, "reviews", _main(store))
    assert list_branches(store) == ["main", "review/a", "review/b", "reviews"]


def test_missing_branch_is_reported(store: Store) -> None:
    for name in ("nobody", "nobody/else"):
        with pytest.raises(BranchNotFound):
            open_branch(store, name)
        with pytest.raises(BranchNotFound):
            delete_branch(store, name)
    with pytest.raises(NotFound):
        create_branch(store, "f", _main(store), commit_id=new_ulid())
    assert store.objects.list("__recovery") == []


def test_main_and_the_current_branch_cannot_be_deleted(store: Store) -> None:
    create_branch(store, "f", _main(store))
    with pytest.raises(InputError):
        delete_branch(store, "main")
    with pytest.raises(BranchBusy):
        delete_branch(store, "f", current_branch="f")
    delete_branch(store, "f", current_branch="main")
    assert list_branches(store) == ["main"]


def test_branches_are_isolated(store: Store) -> None:
    f = create_branch(store, "f", _main(store))
    write(_main(store), append({"late": 1}))
    write(f, append({"own": 1}))
    assert read_branch(f)[PERSON] == [("base", 0), ("own", 1)]
    assert read_branch(_main(store))[PERSON] == [("base", 0), ("late", 1)]
    check_invariants(store.root.path)


def test_branch_survives_the_deletion_of_its_source(store: Store) -> None:
    f = create_branch(store, "f", _main(store))
    on_f = write(f, append({"own": 1}))
    assert on_f is not None
    g = create_branch(store, "g", f)
    delete_branch(store, "f")
    fresh = apart(store.root.path, "g")
    assert read_branch(fresh)[PERSON] == [("base", 0), ("own", 1)]
    assert HistoryLog(fresh.store, fresh.last_known().state).get(on_f.id) == on_f
    write(g, append({"more": 1}))
    check_invariants(store.root.path)


def test_commit_of_a_deleted_branch_is_found_in_other_logs(store: Store) -> None:
    from omnigraph.history.snapshot import find_commit

    f = create_branch(store, "f", _main(store))
    made = write(f, append({"own": 1}))
    assert made is not None
    assert find_commit(store, _main(store), made.id)[2] == made
    delete_branch(store, "f")
    with pytest.raises((NotFound, CommitNotFound)):
        find_commit(store, _main(store), made.id)


def test_the_log_of_a_branch_is_its_own_commits_and_those_before_the_fork(store: Store) -> None:
    with deterministic_ids(seed=3):  # all times are equal: the order is still the same each time
        f = create_branch(store, "f", _main(store))
        own = [write(f, people(1, n)) for n in range(3)]
        write(_main(store), people(1, 9))
    state = apart(store.root.path, "f").last_known().state
    found = sort_newest_first(HistoryLog(store, state).ancestors(state.head.commit_id).values())
    assert [one.operation for one in found] == ["insert"] * 4 + ["init"]
    assert found[:3] == own[::-1]
    assert [one.branch for one in found] == ["f", "f", "f", "main", "main"]


def test_branch_from_a_past_commit_shows_its_state(store: Store) -> None:
    then = _main(store).last_known().state.head.commit_id
    write(_main(store), append({"late": 1}))
    g = create_branch(store, "g", _main(store), commit_id=then)
    assert read_branch(g)[PERSON] == [("base", 0)]
    write(g, append({"own": 1}))
    assert read_branch(apart(store.root.path, "g"))[PERSON] == [("base", 0), ("own", 1)]
    assert read_branch(g, 1)[PERSON] == [("base", 0)]
    assert read_branch(g, then)[PERSON] == [("base", 0)]
    check_invariants(store.root.path)


def test_fork_inherits_stream_tokens(store: Store) -> None:
    from omnigraph.publish.publish import publish
    from omnigraph.publish.write_plan import PublishPlan

    publish(_main(store), lambda _: PublishPlan("load", streams={"s": "7"}))
    f = create_branch(store, "f", _main(store))
    publish(f, lambda _: PublishPlan("load", streams={"s": "8"}))
    assert apart(store.root.path, "f").last_known().state.streams == {"s": "8"}
    assert apart(store.root.path).last_known().state.streams == {"s": "7"}


def test_handles_of_a_process_share_branch_state(store: Store, tmp_path: Path) -> None:
    line = _main(store)
    again = open_store(str(tmp_path / "." / "g"), durability="os")
    assert branch_state_of(again, "main", "main") is line
    link = tmp_path / "link"
    link.symlink_to(tmp_path / "g")
    assert branch_state_of(open_store(str(link), durability="os"), "main", "main") is line
