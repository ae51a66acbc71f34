"""Many concurrent writers: every acknowledged write exists once, and nothing else."""

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from omnigraph.history import branches
from omnigraph.history.commit import Commit
from omnigraph.history.commit_log import HistoryLog
from omnigraph.publish import branch_lifecycle
from omnigraph.storage.store import open_store
from tests.processes.conftest import Crew
from tests.processes.worker_processes import Hand, all_at_once
from tests.processes.write_tasks import Told, insert_many, lost_swaps
from tests.rig.plugin import S3
from tests.rig.writes import PERSON, append, check_invariants, init_small, line_at, read_branch, write


def _everything_is_there_once(root: str, told: Sequence[Told], branch: str = "main") -> None:
    line = line_at(root, branch)
    state = line.refresh().state
    chain = list(HistoryLog(line.store, state).first_parents(state.head.commit_id))
    acknowledged = {one.id: one for each in told for one in each.commits}
    assert [one for one in chain if one.operation != "init"] == [
        acknowledged[one.id] for one in chain if one.operation != "init"
    ]
    assert len(chain) == len(acknowledged) + 1
    rows = [name for name, _ in read_branch(line)[PERSON]]
    wanted = [f"w{n}-{i}" for n, each in enumerate(told) for i in range(len(each.commits))]
    assert sorted(rows) == sorted(wanted)


def _on_one_branch(crew: Crew, root: str, writers: int, count: int) -> None:
    args = [(root, "main", f"w{n}", count) for n in range(writers)]
    told: list[Told] = all_at_once(crew(writers), insert_many, args)
    _everything_is_there_once(root, told)
    conflicts, lost = sum(one.conflicts for one in told), sum(one.lost for one in told)
    print(f"{writers} x {count}: {conflicts} conflicts, {lost} lost swaps")


def test_writes_of_several_processes_exist_once(crew: Crew, tmp_path: Path) -> None:
    root = str(tmp_path / "g")
    init_small(root)
    _on_one_branch(crew, root, 4, 12)
    check_invariants(root)


@pytest.mark.full
@pytest.mark.timeout(600)
def test_writes_of_eight_processes_exist_once(crew: Crew, tmp_path: Path) -> None:
    root = str(tmp_path / "g")
    init_small(root)
    _on_one_branch(crew, root, 8, 50)
    check_invariants(root)


@contextmanager
def _fresh_crew() -> Iterator[Crew]:
    """Eight hands that know where the server of this test is."""
    hands = [Hand() for _ in range(8)]
    try:
        yield lambda count: hands[:count]
    finally:
        for hand in hands:
            hand.dismiss()


@pytest.mark.full
@pytest.mark.timeout(1200)
def test_writes_of_eight_processes_on_s3_exist_once(s3: S3) -> None:
    init_small(s3.url)
    with _fresh_crew() as crew:
        _on_one_branch(crew, s3.url, 8, 50)


def _on_many_branches(crew: Crew, root: str, writers: int, count: int) -> None:
    store = init_small(root)
    names = [f"b{n}" for n in range(writers)]
    for name in names:
        branch_lifecycle.create_branch(store, name, branches.open_branch(store, "main"))
    args = [(root, name, f"w{n}", count) for n, name in enumerate(names)]
    told: list[Told] = all_at_once(crew(writers), insert_many, args)
    conflicts, lost = sum(one.conflicts for one in told), sum(one.lost for one in told)
    print(f"{writers} branches x {count}: {conflicts} conflicts, {lost} lost swaps")
    assert (conflicts, lost) == (0, 0)
    for n, name in enumerate(names):
        assert sorted(read_branch(line_at(root, name))[PERSON]) == sorted((f"w{n}-{i}", 1) for i in range(count))


def test_writers_on_different_branches_do_not_conflict(crew: Crew, tmp_path: Path) -> None:
    _on_many_branches(crew, str(tmp_path / "g"), 4, 6)
    check_invariants(tmp_path / "g")


@pytest.mark.full
def test_eight_writers_on_different_branches_do_not_conflict(crew: Crew, tmp_path: Path) -> None:
    _on_many_branches(crew, str(tmp_path / "g"), 8, 50)


@pytest.mark.full
@pytest.mark.timeout(1200)
def test_eight_writers_on_different_branches_do_not_conflict_on_s3(s3: S3) -> None:
    with _fresh_crew() as crew:
        _on_many_branches(crew, s3.url, 8, 50)
    check_invariants(s3.url)


def _threads(root: str, threads: int, count: int) -> list[Commit]:
    init_small(root)
    line, done = line_at(root), list[Commit]()
    failed: list[BaseException] = []

    def work(n: int) -> None:
        try:
            for i in range(count):
                made = write(line_at(root), append({f"t{n}-{i}": 1}))
                assert made is not None
                done.append(made)
        except BaseException as error:
            failed.append(error)

    workers = [threading.Thread(target=work, args=(n,)) for n in range(threads)]
    for one in workers:
        one.start()
    for one in workers:
        one.join()
    assert failed == []
    print(f"{threads} threads x {count}: 0 conflicts, {lost_swaps(line)} lost swaps")
    assert lost_swaps(line) == 0
    return done


def test_threads_of_one_process_are_serialised(tmp_path: Path) -> None:
    done = _threads(str(tmp_path / "g"), 16, 6)
    assert len(done) == len({one.id for one in done}) == 96
    assert len(read_branch(line_at(tmp_path / "g"))[PERSON]) == 96
    check_invariants(tmp_path / "g", acknowledged=done)


@pytest.mark.full
def test_many_threads_of_one_process_are_serialised(tmp_path: Path) -> None:
    assert len(_threads(str(tmp_path / "g"), 16, 50)) == 800


def test_writers_of_different_tables_share_one_history(tmp_path: Path) -> None:
    from tests.rig.writes import TABLES

    root = str(tmp_path / "g")
    init_small(root)
    lines = [line_at(root) for _ in range(8)]
    keys = [TABLES[n % len(TABLES)] for n in range(8)]
    threads = [threading.Thread(target=write, args=(lines[n], append({f"r{n}": n}), (keys[n],))) for n in range(8)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    state = line_at(root).refresh().state
    chain = HistoryLog(open_store(root), state).first_parents(state.head.commit_id)
    assert [one.operation for one in chain] == ["insert"] * 8 + ["init"]
