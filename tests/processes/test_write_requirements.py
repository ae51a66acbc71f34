"""Requirements of a write still hold where it lands, beside other processes."""

from pathlib import Path

import pytest

from omnigraph.errors import VersionConflict
from omnigraph.history.commit import Commit
from omnigraph.publish.read_set import ReadSet
from omnigraph.storage.table import open_table
from tests.processes import write_tasks
from tests.processes.conftest import Crew
from tests.processes.worker_processes import all_at_once
from tests.rig.writes import (
    CITY,
    LIVES_IN,
    PERSON,
    append,
    check_invariants,
    delete,
    init_small,
    line_at,
    read_branch,
    write,
)


def _lost_updates(crew: Crew, root: str, writers: int, times: int) -> None:
    init_small(root)
    line = line_at(root)
    write(line, append({"counter": 0, "other": 7}))
    (row_id,) = _row_ids(root, "counter")
    stop = f"{root}.stop"
    *counters, tidier = crew(writers + 1)
    tidier.begin(write_tasks.tidy_until, root, stop)
    args = [(root, "counter", times)] * writers
    told: list[write_tasks.Told] = all_at_once(counters, write_tasks.increment_many, args)
    Path(stop).touch()
    tidied = tidier.result()  # at least once
    print(f"lost {sum(one.lost for one in told)} swaps beside {tidied} rewrites")
    line.refresh()
    assert read_branch(line)[PERSON] == [("counter", writers * times), ("other", 7)]
    assert _row_ids(root, "counter") == [row_id]
    check_invariants(root, acknowledged=[one for each in told for one in each.commits])


def _row_ids(root: str, key: str) -> list[int]:
    line = line_at(root)
    entry = line.refresh().state.tables[PERSON]
    table = open_table(line.store, entry.location, entry.lance_version)
    found = table.dataset.to_table(columns=["id"], with_row_id=True).to_pylist()
    return [one["_rowid"] for one in found if one["id"] == key]


def test_no_increment_is_lost_during_rewrites(crew: Crew, tmp_path: Path) -> None:
    _lost_updates(crew, str(tmp_path / "g"), 3, 6)


@pytest.mark.full
@pytest.mark.timeout(600)
def test_no_increment_of_many_writers_is_lost_during_rewrites(crew: Crew, tmp_path: Path) -> None:
    _lost_updates(crew, str(tmp_path / "g"), 4, 25)


@pytest.fixture
def root(tmp_path: Path) -> str:
    init_small(tmp_path / "g")
    line = line_at(tmp_path / "g")
    for n in range(3):
        write(line, append({f"p{n}": n}))
    return str(tmp_path / "g")


def _strict_delete(root: str, shown: ReadSet) -> Commit | None:
    return write(line_at(root), delete(["p0"]), conditions=[shown.require_unchanged([PERSON])])


def test_strict_delete_ignores_a_rewrite_of_another_process(crew: Crew, root: str) -> None:
    line = line_at(root)
    shown = ReadSet(line.refresh().state.tables)
    assert crew(1)[0].do(write_tasks.tidy, root) is not None
    assert _strict_delete(root, shown) is not None
    assert read_branch(line)[PERSON] == [("p1", 1), ("p2", 2)]


def test_strict_delete_fails_after_an_insert_of_another_process(crew: Crew, root: str) -> None:
    line = line_at(root)
    shown = ReadSet(line.refresh().state.tables)
    version = line.last_known().state.tables[PERSON].version
    crew(1)[0].do(write_tasks.put, root, "append", {"new": 1})
    with pytest.raises(VersionConflict) as caught:
        _strict_delete(root, shown)
    assert (caught.value.expected, caught.value.actual) == (version, version + 1)
    with pytest.raises(VersionConflict):  # it is not shown by failing
        _strict_delete(root, shown)
    shown.record_read(line.refresh().state.tables)
    assert _strict_delete(root, shown) is not None


def test_strict_delete_ignores_changes_to_other_tables(crew: Crew, root: str) -> None:
    shown = ReadSet(line_at(root).refresh().state.tables)
    line = line_at(root)
    write(line, append({"c": 1}), [CITY])
    assert _strict_delete(root, shown) is not None


def test_one_of_two_racing_updates_gets_a_conflict(crew: Crew, root: str) -> None:
    line = line_at(root)
    version = line.refresh().state.tables[PERSON].version
    gate = f"{root}.gate/2"
    args = [(root, {"p0": 10}, gate), (root, {"p0": 20}, gate)]
    told = all_at_once(crew(2), write_tasks.update_what_was_shown, args)
    expected = f"ExpectedVersionMismatch {version} {version + 1}"
    assert sorted(told) == [expected, "written"]
    line.refresh()
    assert dict(read_branch(line)[PERSON])["p0"] == (10 if told[0] == "written" else 20)


def test_one_of_several_inserts_of_one_id_wins(crew: Crew, root: str) -> None:
    gate = f"{root}.gate/3"
    args = [(root, {"same": n}, gate) for n in range(3)]
    told = all_at_once(crew(3), write_tasks.insert_if_absent, args)
    assert sorted(told) == ["KeyConflict", "KeyConflict", "written"]
    assert dict(read_branch(line_at(root))[PERSON])["same"] == told.index("written")
    check_invariants(root)


def test_inserts_of_different_tables_and_ids_all_land(crew: Crew, root: str) -> None:
    gate = f"{root}.gate/3"
    args = [(root, {f"other{n}": n}, gate) for n in range(3)]
    assert all_at_once(crew(3), write_tasks.insert_if_absent, args) == ["written"] * 3


def _skew(crew: Crew, root: str, *, careful: bool) -> tuple[bool, bool]:
    write(line_at(root), append({"rome": 1}), [CITY])
    gate = f"{root}.gate/2"
    one, other = crew(2)
    one.begin(write_tasks.join_if_city, root, "rome", gate, careful)
    other.begin(write_tasks.drop_city_if_free, root, gate, careful)
    return one.result(), other.result()


def test_requirements_on_other_tables_prevent_write_skew(crew: Crew, root: str) -> None:
    joined, dropped = _skew(crew, root, careful=True)
    assert joined != dropped
    rows = read_branch(line_at(root))
    assert len(rows[CITY]) == len(rows[LIVES_IN]) == int(joined)


def test_without_requirements_write_skew_leaves_a_dangling_edge(crew: Crew, root: str) -> None:
    assert _skew(crew, root, careful=False) == (True, True)


def test_racing_writes_with_one_key_write_once(crew: Crew, root: str) -> None:
    gate = f"{root}.gate/3"
    told = all_at_once(crew(3), write_tasks.put_with_key, [(root, "k", {f"x{n}": n}, gate) for n in range(3)])
    assert len(set(told)) == 1
    assert None not in told
    assert len(read_branch(line_at(root))[PERSON]) == 4
