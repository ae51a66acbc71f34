"""A crash while an operation is set aside loses nothing; the next recovery finishes it."""

import multiprocessing
import shutil
from contextlib import suppress
from pathlib import Path

import pytest

import omnigraph
from omnigraph.api.graph import Graph
from omnigraph.storage.effects import DurableEffect, Fault
from omnigraph.storage.store import open_store
from tests.crash.verbs import EXIT, overdue
from tests.publish.recovery.bad_records import (
    BROKEN,
    ID,
    UNREADABLE,
    Make,
    contents,
    end_recovery,
    kinds,
    parts_left,
    put,
    recover_now,
)

REFUSED = 2  # effects of one recovery that the store refuses: both attempts to take a name
POISONS: dict[str, Make] = {
    "creation": BROKEN["branch with a name too long"],
    "load": BROKEN["load with a torn plan"],
    "unreadable": UNREADABLE["torn"],
}


def effects_of(graph: Graph, copy: Path) -> list[DurableEffect]:
    """The durable effects of one recovery, in order."""
    shutil.copytree(graph.uri, copy)
    store = open_store(str(copy), durability="os")
    with overdue(), store.effects.recording() as seen:
        recover_now(store)
    return list(seen)


def check_after(uri: str, before: dict[str, list[object]]) -> None:
    """The next process sets the operation aside, once, and the graph is as it was."""
    with overdue():
        opened = omnigraph.open(uri, durability="os")
        opened.insert("Person", {"name": "new"})
    assert [one.id for one in opened.maintenance.operations.set_aside()] == [ID]
    assert kinds(opened) == ["set_aside"]
    assert contents(opened) == before
    assert recover_now(opened._handle.store) == []
    assert opened.maintenance.operations.drop(ID).kind == "dropped"
    assert parts_left(opened._handle.store) == set()


@pytest.mark.parametrize("name", POISONS)
def test_failed_effect_while_setting_aside_loses_nothing(graph: Graph, tmp_path: Path, name: str) -> None:
    before = contents(graph)
    put(graph._handle.store, POISONS[name](graph))
    effects = effects_of(graph, tmp_path / "whole")
    assert [one.target.rpartition(".")[2] for one in effects[-2:]] == ["json", "set_aside"]
    for at in range(1, len(effects) + 1):
        for how in ("before", "after"):
            copy = shutil.copytree(graph.uri, tmp_path / f"{at}-{how}")
            store = open_store(str(copy), durability="os")
            with store.effects.failing(Fault(at, how)):
                recover_now(store)
            check_after(str(copy), before)


@pytest.mark.parametrize(
    ("name", "last"), [("creation", 2), *(pytest.param(one, 100, marks=pytest.mark.full) for one in POISONS)]
)
def test_process_killed_while_setting_aside_loses_nothing(graph: Graph, tmp_path: Path, name: str, last: int) -> None:
    before = contents(graph)
    put(graph._handle.store, POISONS[name](graph))
    count = len(effects_of(graph, tmp_path / "whole"))
    codes = []
    for at in range(max(1, count - last + 1), count + REFUSED + 1):
        copy = str(shutil.copytree(graph.uri, tmp_path / str(at)))
        child = multiprocessing.get_context("spawn").Process(target=end_recovery, args=(copy, at))
        child.start()
        child.join()
        codes.append(child.exitcode)
        check_after(copy, before)
    # An effect that the store itself refuses ends no process, and is not among those counted.
    assert set(codes) <= {EXIT, 0}
    assert codes.count(EXIT) >= min(last, count)


def test_interrupted_drop_is_finished_by_the_next_recovery(graph: Graph, tmp_path: Path) -> None:
    put(graph._handle.store, BROKEN["load with a torn plan"](graph))
    recover_now(graph._handle.store)
    shutil.copytree(graph.uri, tmp_path / "whole")
    whole = omnigraph.open(tmp_path / "whole", durability="os")
    with whole._handle.store.effects.recording() as seen:
        whole.maintenance.operations.drop(ID)
    for at in range(1, len(seen) + 1):
        copy = str(shutil.copytree(graph.uri, tmp_path / str(at)))
        opened = omnigraph.open(copy, durability="os")
        failing = opened._handle.store.effects.failing(Fault(at, "after"))
        with failing, suppress(omnigraph.errors.OmnigraphError, OSError):
            opened.maintenance.operations.drop(ID)
        recover_now(opened._handle.store)
        if opened.maintenance.operations.set_aside():
            opened.maintenance.operations.drop(ID)
            recover_now(opened._handle.store)
        assert parts_left(opened._handle.store) == set()
        assert kinds(opened) == ["set_aside", "dropped"]
