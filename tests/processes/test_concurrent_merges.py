"""Merges beside writes and other merges: the winner is specified, and nothing is lost."""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread, current_thread
from typing import Any

import pytest

import omnigraph
from omnigraph.api.graph import Graph
from omnigraph.errors import ReadSetConflict
from omnigraph.history.machine_queue import MachineQueue
from omnigraph.storage.effects import Effects
from tests.processes.conftest import Crew
from tests.processes.merge_tasks import SCHEMA, Merges, merge_once, merge_rounds, merge_with_key, opened, write_rounds
from tests.rig.invariants import check_invariants
from tests.rig.timeouts import PATIENCE

LOST = {"ReadSetChanged", "RowLevelCasContention"}


def made(root: Path, branches: int = 0) -> Graph:
    """A small graph with some branches."""
    graph = omnigraph.init(root, SCHEMA, durability="os")
    graph.insert("Person", *({"name": f"m{n}", "n": -1} for n in range(max(4, branches))))
    for n in range(branches):
        graph.branches.create(f"m{n}")
    return graph


def names(graph: Graph) -> dict[str, Any]:
    """Everybody in a graph, with their numbers."""
    rows = graph.refresh().query("match { $p: Person } return { $p.name as name, $p.n as n }")
    return {row["name"]: row["n"] for row in rows}


def race(crew: Crew, root: Path, mergers: int, writers: int, rounds: int) -> list[Merges]:
    """Mergers of own branches beside writers, all into main; checks what is there afterward."""
    graph = made(root, mergers)
    hands = crew(mergers + writers)
    for n, hand in enumerate(hands):
        merges = n < mergers
        deed, who = (merge_rounds, f"m{n}") if merges else (write_rounds, f"w{n}")
        hand.begin(deed, str(root), who, rounds)
    told: list[Merges] = [hand.result() for hand in hands]
    wanted = {f"m{n}": rounds - 1 for n in range(mergers)}
    wanted |= {f"m{n}": -1 for n in range(mergers, 4)}
    every = [f"{'m' if n < mergers else 'w'}{n}" for n in range(mergers + writers)]
    wanted |= {f"{who}-{at}": at for who in every for at in range(rounds)}
    assert names(graph) == wanted
    known = graph.log()
    acknowledged = Counter(one for each in told for one in each.commits)
    assert set(acknowledged.values()) == {1}
    assert acknowledged.keys() <= {one.id for one in known}
    brought = Counter(one.merged_parent for one in known if one.operation == "merge")
    assert set(brought.values()) == {1}, "a state of a branch was merged twice"
    assert len(brought) == mergers * rounds
    assert {code for each in told for code in each.losses} <= LOST
    return told


def test_merges_and_writes_to_one_target_all_land(crew: Crew, tmp_path: Path) -> None:
    race(crew, tmp_path / "g", mergers=3, writers=1, rounds=3)
    check_invariants(tmp_path / "g")


@pytest.mark.full
@pytest.mark.timeout(1200)
def test_many_merges_and_writes_to_one_target_all_land(
    crew: Crew, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    told = race(crew, tmp_path / "g", mergers=5, writers=3, rounds=20)
    with capsys.disabled():
        lost = Counter(code for each in told for code in each.losses)
        refused = sum(one.operation == "refused" for one in opened(str(tmp_path / "g")).log())
        print(f"\n5 mergers, 3 writers, 20 rounds: lost {dict(lost)}, {refused} refusals in the log")
    check_invariants(tmp_path / "g")


def test_concurrent_merges_of_one_branch_land_once(crew: Crew, tmp_path: Path) -> None:
    graph = made(tmp_path / "g", 1)
    graph.checkout("m0").insert("Person", {"name": "new"})
    graph.insert("Person", {"name": "own"})
    hands = crew(4)
    for hand in hands:
        hand.begin(merge_once, str(tmp_path / "g"), "m0", "main")
    told = [hand.result() for hand in hands]
    assert [outcome for outcome, _ in told].count("merged") == 1
    assert {outcome for outcome, _ in told} <= {"merged", "already_up_to_date", *LOST}
    assert {"new", "own"} <= names(graph).keys()
    assert [one.operation for one in graph.log()].count("merge") == 1
    check_invariants(tmp_path / "g")


def test_processes_that_merge_with_the_same_key_get_the_same_result(crew: Crew, tmp_path: Path) -> None:
    graph = made(tmp_path / "g", 1)
    graph.checkout("m0").insert("Person", {"name": "new"})
    graph.insert("Person", {"name": "own"})
    hands = crew(4)
    for hand in hands:
        hand.begin(merge_with_key, str(tmp_path / "g"), "m0", "main", "k")
    results = [hand.result() for hand in hands]
    assert [result[:-1] for result in results] == [results[0][:-1]] * 4
    assert sorted(result[-1] for result in results) == [False, True, True, True]
    assert results[0][0] == "merged"
    assert [commit.operation for commit in graph.refresh().log()].count("merge") == 1
    check_invariants(tmp_path / "g")


class Held:
    """A merge in a thread that stands still before its first file."""

    def __init__(self, graph: Graph, source: str, target: str) -> None:
        self.here, self.on = Event(), Event()
        self.result: Any = None
        self.error: Exception | None = None
        self.thread = Thread(target=self._merge, args=(graph, source, target))
        effects = graph._handle.store.effects
        effects.run = self._run(effects)  # type: ignore[method-assign]
        self.thread.start()
        assert self.here.wait(PATIENCE)

    def _run(self, effects: Effects) -> Any:
        whole = effects.run

        def run(kind: Any, target: str, action: Any) -> Any:
            if current_thread() is self.thread and kind in ("stage", "mark"):
                self.here.set()
                assert self.on.wait(PATIENCE)
            return whole(kind, target, action)

        return run

    def _merge(self, graph: Graph, source: str, target: str) -> None:
        try:
            self.result = graph.merge(source, target)
        except Exception as error:
            self.error = error

    def released(self) -> "Held":
        """Let it go on, and wait until it has ended."""
        self.on.set()
        self.thread.join(PATIENCE)
        return self


def apart(root: Path) -> Graph:
    """Two pairs of branches that have gone apart."""
    graph = made(root, 4)
    for n in range(4):
        graph.checkout(f"m{n}").insert("Person", {"name": f"new{n}"})
    return graph


def test_merges_into_other_targets_are_not_blocked(tmp_path: Path) -> None:
    graph = apart(tmp_path / "g")
    held = Held(opened(str(tmp_path / "g")), "m0", "m1")
    done = opened(str(tmp_path / "g")).merge("m2", "m3")
    assert done.outcome == "merged"
    assert held.thread.is_alive()
    assert held.released().result.outcome == "merged"
    assert {"new0", "new1"} <= names(graph.checkout("m1")).keys()
    check_invariants(tmp_path / "g")


def test_merge_overtaken_while_staging_fails_and_can_be_retried(tmp_path: Path) -> None:
    graph = apart(tmp_path / "g")
    slow = opened(str(tmp_path / "g"))
    held = Held(slow, "m0", "m1")
    opened(str(tmp_path / "g"), "m1").insert("Person", {"name": "quick"})
    assert held.thread.is_alive()
    assert isinstance(held.released().error, ReadSetConflict)
    target = graph.checkout("m1")
    assert names(target).keys() == {"m0", "m1", "m2", "m3", "new1", "quick"}
    assert slow.merge("m0", "m1").outcome == "merged"
    assert names(target).keys() == {"m0", "m1", "m2", "m3", "new0", "new1", "quick"}
    check_invariants(tmp_path / "g")


def test_merge_uses_the_source_as_of_its_start(tmp_path: Path) -> None:
    graph = apart(tmp_path / "g")
    held = Held(opened(str(tmp_path / "g")), "m0", "m1")
    before = graph.checkout("m0").head.id
    opened(str(tmp_path / "g"), "m0").insert("Person", {"name": "late"})
    done = held.released().result
    assert done.commit.merged_parent == before
    assert "late" not in names(graph.checkout("m1"))
    assert graph.merge("m0", "m1").outcome == "merged"
    assert "late" in names(graph.checkout("m1"))


def test_recreated_source_is_a_different_branch(tmp_path: Path) -> None:
    """Deleted and made again after it was captured, before anything was written."""
    graph = apart(tmp_path / "g")
    session = graph.branches.merge_session("m0", "m1")
    assert session.conflicts == ()
    graph.branches.delete("m0", force=True)
    graph.branches.create("m0", from_="m2")
    with pytest.raises(ReadSetConflict) as caught:
        session.commit()
    assert caught.value.member == "source_branch"
    assert "new2" not in names(graph.checkout("m1"))
    check_invariants(tmp_path / "g")


def test_merge_waits_for_its_turn_before_it_reads_the_target(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    graph = made(tmp_path / "g", 1)
    graph.checkout("m0").insert("Person", {"name": "new"})
    turns: list[str] = []

    @contextmanager
    def turn(_: MachineQueue) -> Iterator[bool]:
        turns.append("begin")
        # As if another process had written while this one was waiting: the merge sees it and does not lose.
        opened(str(tmp_path / "g")).insert("Person", {"name": "beside"})
        yield True
        turns.append("end")

    monkeypatch.setattr(MachineQueue, "turn", turn)
    graph.merge("m0", dry_run=True)
    assert turns == []
    assert graph.merge("m0").outcome == "merged"
    assert turns == ["begin", "end"]
    assert {"new", "beside"} <= names(graph).keys()
