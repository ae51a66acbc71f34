"""Cleanup without grace and optimize, beside processes that write, branch, tag and read.

Any of them may be killed at any moment. Whatever was acknowledged is there, whatever is retained
can be read, a check finds no file missing, and optimize is never starved.
"""

import multiprocessing
import os
import random
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from multiprocessing.connection import wait
from multiprocessing.process import BaseProcess as Process
from pathlib import Path

import pytest

from omnigraph.history.branch_state import BranchState
from omnigraph.history.branches import list_branches, open_branch
from omnigraph.history.commit_log import HistoryLog
from omnigraph.history.tags import list_tags, open_tag
from omnigraph.maintenance.check import check_graph
from omnigraph.maintenance.index_maintenance import MAINTENANCE_ACTOR
from omnigraph.maintenance.retention import claim
from omnigraph.maintenance.retention.collect_garbage import cleanup, preview_cleanup
from omnigraph.publish import intent as intents
from omnigraph.publish.recover import recover
from omnigraph.storage.store import Store, open_store
from tests.maintenance.retention.graph_workers import POLICY, Part, retained_commits, work
from tests.maintenance.retention.shared_clock import SharedClock, by, clock_at, has_seen
from tests.rig.depth import DEPTH, repeats
from tests.rig.invariants import check_invariants
from tests.rig.writes import TABLES, append, init_small, read_branch, read_rows, write

_SPAWN = multiprocessing.get_context("spawn")
Team = Sequence[Part]
WRITES = 4  # that make a tick
CLEANUPS = 5  # that finish beside kills
IDLE = 0.5  # seconds of the machine without a word: all wait for time to pass
SECONDS = float(os.environ.get("OMNIGRAPH_LIVE_SECONDS", str(60 * DEPTH)))


@dataclass(frozen=True, slots=True)
class Plan:
    """How long: until writers have written all they shall, so many seconds, or so many ticks.

    `again` is how often somebody ends in the first case, `every` the seconds between two kills in
    the second, `kills` their number in the third, in which a tick comes with every few writes.
    """

    again: int = 1
    seconds: float = 0
    every: float = 5
    seed: int = 0
    ticks: int = 0
    kills: int = 4


def play(place: Path, teams: Sequence[Team], plan: Plan) -> list[list[str]]:
    """Let processes work; one that ended in the midst of it is replaced."""
    root = str(place / "g")
    line = open_branch(init_small(root), "main")
    for n in range(3):
        write(line, append({f"start{n}": n}), TABLES)
    crew = {begin(root, team, place): team for team in teams}
    if plan.ticks:
        _by_ticks(root, crew, place, plan)
    elif plan.seconds:
        _for_a_while(root, crew, place, plan)
    else:
        _until_written(root, crew, place, plan.again)
    (place / "over").touch()
    for child in crew:
        child.join()
    lines = [line for one in sorted(place.glob("diary-*")) for line in one.read_text().splitlines()]
    return [line.split(" ") for line in lines]


def _until_written(root: str, crew: dict[Process, Team], place: Path, again: int) -> None:
    """Until all is written, and until the collector came to an end once, however slow it is."""
    while any(team[0].job == "write" for team in crew.values()) or not _has_cleaned(place):
        wait([one.sentinel for one in crew], timeout=0.5)
        for child in [one for one in crew if not one.is_alive()]:
            team = crew.pop(child)
            if child.exitcode == 9:
                again = max(0, again - 1)
                after = [replace(one, cut=again and 3 * one.cut) for one in team]
                crew[begin(root, after, place)] = after


def _has_cleaned(place: Path, times: int = 1) -> bool:
    return sum(one.read_text().count("cleaned ") for one in place.glob("diary-*")) >= times


def _for_a_while(root: str, crew: dict[Process, Team], place: Path, plan: Plan) -> None:
    """Kill somebody now and then, in the midst of whatever it does."""
    chance, end = random.Random(plan.seed), time.monotonic() + plan.seconds
    while time.monotonic() < end:
        time.sleep(plan.every * 2 * chance.random())
        _replace(root, crew, chance.choice(list(crew)), place)


def _by_ticks(root: str, crew: dict[Process, Team], place: Path, plan: Plan) -> None:
    """Let time pass as work is done, and kill somebody at some of the ticks."""
    chance, clock = random.Random(plan.seed), clock_at(place)
    assert clock is not None
    jobs = list(dict.fromkeys(team[0].job for team in crew.values()))
    kills = [jobs[n % len(jobs)] for n in range(plan.kills)]
    due = sorted(chance.sample(range(2, plan.ticks - 1), plan.kills))
    worked = 0
    while worked < plan.ticks or not _has_cleaned(place, CLEANUPS):
        worked += _has_worked(place, clock, (worked + 1) * WRITES)
        _await(lambda: has_seen(place, [one.pid or 0 for one in crew], clock.tick), crew)
        clock.advance_once()
        if due and worked >= due[0]:
            due.pop(0)
            job = kills.pop(0)
            child = chance.choice([one for one, team in crew.items() if team[0].job == job])
            _replace(root, crew, child, place)


def _has_worked(place: Path, clock: SharedClock, writes: int) -> bool:
    """Wait for the next few writes; False when all seem to wait for time to pass."""
    before, rested = b"", time.monotonic() + IDLE
    while True:
        told = b"".join(one.read_bytes() for one in place.glob("diary-*"))
        if told.count(b"wrote ") >= writes:
            return True
        if told != before:
            before, rested = told, time.monotonic() + IDLE
        if time.monotonic() > rested:
            return False
        time.sleep(0.02)


def _await(happens: Callable[[], bool], crew: dict[Process, Team]) -> None:
    while not happens():
        ended = [one.exitcode for one in crew if not one.is_alive()]
        assert not ended, f"a process ended by itself: {ended}"
        time.sleep(0.02)


def _replace(root: str, crew: dict[Process, Team], child: Process, place: Path) -> None:
    """Kill a process in the midst of whatever it does; another goes on in its place."""
    child.kill()
    child.join()
    team = [replace(one, seed=one.seed + 1000) for one in crew.pop(child)]
    crew[begin(root, team, place)] = team


def begin(root: str, team: Sequence[Part], place: Path) -> Process:
    child = _SPAWN.Process(target=work, args=(root, list(team), str(place)))
    child.start()
    return child


def judge(place: Path, told: list[list[str]], patch: pytest.MonkeyPatch) -> None:
    """Nothing that was promised is missing, and when all is quiet nothing is left over."""
    assert [one for one in told if one[0] == "FAILED"] == []
    patch.setattr(intents, "LEASE_DURATION", timedelta(seconds=-1000))
    patch.setattr(claim, "CLAIM_LEASE", timedelta(seconds=-1000))
    store = open_store(str(place / "g"), durability="os")
    recover(store)
    for _ in range(2):
        assert not cleanup(store, POLICY).failed
    lines = {line.ulid: line for line in (open_branch(store, name) for name in list_branches(store))}
    rows = {ulid: _ids(read_branch(line)) for ulid, line in lines.items()}
    for word, *facts in told:
        if word == "wrote" and facts[0] in rows:
            assert facts[1] in rows[facts[0]], f"an acknowledged write is lost: {facts}"
    read_retained(store, lines.values())
    assert preview_cleanup(store, POLICY).datasets == ()
    assert [one.name for top in ("__gc", "__recovery") for one in store.objects.list(top)] == []
    check_invariants(place / "g")
    # Edges of these tests have no nodes; everything else must be as it should be.
    wrong = [one for one in check_graph(store).findings if one.kind != "endpoint"]
    assert wrong == []


def read_retained(store: Store, lines: Iterable[BranchState]) -> None:
    """Everything that a cleanup promises to keep can be read."""
    for line in lines:
        for one in retained_commits(store, line.refresh().state):
            read_branch(line, one.id)
    for tag in list_tags(store):
        for entry in open_tag(store, tag.name).tables.values():
            read_rows(store, entry)


def gaps(place: Path) -> list[int]:
    """How many commits of others came between two of optimize, on main, the last ones included."""
    store = open_store(str(place / "g"))
    state = open_branch(store, "main").refresh().state
    found = [0]
    for one in HistoryLog(store, state).first_parents(state.head.commit_id):
        if one.actor == MAINTENANCE_ACTOR:
            found.append(0)
        else:
            found[-1] += 1
    return found


def _ids(tables: dict[str, list[tuple[str, int]]]) -> set[str]:
    return {one for rows in tables.values() for one, _ in rows}


def counted(told: list[list[str]], word: str) -> int:
    return sum(1 for one in told if one[0] == word)


def crew(count: int, seed: int, cut: int) -> list[Team]:
    """Four writers in two processes; two readers, a collector and who tends tables in a third."""
    chance = random.Random(seed)
    writers = [Part("write", seed + n, count) for n in range(4)]
    first = replace(writers[0], cut=chance.randrange(cut // 2, cut))
    rest = [Part("clean", seed + 9, cut=chance.randrange(cut // 2, cut)), Part("tend", seed + 8)]
    rest += [Part("read", seed + n) for n in (5, 6)]
    return [[first, writers[1]], writers[2:], rest]


def everybody(seed: int) -> list[Team]:
    """Each in a process of its own: four writers, two readers, a collector, who tends tables."""
    jobs = [*["write"] * 4, *["read"] * 2, "clean", "tend"]
    return [[Part(job, seed + n)] for n, job in enumerate(jobs)]


def apart_but_readers(seed: int) -> list[Team]:
    """Four writers, a collector and who tends tables, each in a process; two readers in one."""
    alone = [[Part(job, seed + n)] for n, job in enumerate([*["write"] * 4, "clean", "tend"])]
    return [*alone, [Part("read", seed + 7), Part("read", seed + 8)]]


def in_few_processes(seed: int) -> list[Team]:
    """Three writers in two processes, a collector in a third; who tends tables, and a reader."""
    jobs = (("write", "write"), ("write",), ("clean",), ("tend", "read"))
    return [[Part(job, seed + 10 * n + m) for m, job in enumerate(j)] for n, j in enumerate(jobs)]


def _some_ticks(place: Path, patch: pytest.MonkeyPatch, teams: list[Team], plan: Plan) -> None:
    (place / "ticks").touch()
    clock = clock_at(place)
    assert clock is not None
    with by(clock, 1):
        told = play(place, teams, plan)
        judge(place, told, patch)
    assert counted(told, "wrote") >= plan.ticks * WRITES
    assert counted(told, "cleaned") >= CLEANUPS
    assert min(counted(told, one) for one in ("optimized", "read")) > 0
    assert max(gaps(place)) <= 100


@pytest.mark.timeout(600)
def test_retained_data_survives_cleanup_beside_workers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _some_ticks(tmp_path, monkeypatch, in_few_processes(7), Plan(ticks=14, kills=2))


@pytest.mark.full
@pytest.mark.timeout(1200)
def test_retained_data_survives_cleanup_beside_workers_in_processes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _some_ticks(tmp_path, monkeypatch, apart_but_readers(7), Plan(ticks=32, kills=3))


@pytest.mark.full
@pytest.mark.timeout(300)
def test_retained_data_survives_a_short_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told = play(tmp_path, crew(30, 7, 80), Plan())
    judge(tmp_path, told, monkeypatch)
    assert counted(told, "wrote") > 40
    assert counted(told, "cleaned") > 0
    assert max(gaps(tmp_path)) <= 100


@pytest.mark.full
@pytest.mark.timeout(3000)
@pytest.mark.parametrize("seed", range(repeats(1)))
def test_retained_data_survives_a_long_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    told = play(tmp_path, crew(250, seed * 100, 500), Plan(again=8))
    judge(tmp_path, told, monkeypatch)
    assert counted(told, "cleaned") > 0


@pytest.mark.full
@pytest.mark.timeout(3000)
def test_retained_data_survives_minutes_of_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    told = play(tmp_path, everybody(11), Plan(seconds=SECONDS))
    with capsys.disabled():
        words = Counter(one[0] for one in told)
        print(f"\n{dict(words)}; commits between two of optimize: {sorted(gaps(tmp_path))[-5:]}")
    judge(tmp_path, told, monkeypatch)
    assert counted(told, "cleaned") > 0
    commits = gaps(tmp_path)
    assert sum(commits) <= 100 * (len(commits) - 1), "optimize was starved"
