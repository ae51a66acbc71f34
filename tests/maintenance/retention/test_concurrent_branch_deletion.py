"""A cleanup continues with the other branches when one is deleted."""

import shutil
from pathlib import Path

import pytest

import omnigraph
from omnigraph.api.graph import Graph
from omnigraph.history import refs
from omnigraph.publish.closing_version import publish_closing_version
from tests.evolve.test_concurrent_writers import before_effect
from tests.rig.independent_writers import apart

SCHEMA = "node P { k: String @key }"


@pytest.fixture
def source(tmp_path: Path) -> Path:
    graph = omnigraph.init(tmp_path / "source", SCHEMA, durability="os")
    graph.load({"P": [{"k": key} for key in "abc"]}, mode="append")
    for name in ("early", "late"):
        branch = graph.branches.create(name)
        branch.mutate('delete P where k = "a"')
    graph.mutate('delete P where k = "b"')
    return tmp_path / "source"


def erase(graph: Graph) -> None:
    graph.maintenance.cleanup(keep=1, grace=0, erase=True, confirm=True)


def effects_of(root: Path) -> int:
    graph = omnigraph.open(root, durability="os")
    with graph._handle.store.effects.recording() as seen:
        erase(graph)
    return len(seen)


def delete_elsewhere(root: Path) -> None:
    """Delete the branch as another process does."""
    line = apart(root, "late")
    publish_closing_version(line.store, line)
    refs.close_name(line.store, refs.find_ref(line.store, "late"))


def delete_at(source: Path, root: Path, number: int) -> None:
    """Delete a branch before one effect of an erasure; it must go on, and leave all well."""
    graph = omnigraph.open(shutil.copytree(source, root), durability="os")
    with before_effect(graph, number, lambda: delete_elsewhere(root)):
        erase(graph)
    fresh = omnigraph.open(root)
    assert not fresh.maintenance.check(quick=True).findings
    assert len(fresh.query("match { $p: P } return { $p.k }")) == 2


@pytest.mark.parametrize("share", [0.1, 0.3, 0.5])
def test_erase_continues_after_a_branch_deletion(source: Path, tmp_path: Path, share: float) -> None:
    count = effects_of(Path(shutil.copytree(source, tmp_path / "count")))
    delete_at(source, tmp_path / "g", max(1, round(count * share)))


@pytest.mark.full
def test_cleanup_continues_if_a_branch_is_deleted_at_any_effect(source: Path, tmp_path: Path) -> None:
    count = effects_of(Path(shutil.copytree(source, tmp_path / "count")))
    for number in range(1, count + 1):
        delete_at(source, tmp_path / f"g{number}", number)
