"""A merge, revert, reset or schema change that is cut off anywhere, and repeated with its key, is applied once."""

import multiprocessing
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from functools import partial
from pathlib import Path
from typing import Any, Literal

import pytest

import omnigraph
from omnigraph import Graph
from omnigraph.errors import OmnigraphError
from omnigraph.history.machine_queue import MachineQueue
from omnigraph.storage.effects import DurableEffect, Fault
from omnigraph.storage.store import Durability
from tests.crash.verbs import EXIT, overdue
from tests.rig.invariants import check_invariants

SCHEMA = "node Person { name: String @key  age: I32? }"
WIDER = "node Person { name: String @key  age: I64?  town: String? }"
Request = Callable[[Graph], Any]
REQUESTS: dict[str, Request] = {
    "merge": lambda graph: graph.merge("dev", strategy="theirs", delete_branch=True, idempotency_key="k"),
    "fast-forward": lambda graph: graph.merge("draft", delete_branch=True, idempotency_key="k"),
    "revert": lambda graph: graph.revisions.revert("HEAD", idempotency_key="k"),
    "reset": lambda graph: graph.branches.reset("main", to="HEAD~1", idempotency_key="k"),
    "schema": lambda graph: graph.schema.apply(WIDER, idempotency_key="k"),
}
_SPAWN = multiprocessing.get_context("spawn")


def _open(root: Path, durability: Durability = "os") -> Graph:
    return omnigraph.open(root, durability=durability)


@pytest.fixture(scope="module")
def start(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A graph whose branch `dev` disagrees with `main`, and whose branch `draft` does not."""
    root = tmp_path_factory.mktemp("start") / "g"
    graph = omnigraph.init(root, SCHEMA, durability="os")
    graph.insert("Person", {"name": "ada", "age": 1}, {"name": "bob", "age": 2})
    graph.branches.create("dev").upsert("Person", {"name": "ada", "age": 2}, {"name": "cyd"})
    graph.upsert("Person", {"name": "ada", "age": 3})
    graph.branches.create("draft").insert("Person", {"name": "dee"})
    return root


@pytest.fixture
def copies(start: Path, tmp_path: Path) -> Callable[[], Path]:
    """Make copies of the graph at the start."""
    numbers = iter(range(1000))
    return lambda: shutil.copytree(start, tmp_path / f"g{next(numbers)}")


def _effects(name: str, root: Path) -> list[DurableEffect]:
    graph = _open(root)
    with graph._handle.store.effects.recording() as effects:
        REQUESTS[name](graph)
    return effects


def _describe(outcome: Any) -> tuple[Any, ...]:
    members = outcome.to_json() if hasattr(outcome, "to_json") else outcome.stats
    deletion = getattr(outcome, "branch_deleted", None), getattr(outcome, "branch_delete_error", None)
    return outcome.commit, members, deletion


def _published(graph: Graph) -> list[str]:
    return [commit.id for commit in graph.refresh().log() if commit.key == "k"]


def _check_repeat(name: str, root: Path) -> None:
    """Repeat a request as another process would, after all leases have run out."""
    with overdue():
        graph = _open(root, "fsync")
        graph.insert("Person", {"name": "later"})
        first = REQUESTS[name](graph)
        again = REQUESTS[name](_open(root, "fsync"))
    assert first.commit is not None
    assert again.replayed
    assert _describe(again) == _describe(first)
    assert _published(graph) == [first.commit.id]
    assert getattr(first, "branch_delete_error", None) is None
    check_invariants(root)


@pytest.mark.parametrize("name", REQUESTS)
def test_a_request_that_fails_anywhere_can_be_repeated(name: str, copies: Callable[[], Path]) -> None:
    modes: tuple[Literal["before", "after"], ...] = ("before", "after")
    number_of_effects = len(_effects(name, copies()))
    for at in range(1, number_of_effects + 1):
        root = copies()
        graph = _open(root)
        fault = Fault(at, modes[at % 2])
        with overdue(), graph._handle.store.effects.failing(fault), suppress(OmnigraphError, OSError):
            REQUESTS[name](graph)
        _check_repeat(name, root)


def _run_and_die(name: str, root: str, at: int) -> None:
    graph = _open(Path(root))
    with graph._handle.store.effects.failing(Fault(at, "exit")):
        REQUESTS[name](graph)


def _kill(name: str, root: Path, at: int) -> None:
    child = _SPAWN.Process(target=_run_and_die, args=(name, str(root), at))
    child.start()
    child.join()
    assert child.exitcode == EXIT


@pytest.mark.parametrize("name", ["merge", "schema"])
def test_a_process_killed_between_the_commit_and_the_answer(name: str, copies: Callable[[], Path]) -> None:
    kinds = [effect.kind for effect in _effects(name, copies())]
    published_at = kinds.index("publish") + 1
    root = copies()
    _kill(name, root, published_at)
    assert len(_published(_open(root))) == 1
    _check_repeat(name, root)


@pytest.mark.full
@pytest.mark.parametrize("name", REQUESTS)
def test_a_process_killed_anywhere(name: str, copies: Callable[[], Path]) -> None:
    for at in range(1, len(_effects(name, copies())) + 1):
        root = copies()
        _kill(name, root, at)
        _check_repeat(name, root)


@pytest.mark.parametrize("name", REQUESTS)
def test_the_same_request_on_another_machine_overtakes_anywhere(
    name: str, copies: Callable[[], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(MachineQueue, "turn", lambda _: nullcontext(False))  # the queue works only on one machine
    for at in range(1, len(_effects(name, copies())) + 1):
        root = copies()
        graph = _open(root)
        overtaking = _overtake(graph, at, partial(_run_elsewhere, name, root))
        outcome, other = REQUESTS[name](graph), overtaking[0]
        assert outcome.commit == other.commit
        assert _describe(outcome)[1] == _describe(other)[1]
        assert (outcome.replayed, other.replayed).count(True) == 1
        assert _published(graph) == [outcome.commit.id]
        check_invariants(root)


def test_the_same_merge_overtakes_while_this_one_waits_for_its_turn(
    copies: Callable[[], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    root, outcomes = copies(), list[Any]()

    @contextmanager
    def turn(_: MachineQueue) -> Iterator[bool]:
        monkeypatch.setattr(MachineQueue, "turn", lambda _: nullcontext(False))
        outcomes.append(_open(root, "fsync").merge("draft", idempotency_key="k"))
        yield True

    graph = _open(root)
    monkeypatch.setattr(MachineQueue, "turn", turn)
    outcome = graph.merge("draft", idempotency_key="k")  # by now, there is nothing left to merge
    assert outcome.replayed
    assert _describe(outcome) == _describe(outcomes[0])
    assert len(_published(graph)) == 1


def _run_elsewhere(name: str, root: Path) -> Any:
    """Run a request with a graph that shares nothing with the others in this process."""
    return REQUESTS[name](_open(root, "fsync"))


def _overtake(graph: Graph, at: int, other: Callable[[], Any]) -> list[Any]:
    """Before the graph's effect with a number, run another request; its outcome is added to the returned list."""
    effects, outcomes, count = graph._handle.store.effects, list[Any](), 0
    run_effect = effects.run

    def run(kind: Any, target: str, action: Any) -> Any:
        nonlocal count
        count += 1
        if count == at:
            outcomes.append(other())
        return run_effect(kind, target, action)

    effects.run = run  # type: ignore[method-assign]
    return outcomes
