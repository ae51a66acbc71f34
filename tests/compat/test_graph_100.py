"""A graph of an earlier release with this storage format opens, reads and accepts writes."""

import json
import tarfile
from pathlib import Path

import pytest

import omnigraph
from omnigraph.history.commit_log import HistoryLog
from omnigraph.publish.write_plan import CommitMetadata
from tests.compat.make_graph import HERE, main, make, read
from tests.rig.writes import append, check_invariants, delete, write


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """The graph of the archive, in a place where it never was."""
    with tarfile.open(HERE / "graph.tar.gz") as archive:
        archive.extractall(tmp_path, filter="data")
    return tmp_path / "graph"


def test_every_branch_and_every_commit_reads_as_it_did(root: Path) -> None:
    expected = json.loads((HERE / "expected.json").read_text())
    found = read(root)
    assert found.keys() == expected.keys() == {"again", "main", "old", "review/a"}
    for name, branch in expected.items():
        assert found[name] == branch
    check_invariants(str(root))


def test_graph_covers_every_feature_of_the_format(root: Path) -> None:
    graph = omnigraph.open(root, read_only=True)
    chunks = graph._handle.branch_state.last_known().state.chunks
    assert len({one.commit_count for one in chunks}) > 1
    log = HistoryLog(graph._handle.store, graph._handle.branch_state.last_known().state)
    assert all(log.chunk_commits(one) for one in chunks)
    assert list((root / "_refs/branches/again").iterdir())
    size = sum(one.stat().st_size for one in HERE.iterdir())
    assert size < 300_000


def test_graph_accepts_new_writes(root: Path) -> None:
    graph = omnigraph.open(root, durability="os")
    write(graph._handle.branch_state, append({"fresh": 1}))
    write(graph._handle.branch_state, delete(["p00"]))
    # The key was used long ago: it is free again.
    write(
        graph._handle.branch_state, append({"x": 1}), signature=CommitMetadata(idempotency_key="k1", request_hash="r2")
    )
    assert graph.refresh().table("Person").count_rows() == 24
    review = graph.checkout("review/a")
    write(review._handle.branch_state, append({"fresh": 2}))
    graph.branches.create("review/b", from_="review/a", commit=review.log()[-3].id)
    graph.branches.delete("old", force=True)
    check_invariants(str(root))


def test_archive_is_not_overwritten(capsys: pytest.CaptureFixture[str]) -> None:
    assert main() == 1
    assert "never made again" in capsys.readouterr().err


@pytest.mark.full
def test_current_release_builds_the_same_graph(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from omnigraph.history import commit_log

    for name in ("CHUNK_COMMITS", "MAX_CHUNK_COMMITS"):
        monkeypatch.setattr(commit_log, name, getattr(commit_log, name))
    make(tmp_path / "graph")
    found, expected = read(tmp_path / "graph"), json.loads((HERE / "expected.json").read_text())
    for name in expected:
        assert [one["rows"] for one in found[name]["log"]] == [one["rows"] for one in expected[name]["log"]]
