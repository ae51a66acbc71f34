"""The public handle: what it shows, how it names the past, what it rejects."""

import os
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

import omnigraph
from omnigraph.api.graph import Graph
from omnigraph.errors import (
    AlreadyExists,
    BranchBusy,
    BranchNotFound,
    GraphClosed,
    InputError,
    NotFound,
    SnapshotNotFound,
)
from omnigraph.publish.idempotency import find_replayed_commit
from omnigraph.publish.write_plan import CommitMetadata
from tests.api.graph.conftest import people, tree
from tests.rig.writes import SCHEMA, append, write

BEFORE = {"ada": 1, "bob": 2}


def test_importing_the_package_loads_no_part_of_it() -> None:
    code = (
        "import sys, omnigraph; assert 'init' in dir(omnigraph);"
        "assert not {'lance', 'pyarrow', 'pandas', 'polars', 'obstore', 'numpy', 'click'}"
        " & set(sys.modules); omnigraph.open; assert 'lance' not in sys.modules;"
        " omnigraph.Graph; assert 'omnigraph.api.graph' in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_unknown_package_attribute_raises() -> None:
    with pytest.raises(AttributeError):
        _ = omnigraph.nonsense


def test_handle_describes_its_branch_and_commit(graph: Graph) -> None:
    assert repr(graph) == f"Graph({graph.uri!r}, branch='main', head={graph.head.id!r})"
    assert (graph.branch_name, graph.read_only, graph.actor) == ("main", False, None)
    assert graph.schema.source == SCHEMA
    assert people(graph) == {**BEFORE, "cy": 3}
    assert graph.table("LivesIn").schema.names == ["id", "src", "dst", "n"]
    with pytest.raises(InputError, match="unknown edge type 'Person'"):
        graph.table("Person", kind="edge")
    with pytest.raises(InputError, match="unknown type 'Persn'\nhint: did you mean `Person`"):
        graph.table("Persn")


def test_handle_shows_one_commit_until_refreshed(graph: Graph) -> None:
    other = omnigraph.open(graph.uri)
    shown = graph.snapshot
    write(other._handle.branch_state, append({"dan": 4}))
    assert graph.snapshot is shown
    assert "dan" not in people(graph)
    assert "dan" in people(graph.refresh())


def test_past_commits_are_opened_by_many_revisions(graph: Graph) -> None:
    first, then, now = reversed(graph.log())
    for point in (
        then.id,
        2,
        "HEAD~1",
        then.published,
        then.published.isoformat(),
        then.published.astimezone().isoformat(),
        "manifest:main:v2",
    ):
        past = graph.at(point)
        assert people(past) == BEFORE, point
        assert past.read_only
        assert past.head == then
    assert people(graph.at("HEAD")) == people(graph.at(now.id)) == people(graph)
    assert people(graph.at(timedelta(0))) == people(graph)
    assert people(graph.at(first.id)) == {}
    assert graph.at(then.id).refresh().head == then


def test_timestamp_selects_the_last_commit_published_before(graph: Graph) -> None:
    _, then, now = reversed(graph.log())
    tick = timedelta(microseconds=1)
    assert graph.at(now.published).head == now
    assert graph.at(now.published - tick).head == then
    assert graph.at(now.published + tick).head == now
    assert graph.at(datetime(2100, 1, 1, tzinfo=UTC)).head == now


@pytest.mark.parametrize(
    ("point", "error"),
    [
        ("HEAD~99", SnapshotNotFound),
        ("HEAD~x", InputError),
        ("nonsense", InputError),
        ("01ARZ3NDEKTSV4RRFFQ69G5FAV", NotFound),
        (99, SnapshotNotFound),
        (0, SnapshotNotFound),
        (datetime(2001, 1, 1, tzinfo=UTC), SnapshotNotFound),
        ("2001-01-01T00:00:00Z", SnapshotNotFound),
        (datetime(2030, 1, 1), InputError),
        ("manifest:main:vx", InputError),
        ("manifest:nobody:v1", BranchNotFound),
    ],
)
def test_unknown_revision_is_rejected(graph: Graph, point: object, error: type[Exception]) -> None:
    with pytest.raises(error):
        graph.at(point)  # type: ignore[arg-type]


def test_the_log_is_newest_first_and_filtered(graph: Graph) -> None:
    assert [one.actor for one in graph.log()] == ["cy", "ada", None]
    assert [one.actor for one in graph.log("review/a")] == ["bob", "bob", "ada", None]
    assert [one.actor for one in graph.log(actor="ada")] == ["ada"]
    assert len(graph.log(limit=2)) == 2
    assert len(graph.log(type="Person")) == 3
    assert len(graph.log(type="City")) == 1
    assert graph.log(since=graph.head.published) == [graph.head]
    assert graph.at("HEAD~1").log() == graph.log()[1:]


def test_a_commit_is_found_on_any_branch(graph: Graph) -> None:
    (one, *_) = graph.log("review/a")
    assert graph.revisions.commit(one.id) == one
    assert graph.revisions.commit(graph.head.id).message is None
    assert graph.log()[1].message == "the first"
    with pytest.raises(NotFound):
        graph.revisions.commit("01ARZ3NDEKTSV4RRFFQ69G5FAV")


def test_branches_behave_like_a_mapping(graph: Graph) -> None:
    assert list(graph.branches) == ["main", "review/a"]
    assert len(graph.branches) == 2
    assert "review/a" in graph.branches
    assert "review" not in graph.branches
    assert graph.branches["review/a"].parent == "main"
    with pytest.raises(BranchNotFound):
        _ = graph.branches["nobody"]


def test_new_branch_copies_no_data_and_adds_no_commit(graph: Graph) -> None:
    versions, commits = graph.snapshot.manifest_version, len(graph.log())
    tables = {name for name in tree(graph.uri) if "/nodes/" in name or "/edges/" in name}
    made = graph.branches.create("review/b")
    assert graph.branches.names() == ["main", "review/a", "review/b"]
    assert (graph.refresh().snapshot.manifest_version, len(graph.log())) == (versions, commits)
    assert made.head == graph.head
    now = {name for name in tree(graph.uri) if "/nodes/" in name or "/edges/" in name}
    assert now == tables


@pytest.mark.parametrize("name", ["main", "", "  ", "a//b", "/a", "a/", "x.lock", "__x", "a..b",
                                  "é", "a b", "a\\b"])  # fmt: skip
def test_invalid_branch_names_are_rejected(graph: Graph, name: str) -> None:
    before = tree(graph.uri)
    with pytest.raises(InputError):
        graph.branches.create(name)
    assert tree(graph.uri) == before


def test_overlapping_branch_names_are_rejected(graph: Graph) -> None:
    before = tree(graph.uri)
    for name, blocker in (("review", "review/a"), ("review/a/b", "review/a")):
        with pytest.raises(AlreadyExists, match=blocker):
            graph.branches.create(name)
    with pytest.raises(AlreadyExists):
        graph.branches.create("review/a")
    with pytest.raises(BranchNotFound):
        graph.branches.create("new", from_="nobody")
    assert tree(graph.uri) == before


def test_handle_cannot_delete_its_own_branch(graph: Graph) -> None:
    bound = graph.checkout("review/a")
    with pytest.raises(BranchBusy):
        bound.branches.delete("review/a", force=True)
    with pytest.raises(InputError):
        graph.branches.delete("main", force=True)
    graph.branches.delete("review/a", force=True)
    assert graph.branches.names() == ["main"]
    with pytest.raises(BranchNotFound):
        graph.branches.delete("review/a", force=True)


def test_deleting_a_parent_branch_keeps_the_child(graph: Graph) -> None:
    child = graph.branches.create("child", from_="review/a")
    shown = people(child)
    graph.branches.delete("review/a", force=True)
    fresh = omnigraph.open(graph.uri, branch="child")
    assert people(fresh) == shown == {"ada": 10}
    assert [one.actor for one in fresh.log()] == ["bob", "bob", "ada", None]


def test_commit_of_a_recreated_branch_is_not_found(graph: Graph) -> None:
    old = graph.checkout("review/a").head.id
    graph.branches.delete("review/a", force=True)
    graph.branches.create("review/a")
    with pytest.raises(NotFound):
        graph.at(old)
    with pytest.raises(NotFound):
        graph.checkout("review/a").at(old)


def test_past_entity_has_its_past_value(graph: Graph) -> None:
    review = graph.checkout("review/a")
    assert people(review)["ada"] == 10
    assert people(review.at("HEAD~1"))["ada"] == 1
    assert "cy" not in people(graph.at("HEAD~1"))


def test_branch_can_start_at_a_past_commit(graph: Graph) -> None:
    first = graph.log()[-1]
    made = graph.branches.create("then", commit=first.id)
    assert (made.head, people(made)) == (first, {})
    assert omnigraph.open(graph.uri, branch="then").head == first


def test_closed_handle_raises(graph: Graph) -> None:
    with omnigraph.open(graph.uri) as handle:
        handle.log()
    handle.close()
    for act in (handle.log, handle.refresh, handle.branches.names, lambda: handle.table("Person")):
        with pytest.raises(GraphClosed):
            act()


def test_equivalent_root_paths_share_branch_state(
    graph: Graph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "link").symlink_to(graph.uri)
    monkeypatch.chdir(tmp_path)
    spellings = ["g", "./g", f"../{tmp_path.name}/g", str(tmp_path / "link"), f"file://{graph.uri}"]
    for one in spellings:
        assert omnigraph.open(one, durability="os")._handle.branch_state is graph._handle.branch_state
    assert omnigraph.open("g", durability="fsync")._handle.branch_state is not graph._handle.branch_state


def test_handles_of_different_durability_do_not_share_a_store(graph: Graph) -> None:
    careful = omnigraph.open(graph.uri)
    reader = omnigraph.open(graph.uri, read_only=True)
    assert graph._handle.branch_state.store.durability == "os"
    assert careful._handle.branch_state.store.durability == "fsync"
    assert reader._handle.branch_state.store.effects.read_only


def test_actor_is_read_from_the_environment(graph: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMNIGRAPH_ACTOR", "eve")
    assert omnigraph.open(graph.uri).actor == "eve"
    assert omnigraph.open(graph.uri, actor="fay").actor == "fay"
    monkeypatch.setenv("OMNIGRAPH_ACTOR", "omnigraph:maintenance")
    with pytest.raises(InputError):
        omnigraph.open(graph.uri)


def test_write_without_a_key_does_not_search_for_keys(graph: Graph) -> None:
    state = graph._handle.branch_state.last_known().state
    assert find_replayed_commit(graph._handle.store, state, CommitMetadata()) is None


def test_read_only_process_leaves_no_files(graph: Graph) -> None:
    before = tree(graph.uri)
    code = f"import omnigraph; g = omnigraph.open({graph.uri!r}, read_only=True); g.log()"
    subprocess.run([sys.executable, "-c", code], check=True, env=os.environ)
    assert tree(graph.uri) == before


def test_misspelt_name_gets_a_suggestion(graph: Graph) -> None:
    graph.branches.create("staging")
    graph.tag("release")
    asks: dict[str, Callable[[], object]] = {
        "staging": lambda: graph.checkout("stagnig"),
        "main": lambda: graph.at("mian~2"),
        "release": lambda: graph.at("relaese"),
    }
    for meant, ask in asks.items():
        with pytest.raises((NotFound, InputError)) as told:
            ask()
        assert told.value.hint == f"did you mean `{meant}`?"
    with pytest.raises(NotFound) as told:
        graph.branches.delete("stagings", force=True)
    assert "`staging`" in (told.value.hint or "")


def test_a_deleted_branch_is_reported_with_a_similar_name(graph: Graph) -> None:
    deleted = graph.branches.create("stagings")
    graph.branches.create("staging")
    graph.branches.delete("stagings", force=True)
    calls: list[Callable[[], object]] = [
        deleted.refresh,
        lambda: deleted.mutate('query q() { delete Person where id = "none" }'),
    ]
    for call in calls:
        with pytest.raises(BranchNotFound, match="no branch 'stagings'") as error:
            call()
        assert error.value.hint == "did you mean `staging`?"
