"""Branch reset: a new commit gives a branch the state of a past commit, and history is kept."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import omnigraph
from omnigraph import Graph
from omnigraph.errors import (
    BranchNotFound,
    HistoryReclaimed,
    InputError,
    PreconditionFailed,
    ReadOnlyError,
    ReadSetConflict,
    RecoveryRequired,
    SchemaMismatch,
    StorageError,
)
from omnigraph.history.delete_queue import check_versions_retained
from omnigraph.merging import reset as reset_module
from omnigraph.publish.recover import recover
from omnigraph.storage.effects import Fault
from omnigraph.testing import graph as temporary_graph
from tests.api.revisions.conftest import SCHEMA
from tests.api.revisions.test_revert_and_cherry_pick import STEP, lines, step
from tests.crash.verbs import overdue
from tests.rig.graph_hosts import act_as, open_again


def written_files(graph: Graph) -> set[str]:
    """Every file of the tables."""
    root = Path(graph.uri)
    return {str(path.relative_to(root)) for folder in ("nodes", "edges") for path in root.glob(f"{folder}/**/*")}


def test_reset_restores_a_tag_in_a_new_commit(graph: Graph) -> None:
    before, old_head, files = lines(graph.at("v1")), graph.head.id, written_files(graph)
    done = graph.branches.reset("main", to="v1")
    assert done.commit is not None
    assert (done.commit.operation, done.commit.parents) == ("reset", (old_head,))
    assert done.commit.details == {"commit": graph.at("v1").head.id}
    assert done.commit.message == 'Reset to "two people"'
    assert lines(graph) == before
    assert not graph.diff("v1")
    assert written_files(graph) == files  # the versions of that time are referenced again
    assert (done.outcome, done.stats["updates"]) == ("merged", 2)
    assert graph.revisions.commit(old_head).id in [commit.id for commit in graph.log()]
    assert graph.at("HEAD~1")["Person", "ada"].properties["age"] == 9
    assert graph.branches.reset("main", to="v1").outcome == "already_up_to_date"
    act_as(graph, "bob").branches.reset("main", to="HEAD~1", message="after all")
    graph.refresh()
    assert (graph.head.message, graph.head.actor) == ("after all", "bob")
    assert graph["Person", "ada"].properties == graph.at(old_head)["Person", "ada"].properties
    assert graph.maintenance.check()


def test_dry_run_shows_counts_and_writes_nothing(graph: Graph) -> None:
    head = graph.head.id
    reader = open_again(graph, read_only=True)
    preview = reader.branches.reset("main", to="HEAD~2", dry_run=True)
    assert (preview.commit, preview.stats["updates"]) == (None, 1)
    assert graph.refresh().head.id == head
    with pytest.raises(ReadOnlyError):
        reader.branches.reset("main", to="v1")


def test_dry_run_shows_its_changes(graph: Graph) -> None:
    preview = graph.branches.reset("main", to="HEAD~2", dry_run=True)
    assert [(change.op, change.id) for change in preview.delta] == [("update", "ada")]


def test_writes_and_queries_continue_after_a_reset(empty: Graph) -> None:
    empty.insert("Person", {"name": "ada"}, {"name": "bob"})
    empty.connect_nodes("Knows", [("ada", "bob", {"since": 1})])
    empty.tag("v1")
    known = "match { $p: Person  $p knows $q } return { $p.name, $q.name } order { $q.name }"
    empty.insert("Person", {"name": "cyd"}, {"name": "dan"})
    empty.connect_nodes("Knows", [("ada", "cyd"), ("dan", "ada")])
    empty.delete("Person", where="name = 'bob'")
    empty.maintenance.optimize()
    assert empty.query(known).to_records() == [("dan", "ada"), ("ada", "cyd")]
    empty.branches.reset("main", to="v1")
    assert empty.query(known).to_records() == [("ada", "bob")]
    empty.insert("Person", {"name": "eve"})
    empty.connect_nodes("Knows", [("ada", "eve"), ("eve", "bob")])
    assert empty.query(known).to_records() == [("ada", "bob"), ("eve", "bob"), ("ada", "eve")]
    assert [version.op for version in empty.revisions.history("Person", "bob")] == ["insert", "delete", "insert"]
    assert [version.commit.operation for version in empty.revisions.history("Person", "bob")] == [
        "reset",
        "mutate",
        "load",
    ]
    empty.maintenance.optimize()
    assert empty.query(known).to_records() == [("ada", "bob"), ("eve", "bob"), ("ada", "eve")]
    assert empty.maintenance.check()


def test_the_feed_sees_ordinary_changes(graph: Graph) -> None:
    position = graph.changes.poll(start="now").cursor
    graph.branches.reset("main", to="v1")
    block = graph.changes.of_commit("HEAD")
    assert len(graph.changes.poll(cursor=position).blocks) == 1
    changes = [(change.op, change.id) for change in block]
    assert sorted(changes) == [("update", "ada"), ("update", "bob")]


def test_merges_see_ordinary_changes(graph: Graph) -> None:
    side = graph.branches.create("side")
    side.insert("Person", {"name": "cyd"})
    graph.branches.reset("main", to="v1")
    assert graph.merge("side").outcome == "merged"  # the reset is a change of this side
    ages = {person["name"]: person["age"] for person in graph.nodes("Person").result()}
    assert ages == {"ada": 1, "bob": 2, "cyd": None}
    side.merge("main")
    assert not graph.diff("main", "side")


def test_reset_to_a_commit_of_another_branch_survives_its_deletion(graph: Graph) -> None:
    other = graph.branches.create("other", from_="v1")
    for number in range(3):
        other.insert("Person", {"name": f"p{number}"})
    wanted = lines(other)
    graph.branches.reset("review", to="other")
    review = graph.checkout("review")
    assert lines(review) == wanted
    graph.branches.delete("other", force=True)
    graph.maintenance.cleanup(keep=1, confirm=True, grace="0s")
    assert lines(open_again(graph, branch="review")) == wanted
    report = graph.maintenance.check()
    assert report, report
    assert report.read["unrecorded"] == 0


def test_invalid_resets_are_rejected(graph: Graph) -> None:
    head = graph.head.id
    with pytest.raises(InputError, match="unknown revision 'ghost'"):
        graph.branches.reset("main", to="ghost")
    with pytest.raises(BranchNotFound):
        graph.branches.reset("ghost", to="v1")
    with pytest.raises(PreconditionFailed):
        graph.branches.reset("main", to="v1", if_commit=graph.at("v1").head.id)
    with pytest.raises(ReadOnlyError, match="is at commit"):
        graph.at("v1").branches.reset("main", to="v1", dry_run=True)
    graph.schema.apply(SCHEMA.replace("score: F64?", "score: F64?  note: String?"))
    for dry_run in (False, True):
        with pytest.raises(SchemaMismatch) as caught:
            graph.branches.reset("main", to=head, dry_run=dry_run)
        assert (
            caught.value.message == f"branch 'main' cannot be reset to commit {head}: the schema has changed since then"
        )
        hint = caught.value.hint or ""
        assert f"omnigraph branch create NAME --from {head}" in hint
        assert f"omnigraph export --at {head}" in hint
    assert len(graph.log()) == 7


def test_reset_to_reclaimed_history_is_rejected(graph: Graph) -> None:
    oldest = graph.log()[-2].id
    graph.tags.delete("v1")
    graph.branches.delete("review", force=True)
    graph.maintenance.cleanup(keep=1, confirm=True, grace="0s")
    head = graph.head.id
    for dry_run in (True, False):
        with pytest.raises(HistoryReclaimed, match=f"a cleanup removed the data for commit {oldest}") as caught:
            graph.branches.reset("main", to=oldest, dry_run=dry_run)
        assert "tag" in (caught.value.hint or "")
    assert graph.refresh().head.id == head
    assert graph.maintenance.check()


def test_a_rejected_reset_leaves_no_operation(graph: Graph) -> None:
    with pytest.raises(InputError):
        graph.branches.reset("main", to="ghost")
    oldest = graph.log()[-2].id
    graph.tags.delete("v1")
    graph.branches.delete("review", force=True)
    graph.maintenance.cleanup(keep=1, confirm=True, grace="0s")
    with pytest.raises(HistoryReclaimed):
        graph.branches.reset("main", to=oldest)
    assert not graph.maintenance.operations.pending()


def test_referenced_versions_survive_a_cleanup(graph: Graph) -> None:
    wanted = lines(graph.at("v1"))
    graph.branches.reset("main", to="v1")
    graph.tags.delete("v1")
    graph.branches.delete("review", force=True)
    graph.maintenance.cleanup(keep=1, confirm=True, grace="0s", erase=True)
    assert lines(open_again(graph)) == wanted
    assert graph.maintenance.check()


@pytest.mark.parametrize(("effect", "landed"), [(2, False), (3, True), (4, True)])
def test_cleanup_spares_what_an_interrupted_reset_needs(graph: Graph, effect: int, landed: bool) -> None:
    wanted, head = lines(graph.at("v1")), lines(graph)
    store = graph._handle.store
    # The effects: the intent, its confirmation, the verdict, the manifest state.
    with store.effects.failing(Fault(effect, "before")), pytest.raises((StorageError, RecoveryRequired)):
        graph.branches.reset("main", to="v1")
    graph.tags.delete("v1")
    graph.branches.delete("review", force=True)
    graph.maintenance.cleanup(keep=1, confirm=True, grace="0s")
    with overdue():
        recover(store)
    assert lines(omnigraph.open(graph.uri)) == (wanted if landed else head)
    assert graph.maintenance.check()


def test_concurrent_write_is_never_discarded(graph: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    other = omnigraph.open(graph.uri, durability="os")
    real = check_versions_retained

    def overtaken(*arguments: Any, **options: Any) -> Any:
        monkeypatch.setattr(reset_module, "check_versions_retained", real)
        other.insert("Person", {"name": "new"})
        return real(*arguments, **options)

    monkeypatch.setattr(reset_module, "check_versions_retained", overtaken)
    with pytest.raises(ReadSetConflict):
        graph.branches.reset("main", to="v1")
    assert other.node("Person", "new") is not None
    assert graph.refresh().head.operation == "load"

    def maintained(*arguments: Any, **options: Any) -> Any:
        monkeypatch.setattr(reset_module, "check_versions_retained", real)
        other.maintenance.ensure_indices()
        return real(*arguments, **options)

    monkeypatch.setattr(reset_module, "check_versions_retained", maintained)
    graph.branches.reset("main", to="v1")
    assert not graph.diff("v1")


def test_reset_is_idempotent_for_empty_and_whole_graphs(empty: Graph) -> None:
    first = empty.head.id
    empty.insert("Person", {"name": "ada", "photo": b"x" * 1000})
    full, exported = empty.head.id, lines(empty)
    empty.branches.reset("main", to=first)
    assert lines(empty) == []
    empty.branches.reset("main", to=full)
    assert lines(empty) == exported
    assert json.loads(lines(empty)[0])["data"]["name"] == "ada"


@settings(max_examples=5)
@given(st.lists(STEP, min_size=2, max_size=8), st.integers(0, 8), st.lists(STEP, max_size=3))
def test_reset_restores_any_past_state(
    steps: list[tuple[str, str, int]], past: int, later: list[tuple[str, str, int]]
) -> None:
    with temporary_graph(SCHEMA) as graph:
        for what in steps:
            step(graph, *what)
        commits = graph.log()
        target = commits[past % len(commits)].id
        before = lines(graph.at(target))
        graph.branches.reset("main", to=target)
        assert lines(graph) == before
        twin = graph.branches.create("twin", from_=target)
        for what in later:
            if what[0] != "tie":  # edges get new ids
                step(graph, *what)
                step(twin, *what)
        assert lines(graph.refresh()) == lines(twin.refresh())
        assert not graph.diff("twin")
        for commit in commits:
            lines(graph.at(commit.id))
