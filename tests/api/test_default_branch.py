"""Every verb works on the branch of its handle unless the call names another."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from omnigraph import Graph
from omnigraph.api.async_graph import AsyncGraph
from omnigraph.errors import InputError, ReadOnlyError
from tests.rig.graph_hosts import GraphHost, open_again

SCHEMA = "node Person { name: String @key  age: I32? }"


@pytest.fixture
def graph(graphs: GraphHost) -> Graph:
    """A graph whose branches `one` and `two` have a person each that `main` does not have."""
    made = graphs.init(SCHEMA)
    made.insert("Person", {"name": "ada", "age": 1})
    made.tag("v1")
    for branch in ("one", "two"):
        made.branches.create(branch).insert("Person", {"name": branch})
    return made


def people(graph: Graph, branch: str) -> list[str]:
    return sorted(node["name"] for node in graph.checkout(branch).nodes("Person"))


def test_a_merge_goes_into_the_branch_of_the_handle(graph: Graph) -> None:
    before = graph.head.id
    handle = graph.checkout("one")
    done = handle.merge("two")
    assert done.commit is not None
    assert handle.head.id == done.commit.id == graph.checkout("one").head.id
    assert people(graph, "one") == ["ada", "one", "two"]
    assert people(graph, "two") == ["ada", "two"]
    assert graph.refresh().head.id == before
    assert graph.merge("one").outcome == "fast_forward"
    assert people(graph, "main") == ["ada", "one", "two"]


def test_a_dry_run_has_the_same_target(graph: Graph) -> None:
    handle = graph.checkout("one")
    assert handle.merge("two", dry_run=True).target == handle.head.id


def test_a_session_has_the_same_target(graph: Graph) -> None:
    handle = graph.checkout("one")
    with pytest.raises(InputError, match="cannot be merged into itself"):
        handle.branches.merge_session()
    for view in (handle.revisions.pin(), handle.at("HEAD~1")):
        with pytest.raises(ReadOnlyError, match=f"is at commit {view.head.id}"):
            view.branches.merge_session("two")
    assert handle.branches.merge_session("two").preview().target == handle.head.id
    handle.branches.merge_session("two").commit()
    assert people(graph, "one") == ["ada", "one", "two"]
    assert people(graph, "main") == ["ada"]


def test_coroutines_have_the_same_target(graph: Graph) -> None:
    asyncio.run(AsyncGraph(graph.checkout("one")).merge("two"))
    assert people(graph, "one") == ["ada", "one", "two"]
    assert people(graph, "main") == ["ada"]


def test_the_branch_of_the_handle_is_the_source_when_only_a_target_is_named(graph: Graph) -> None:
    assert graph.checkout("one").merge(into="main").outcome == "fast_forward"
    assert people(graph, "main") == ["ada", "one"]


def test_a_merge_that_names_no_other_branch_is_refused(graph: Graph) -> None:
    handle = graph.checkout("one")
    calls: list[Callable[[], object]] = [handle.merge, graph.merge]
    calls += [lambda: handle.merge("one"), lambda: handle.merge(dry_run=True)]
    for call in calls:
        with pytest.raises(InputError, match="cannot be merged into itself") as caught:
            call()
        assert "source and target (`into`)" in str(caught.value)
    assert people(graph, "main") == ["ada"]


@pytest.mark.parametrize("point", ["v1", "HEAD~1", "two", "now"])
def test_handle_on_a_past_commit_rejects_merges(graph: Graph, point: str) -> None:
    handle = graph.checkout("one")
    view = handle.revisions.pin() if point == "now" else handle.at(point)
    shown = view.head.id
    for call in (
        lambda: view.merge("two"),
        lambda: view.merge("two", dry_run=True),
        lambda: view.merge(into="main", dry_run=True),
        lambda: view.revisions.revert("HEAD", dry_run=True),
        lambda: view.revisions.cherry_pick("two", dry_run=True),
        lambda: view.branches.reset("two", to="HEAD~1", dry_run=True),
        lambda: view.schema.apply(SCHEMA.replace("age: I32?", ""), dry_run=True),
    ):
        with pytest.raises(ReadOnlyError, match=f"is at commit {shown}"):
            call()
    assert handle.merge("two", dry_run=True).outcome == "merged"


def test_a_read_only_handle_previews_merges_into_its_branch(graph: Graph) -> None:
    reader = open_again(graph, branch="one", read_only=True)
    assert reader.merge("two", dry_run=True).target == reader.head.id
    with pytest.raises(ReadOnlyError, match="read-only"):
        reader.merge("two")


def _transaction(handle: Graph) -> None:
    with handle.transaction() as tx:
        tx.insert("Person", {"name": "tx"})


WRITES: dict[str, Any] = {
    "insert": lambda handle: handle.insert("Person", {"name": "x"}),
    "upsert": lambda handle: handle.upsert("Person", {"name": "x"}),
    "update": lambda handle: handle.update("Person", where="name = 'one'", set={"age": 2}),
    "delete": lambda handle: handle.delete("Person", where="name = 'one'"),
    "mutate": lambda handle: handle.mutate('insert Person { name: "x" }'),
    "load": lambda handle: handle.load({"Person": [{"name": "x"}]}, mode="append"),
    "transaction": _transaction,
    "merge": lambda handle: handle.merge("two"),
    "revert": lambda handle: handle.revisions.revert("HEAD"),
    "cherry_pick": lambda handle: handle.revisions.cherry_pick("two"),
    "apply_schema": lambda handle: handle.schema.apply(SCHEMA.replace("age", "more: I32?  age")),
    "optimize": lambda handle: handle.maintenance.optimize(),
}


def test_every_write_lands_on_the_branch_of_the_handle(graph: Graph) -> None:
    main, two = graph.head.id, graph.checkout("two").head.id
    for at, (verb, write) in enumerate(WRITES.items()):
        handle = graph.branches.create(f"b{at}", from_="one")
        before = handle.head.id
        write(handle)
        after = graph.checkout(f"b{at}").head.id
        assert after != before or verb == "optimize", verb
    assert (graph.refresh().head.id, graph.checkout("two").head.id) == (main, two)


def test_indexes_are_built_on_the_branch_of_the_handle(graph: Graph) -> None:
    main = graph.head.id
    graph.checkout("one").maintenance.ensure_indices()
    assert graph.refresh().head.id == main


def test_every_read_shows_the_branch_of_the_handle(graph: Graph) -> None:
    handle = graph.checkout("one")
    head = handle.head.id
    assert handle.tag("here").commit_id == head
    assert handle.branches.create("new").head.id == head
    assert handle.log()[0].id == head
    assert [one.id for one in handle.diff("main")] == ["one"]
    assert any(b'"one"' in line for line in handle.export())


def test_changes_are_those_of_the_branch_of_the_handle(graph: Graph) -> None:
    handle = graph.checkout("one")
    head = handle.head.id
    assert [block.commit.id for block in handle.changes.feed("beginning")][-1] == head
    assert handle.changes.baseline().commit_id == head
