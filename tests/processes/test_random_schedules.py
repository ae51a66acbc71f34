"""Random writers, killed at random: every invariant holds, and no other change exists."""

import json
import multiprocessing
from datetime import timedelta
from multiprocessing.process import BaseProcess
from pathlib import Path
from random import Random

import pytest

from omnigraph.errors import OmnigraphError
from omnigraph.history.branches import list_branches, open_branch
from omnigraph.history.commit_log import HistoryLog
from omnigraph.publish import recover
from omnigraph.storage.store import Store, open_store
from tests.processes.random_writers import replay, rove
from tests.rig.depth import repeats
from tests.rig.writes import PERSON, append, check_invariants, init_small, line_at, read_branch, write


def _let_loose(root: str, seed: int, times: int, kills: int, told: str, defect: str = "") -> int:
    """Three writers; a killed one is replaced. Gives how many were killed at work."""
    spawn = multiprocessing.get_context("spawn")
    dice, killed, number = Random(seed), 0, 0

    def start() -> BaseProcess:
        nonlocal number
        number += 1
        own = 1000 * seed + number
        one = spawn.Process(target=rove, args=(root, own, times, told, defect), name=str(own))
        one.start()
        return one

    crew = [start() for _ in range(3)]
    for _ in range(kills):
        victim = dice.randrange(3)
        _at_work(crew[victim], told, dice.randrange(times // 2))
        crew[victim].join(0.03 * dice.random())
        killed += crew[victim].exitcode is None
        assert not crew[victim].exitcode
        crew[victim].kill()
        crew[victim].join()
        crew[victim] = start()
    for one in crew:
        one.join()
        assert one.exitcode == 0
    return killed


def _at_work(one: BaseProcess, told: str, count: int) -> None:
    """Wait until a writer was told of a few writes, or is through."""
    while one.exitcode is None:
        noted = Path(told).read_text().splitlines() if Path(told).exists() else []
        if sum(line.startswith(f'["{one.name}-') for line in noted) >= count:
            return
        one.join(0.01)


def _settle(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let every lease run out and recover, twice; the second time finds nothing."""
    monkeypatch.setattr("omnigraph.publish.intent.LEASE_DURATION", timedelta(seconds=-1))
    recover.recover(store)
    assert recover.recover(store) == []


def _judge(root: str, told: str) -> int:
    """Compare what writers were told, what the log says and what is there."""
    noted = [json.loads(one) for one in Path(told).read_text().splitlines()]
    refused = {who for who, outcome, *_ in noted if outcome == "refused"}
    store = open_store(root)
    for name in list_branches(store):
        line = open_branch(store, name)
        state = line.last_known().state
        log = HistoryLog(store, state)
        chain = list(log.first_parents(state.head.commit_id))[::-1]
        rows, writers = replay(chain)
        assert dict(read_branch(line)[PERSON]) == rows
        assert len(writers) == len(set(writers))
        assert refused.isdisjoint(writers)
        told_here = {commit for _, outcome, where, commit in noted if (outcome, where) == ("written", name)}
        assert told_here <= {one.id for one in chain}
        for at in range(0, len(chain), 7):
            then, _ = replay(chain[: at + 1])
            assert dict(read_branch(line, chain[at].id)[PERSON]) == then
    return len(noted)


def _run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, times: int, kills: int, seed: int, defect: str = "") -> None:
    root, told = str(tmp_path / f"g{seed}"), str(tmp_path / f"told{seed}")
    init_small(root)
    killed = _let_loose(root, seed, times, kills, told, defect)
    _settle(open_store(root, durability="os"), monkeypatch)
    noted = _judge(root, told)
    print(f"{noted} writes told, {killed} processes killed at work")
    assert noted > times
    check_invariants(root)
    assert write(line_at(root), append({"after": 1})) is not None


def test_invariants_hold_after_random_writers_and_one_kill(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _run(tmp_path, monkeypatch, times=10, kills=1, seed=1)


@pytest.mark.full
@pytest.mark.timeout(600)
@pytest.mark.parametrize("seed", range(2, 2 + repeats(2)))
def test_invariants_hold_after_random_writers_and_many_kills(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    _run(tmp_path, monkeypatch, times=70, kills=8, seed=seed)


@pytest.mark.full
@pytest.mark.timeout(600)
@pytest.mark.parametrize("defect", ["replay", "acknowledge"])
def test_a_planted_defect_is_caught(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, defect: str) -> None:
    """Planted: a lost write is replayed without a check; a lost swap is acknowledged.

    Chance decides when a defect shows, so that a few runs may pass before it does.
    """
    with pytest.raises((AssertionError, OmnigraphError)):
        _run_often(tmp_path, monkeypatch, defect)


def _run_often(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, defect: str) -> None:
    for seed in range(20, 26):
        _run(tmp_path, monkeypatch, times=40, kills=3, seed=seed, defect=defect)
