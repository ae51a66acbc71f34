"""Roots can be moved and copied: every branch and commit reads the same."""

import shutil
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import omnigraph
from omnigraph.api.graph import Graph
from omnigraph.errors import AlreadyExists, ConcurrentCommit, GraphNotInitialized, InitializationClaimed, InputError
from omnigraph.history import commit_log
from omnigraph.maintenance import copy as copying
from omnigraph.maintenance.copy import copy_graph
from omnigraph.storage import layout
from omnigraph.storage.effects import Effects, Fault
from omnigraph.storage.local_objects import LocalBackend
from omnigraph.storage.store import Store, open_store
from tests.api.graph.conftest import people, tree
from tests.rig.plugin import S3
from tests.rig.timeouts import PATIENCE
from tests.rig.writes import SCHEMA, append, check_invariants, write

Everything = dict[str, dict[str, Any]]


@pytest.fixture
def aged(graph: Graph, monkeypatch: pytest.MonkeyPatch) -> Graph:
    """The graph with sealed chunks, a branch from the past, and a name that was used before."""
    monkeypatch.setattr(commit_log, "CHUNK_COMMITS", 2)
    for n in range(6):
        write(graph._handle.branch_state, append({f"p{n}": n}))
    graph.branches.create("then", commit=graph.log()[-2].id)
    graph.branches.create("gone")
    graph.branches.delete("gone", force=True)
    assert list(Path(graph.uri, layout.COMMITS).iterdir())
    return graph.refresh()


def everything(uri: Path | str) -> Everything:
    """The rows of every table at every commit of every branch, read afresh."""
    graph = omnigraph.open(uri, read_only=True)
    found: Everything = {}
    for name in graph.branches.names():
        branch = graph.checkout(name)
        found[name] = {"head": branch.head, "schema": branch.schema.source, "log": branch.log()}
        for commit in branch.log():
            past = branch.at(commit.id)
            found[name][commit.id] = {key: rows(past, key) for key in past.snapshot.tables}
    return found


def rows(graph: Graph, key: str) -> list[dict[str, Any]]:
    kind, _, name = key.partition(":")
    found: list[dict[str, Any]] = graph.table(name, kind=kind).to_table().to_pylist()
    return sorted(found, key=lambda row: str(row["id"]))


def goes_on(uri: Path | str) -> None:
    """The graph can be written to, forked and pruned where it is now."""
    graph = omnigraph.open(uri, durability="os")
    before = people(graph)
    write(graph._handle.branch_state, append({"later": 1}))
    review = graph.checkout("review/a")
    write(review._handle.branch_state, append({"later": 2}))
    graph.branches.create("gone")
    graph.branches.delete("then", force=True)
    assert people(omnigraph.open(uri)) == {**before, "later": 1}
    if not str(uri).startswith("s3:"):
        check_invariants(str(uri))


def move(root: str, target: Path) -> None:
    shutil.move(root, target)


def copy_and_delete(root: str, target: Path) -> None:
    shutil.copytree(root, target)
    shutil.rmtree(root)


def copy_by_us(root: str, target: Path) -> None:
    omnigraph.open(root, read_only=True).maintenance.copy_to(target)
    shutil.rmtree(root)


@pytest.mark.parametrize("carry", [move, copy_and_delete, copy_by_us])
def test_moved_root_reads_the_same(aged: Graph, tmp_path: Path, carry: Callable[[str, Path], None]) -> None:
    before = everything(aged.uri)
    assert len(before) == 3
    target = tmp_path / "far" / "away"
    target.parent.mkdir()
    carry(aged.uri, target)
    assert not Path(aged.uri).exists()
    assert everything(target) == before
    goes_on(target)


def test_prefix_can_be_copied_object_by_object(aged: Graph, s3: S3, tmp_path: Path) -> None:
    before = everything(aged.uri)
    there, further = f"{s3.url}-there", f"{s3.url}-further"
    copied = omnigraph.open(aged.uri, read_only=True).maintenance.copy_to(there)
    assert copied.branches == ("main", "review/a", "then")
    source, target = (open_store(uri).objects for uri in (there, further))
    for one in source.list(""):
        body = source.read(one.name)
        assert body is not None
        target.create_bytes(one.name, body)
        source.remove(one.name)
    assert everything(further) == before
    goes_on(further)
    omnigraph.open(further, read_only=True).maintenance.copy_to(tmp_path / "home")
    assert everything(tmp_path / "home") == everything(further)


def test_copy_of_a_busy_graph_is_a_snapshot_of_each_branch(aged: Graph, tmp_path: Path) -> None:
    over, written = threading.Event(), threading.Event()

    def keep_writing() -> None:
        lines = [aged._handle.branch_state, aged.checkout("review/a")._handle.branch_state]
        for n in range(1000):
            for line in lines:
                write(line, append({f"w{n}": n}))
            written.set()
            if over.is_set():
                return

    writer = threading.Thread(target=keep_writing)
    writer.start()
    try:
        assert written.wait(PATIENCE)
        source = omnigraph.open(aged.uri, read_only=True, durability="os")
        for n in range(2):
            source.maintenance.copy_to(tmp_path / f"copy-{n}")
    finally:
        over.set()
        writer.join()
    for n in range(2):
        copy = omnigraph.open(tmp_path / f"copy-{n}", read_only=True)
        assert copy.branches.names() == aged.branches.names()
        for name in copy.branches.names():
            is_a_moment_of(aged.checkout(name), copy.checkout(name))
    goes_on(tmp_path / "copy-1")


def is_a_moment_of(now: Graph, then: Graph) -> None:
    """What a branch showed in a copy, it showed here once, with the same past."""
    commits = now.log()
    assert then.log() == commits[commits.index(then.head) :]
    past = now.at(then.head.id)
    assert past.snapshot.tables == then.snapshot.tables
    for key in then.snapshot.tables:
        assert rows(then, key) == rows(past, key)


def store_pair(source: str, target: Path) -> tuple[Store, Store]:
    reading = open_store(source, effects=Effects(read_only=True))
    return reading, open_store(str(target), durability="os")


def test_interrupted_copy_cannot_be_opened(graph: Graph, tmp_path: Path) -> None:
    source, whole = store_pair(graph.uri, tmp_path / "whole")
    before, copied = tree(graph.uri), copy_graph(source, whole)
    names = [one.target for one in whole.effects.completed]
    commit_point = max(n for n, one in enumerate(names, 1) if one.startswith("__manifest/_versions"))
    for at in range(1, len(names) + 1):
        root = tmp_path / f"cut-{at}"
        _, target = store_pair(graph.uri, root)
        fault = Fault(at, "after", KeyboardInterrupt())
        with target.effects.failing(fault), pytest.raises(KeyboardInterrupt):
            copy_graph(source, target)
        if at < commit_point:
            with pytest.raises(GraphNotInitialized):
                omnigraph.open(root)
            if (root / layout.CLAIM).exists():
                with pytest.raises(InitializationClaimed):
                    omnigraph.init(root, SCHEMA)
        else:
            assert everything(root) == everything(graph.uri)
    assert tree(graph.uri) == before
    assert copied.objects == len({one for one in names if "__init" not in one and "probe" not in one})


def test_files_of_an_interrupted_copy_are_invisible_in_a_new_graph(graph: Graph, tmp_path: Path) -> None:
    source, target = store_pair(graph.uri, tmp_path / "cut")
    point = len(list(_until_refs(source, tmp_path / "whole")))
    with target.effects.failing(Fault(point, "after", KeyboardInterrupt())), pytest.raises(KeyboardInterrupt):
        copy_graph(source, target)
    with pytest.raises(InitializationClaimed):
        omnigraph.init(tmp_path / "cut", SCHEMA)
    with pytest.raises(AlreadyExists, match="part of a graph"):
        omnigraph.init(tmp_path / "cut", SCHEMA, force=True)


def _until_refs(source: Store, place: Path) -> Iterator[str]:
    whole = open_store(str(place), durability="os")
    copy_graph(source, whole)
    for one in whole.effects.completed:
        yield one.target
        if one.target.startswith(layout.REFS):
            return


class Forgetful:
    """A store from which the first files that are asked for have just been removed."""

    def __init__(self, store: Store, names: str, times: int) -> None:
        self.left, self.names = times, names
        self.blocks = store.objects.backend.read_blocks

    def __call__(self, name: str) -> Iterator[bytes] | None:
        if self.names in name and self.left:
            self.left -= 1
            return None
        return self.blocks(name)


@pytest.mark.parametrize("names", ["/data/", "_commits/", "__manifest/", "__branches/", "_refs/"])
def test_copy_restarts_if_source_files_vanish(
    aged: Graph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, names: str
) -> None:
    source, target = store_pair(aged.uri, tmp_path / "copy")
    monkeypatch.setattr(LocalBackend, "read_blocks", staticmethod(Forgetful(source, names, 2)))
    copy_graph(source, target)
    monkeypatch.undo()
    assert everything(tmp_path / "copy") == everything(aged.uri)


def test_copy_fails_if_source_files_keep_vanishing(
    graph: Graph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, target = store_pair(graph.uri, tmp_path / "copy")
    monkeypatch.setattr(copying, "_MAX_ATTEMPTS", 3)
    monkeypatch.setattr(LocalBackend, "read_blocks", staticmethod(Forgetful(source, "/data/", 99)))
    with pytest.raises(ConcurrentCommit, match="kept disappearing during the copy"):
        copy_graph(source, target)
    monkeypatch.undo()
    with pytest.raises(GraphNotInitialized):
        omnigraph.open(tmp_path / "copy")


def test_copy_requires_an_empty_target(graph: Graph, tmp_path: Path) -> None:
    full = tmp_path / "full"
    full.mkdir()
    (full / "letter.txt").write_text("dear")
    with pytest.raises(AlreadyExists, match="not empty"):
        graph.maintenance.copy_to(full)
    assert list(full.iterdir()) == [full / "letter.txt"]
    for inside in (f"{graph.uri}/inside", graph.uri, str(Path(graph.uri).parent)):
        with pytest.raises((InputError, AlreadyExists)):
            graph.maintenance.copy_to(inside)


def test_copy_omits_intents_and_leases(graph: Graph, tmp_path: Path) -> None:
    objects = open_store(graph.uri).objects
    objects.create_json("__recovery/01ARZ3NDEKTSV4RRFFQ69G5FAV.json", {})
    objects.create_json(f"{layout.PROBE}x", {})
    omnigraph.open(graph.uri, read_only=True).maintenance.copy_to(tmp_path / "copy")
    names = {one.name for one in (tmp_path / "copy").iterdir()}
    assert names == {"__manifest", "__branches", "_refs", "_schemas", "nodes", "edges"}


def test_progress_is_reported_to_the_end(graph: Graph, tmp_path: Path) -> None:
    told: list[tuple[int, int]] = []
    copied = graph.maintenance.copy_to(tmp_path / "copy", progress=lambda *steps: told.append(steps))
    assert told == sorted(told)
    assert told[-1] == (copied.bytes, copied.bytes)
