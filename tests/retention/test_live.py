"""Cleanup without grace beside processes that write, branch, tag, read and are killed."""

import multiprocessing
import random
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from multiprocessing.connection import wait
from multiprocessing.process import BaseProcess as Process
from pathlib import Path

import pytest

from omnigraph.history import intent as intents
from omnigraph.history.branches import list_branches, open_line
from omnigraph.history.recover import recover
from omnigraph.history.retention import claim
from omnigraph.history.retention.collect import cleanup, preview
from omnigraph.history.tags import list_tags, open_tag
from omnigraph.storage.store import open_store
from tests.retention.crew import POLICY, Part, work
from tests.rig.invariants import check_invariants
from tests.rig.writes import TABLES, append, init_small, read_branch, read_rows, write

_SPAWN = multiprocessing.get_context("spawn")
Team = Sequence[Part]


def play(place: Path, teams: Sequence[Sequence[Part]], again: int = 1) -> list[list[str]]:
    """Let processes work; one that ended in the midst of it is replaced, `again` and again."""
    root = str(place / "g")
    line = open_line(init_small(root), "main")
    for n in range(3):
        write(line, append({f"start{n}": n}), TABLES)
    crew = {begin(root, team, place): team for team in teams}
    while any(team[0].job == "write" for team in crew.values()):
        wait([one.sentinel for one in crew])
        for child in [one for one in crew if not one.is_alive()]:
            team = crew.pop(child)
            if child.exitcode == 9:
                again = max(0, again - 1)
                after = [replace(one, cut=again and 3 * one.cut) for one in team]
                crew[begin(root, after, place)] = after
    (place / "over").touch()
    for child in crew:
        child.join()
    lines = [line for one in sorted(place.glob("diary-*")) for line in one.read_text().splitlines()]
    return [line.split(" ") for line in lines]


def begin(root: str, team: Sequence[Part], place: Path) -> Process:
    child = _SPAWN.Process(target=work, args=(root, list(team), str(place)))
    child.start()
    return child


def judge(place: Path, told: list[list[str]], patch: pytest.MonkeyPatch) -> None:
    """Nothing that was promised is missing, and when all is quiet nothing is left over."""
    assert [one for one in told if one[0] == "FAILED"] == []
    patch.setattr(intents, "LEASE", timedelta(seconds=-1000))
    patch.setattr(claim, "ABANDONED", timedelta(seconds=-1000))
    store = open_store(str(place / "g"), durability="os")
    recover(store)
    for _ in range(2):
        assert not cleanup(store, POLICY).failed
    lines = {line.ulid: line for line in (open_line(store, name) for name in list_branches(store))}
    rows = {ulid: _ids(read_branch(line)) for ulid, line in lines.items()}
    for word, *facts in told:
        if word == "wrote" and facts[0] in rows:
            assert facts[1] in rows[facts[0]], f"an acknowledged write is lost: {facts}"
    for tag in list_tags(store):
        for entry in open_tag(store, tag.name).tables.values():
            read_rows(store, entry)
    assert preview(store, POLICY).datasets == ()
    assert store.objects.list("__gc") == []
    check_invariants(place / "g")


def _ids(tables: dict[str, list[tuple[str, int]]]) -> set[str]:
    return {one for rows in tables.values() for one, _ in rows}


def counted(told: list[list[str]], word: str) -> int:
    return sum(1 for one in told if one[0] == word)


def crew(count: int, seed: int, cut: int) -> list[Team]:
    """Four writers in two processes, two readers and a collector in a third."""
    chance = random.Random(seed)
    writers = [Part("write", seed + n, count) for n in range(4)]
    first = replace(writers[0], cut=chance.randrange(cut // 2, cut))
    rest = [Part("clean", seed + 9, cut=chance.randrange(cut // 2, cut))]
    rest += [Part("read", seed + n) for n in (5, 6)]
    return [[first, writers[1]], writers[2:], rest]


@pytest.mark.timeout(300)
def test_a_short_while(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told = play(tmp_path, crew(30, 7, 80))
    judge(tmp_path, told, monkeypatch)
    assert counted(told, "wrote") > 40
    assert counted(told, "cleaned") > 0


@pytest.mark.full
@pytest.mark.timeout(3000)
@pytest.mark.parametrize("seed", range(10))
def test_a_long_while(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    told = play(tmp_path, crew(250, seed * 100, 500), again=8)
    judge(tmp_path, told, monkeypatch)
    assert counted(told, "cleaned") > 0
