"""A merge, revert, cherry-pick, reset or schema change with an idempotency key is applied once.

A repeated request returns the first result, whatever has happened in the meantime.
"""

from collections.abc import Callable
from typing import Any

import pytest

from omnigraph import Graph
from omnigraph.errors import InputError, MergeConflict, PreconditionFailed
from tests.rig.graph_hosts import GraphHost, open_again

SCHEMA = "node Person { name: String @key  age: I32? } edge Knows: Person -> Person"
WIDER = "node Person { name: String @key  age: I64?  town: String? } edge Knows: Person -> Person"
Request = Callable[[Graph], Any]


@pytest.fixture
def graph(graphs: GraphHost) -> Graph:
    """A graph whose branches `dev` and `main` disagree about ada's age."""
    graph = graphs.init(SCHEMA)
    graph.insert("Person", {"name": "ada", "age": 1}, {"name": "bob"})
    dev = graph.branches.create("dev")
    dev.upsert("Person", {"name": "ada", "age": 2}, {"name": "cyd"})
    dev.connect_nodes("Knows", [("cyd", "bob")])
    graph.refresh().upsert("Person", {"name": "ada", "age": 3})
    graph.branches.create("draft", from_="main").insert("Person", {"name": "dee"})
    return graph.refresh()


REQUESTS: dict[str, Request] = {
    "merge": lambda graph: graph.merge("dev", strategy={"Person": "theirs"}, idempotency_key="k"),
    "fast-forward": lambda graph: graph.merge("draft", "main", idempotency_key="k"),
    "revert": lambda graph: graph.revisions.revert("HEAD", idempotency_key="k"),
    "revert-range": lambda graph: graph.revisions.revert("HEAD~1..HEAD", idempotency_key="k"),
    "cherry-pick": lambda graph: graph.revisions.cherry_pick("draft", idempotency_key="k"),
    "reset": lambda graph: graph.branches.reset("main", to="HEAD~1", idempotency_key="k"),
}


def _describe(result: Any) -> tuple[Any, ...]:
    changes = sorted((change.op, change.type, change.id) for change in result.delta)
    return result.stats, changes, result.discarded, result.lost_edges, result.parallel_edges


@pytest.mark.parametrize("name", REQUESTS)
def test_a_repeated_request_returns_the_first_result(graph: Graph, name: str) -> None:
    first = REQUESTS[name](graph)
    graph.insert("Person", {"name": "later"})
    again = REQUESTS[name](open_again(graph))
    assert (first.replayed, again.replayed) == (False, True)
    assert first.commit is not None
    assert again == first
    assert _describe(again) == _describe(first)
    assert [commit.id for commit in graph.log()].count(first.commit.id) == 1
    assert graph.refresh().head.parent == first.commit.id


def test_a_repeated_merge_ignores_what_the_source_has_become(graph: Graph) -> None:
    first = graph.merge("draft", idempotency_key="k")
    graph.checkout("draft").insert("Person", {"name": "later"})
    again = graph.merge("draft", idempotency_key="k")
    assert again == first
    assert graph.merge("draft").stats["inserts"] == 1


def test_a_repeated_merge_finds_that_its_source_was_deleted(graph: Graph) -> None:
    first = graph.merge("draft", delete_branch=True, idempotency_key="k")
    again = graph.merge("draft", delete_branch=True, idempotency_key="k")
    assert first.branch_deleted
    assert again == first
    assert _describe(again) == _describe(first)


def test_a_repeated_merge_deletes_its_source_if_that_has_not_happened_yet(graph: Graph) -> None:
    graph.merge("draft", idempotency_key="k")
    assert graph.merge("draft", delete_branch=True, idempotency_key="k").branch_deleted
    assert "draft" not in graph.branches


def test_a_repeated_merge_keeps_a_new_branch_with_the_same_name(graph: Graph) -> None:
    graph.merge("draft", delete_branch=True, idempotency_key="k")
    graph.branches.create("draft")
    again = graph.merge("draft", delete_branch=True, idempotency_key="k")
    assert again.replayed
    assert not again.branch_deleted
    assert "head is no longer" in str(again.branch_delete_error)
    assert "draft" in graph.branches


def test_another_request_with_the_same_key_is_rejected(graph: Graph) -> None:
    commit = graph.merge("dev", strategy="theirs", idempotency_key="k").commit
    head = graph.refresh().head.id
    others: list[Request] = [
        lambda graph: graph.merge("dev", strategy="ours", idempotency_key="k"),
        lambda graph: graph.merge("draft", strategy="theirs", idempotency_key="k"),
        lambda graph: graph.merge("dev", strategy="theirs", collapse_edges=True, idempotency_key="k"),
        lambda graph: graph.merge("dev", strategy="theirs", granularity="entity", idempotency_key="k"),
        lambda graph: graph.revisions.revert("HEAD", idempotency_key="k"),
        lambda graph: graph.revisions.cherry_pick("draft", idempotency_key="k"),
        lambda graph: graph.branches.reset("main", to="HEAD~1", idempotency_key="k"),
        lambda graph: graph.schema.apply(WIDER, idempotency_key="k"),
        lambda graph: graph.insert("Person", {"name": "eve"}, idempotency_key="k"),
    ]
    for other in others:
        with pytest.raises(InputError, match="a different request") as raised:
            other(graph)
        assert commit is not None
        assert raised.value.details["commit_id"] == commit.id
    assert graph.refresh().head.id == head


def test_a_key_of_a_mutation_is_not_a_merge(graph: Graph) -> None:
    graph.insert("Person", {"name": "eve"}, idempotency_key="k")
    with pytest.raises(InputError, match="a different request"):
        graph.merge("draft", idempotency_key="k")


def test_a_failed_request_does_not_use_its_key(graph: Graph) -> None:
    with pytest.raises(MergeConflict):
        graph.merge("dev", idempotency_key="k")
    assert graph.merge("dev", dry_run=True, strategy="ours", idempotency_key="k").commit is None
    assert not graph.merge("dev", strategy="ours", idempotency_key="k").replayed


def test_a_request_without_an_effect_runs_again(graph: Graph) -> None:
    graph.merge("draft")
    assert graph.merge("draft", idempotency_key="k").outcome == "already_up_to_date"
    graph.checkout("draft").insert("Person", {"name": "later"})
    again = graph.merge("draft", idempotency_key="k")
    assert (again.outcome, again.replayed) == ("merged", False)


def test_a_precondition_holds_for_the_first_request(graph: Graph) -> None:
    head = graph.head.id
    first = graph.merge("draft", if_commit=head, idempotency_key="k")
    assert graph.merge("draft", if_commit=head, idempotency_key="k") == first
    with pytest.raises(PreconditionFailed):
        graph.merge("dev", strategy="ours", if_commit=head, idempotency_key="other")


def test_a_key_belongs_to_one_branch(graph: Graph) -> None:
    graph.merge("draft", idempotency_key="k")
    graph.branches.create("copy", from_="main")
    with pytest.raises(InputError, match="a different request"):
        graph.merge("draft", "copy", idempotency_key="k")


def test_a_repeated_schema_change_returns_the_first_outcome(graph: Graph) -> None:
    first = graph.schema.apply(WIDER, idempotency_key="k")
    graph.refresh().schema.apply(SCHEMA.replace("I32", "I64"))
    again = open_again(graph).schema.apply(WIDER, idempotency_key="k")
    assert (first.replayed, again.replayed) == (False, True)
    assert (again.commit, again.steps, again.branch) == (first.commit, first.steps, first.branch)
    assert again.to_json() == first.to_json()
    assert "town" not in graph.refresh().schema.source
    with pytest.raises(InputError, match="a different request"):
        graph.schema.apply(WIDER, allow_data_loss=True, idempotency_key="k")


def test_a_repeated_schema_change_may_contain_a_rename(graph: Graph) -> None:
    renamed = SCHEMA.replace("age:", 'years: I32? @rename_from("age") //')
    renamed = renamed.replace("// I32? }", "}")
    first = graph.schema.apply(renamed, idempotency_key="k")
    again = graph.refresh().schema.apply(renamed, idempotency_key="k")
    assert again.replayed
    assert (again.commit, again.steps) == (first.commit, first.steps)


@pytest.mark.parametrize("name", REQUESTS)
def test_a_repeated_request_after_a_cleanup_returns_what_the_log_contains(graph: Graph, name: str) -> None:
    first = REQUESTS[name](graph)
    stats = first.stats
    graph.branches.delete("dev", force=True)
    graph.branches.delete("draft", force=True)
    graph.upsert("Person", {"name": "ada", "age": 9})
    graph.maintenance.cleanup(keep=1, older_than=0, grace=0, confirm=True)
    again = REQUESTS[name](open_again(graph))
    assert again.replayed
    assert (again.commit, again.outcome, again.target) == (first.commit, first.outcome, first.target)
    assert again.stats.items() <= stats.items()
    assert "resolved" in again.stats
    assert graph.refresh().head.id != first.commit.id


def test_a_dry_run_does_not_use_its_key(graph: Graph) -> None:
    assert not graph.schema.apply(WIDER, dry_run=True, idempotency_key="k").applied
    assert graph.branches.reset("main", to="HEAD~1", dry_run=True, idempotency_key="k").commit is None
    assert not graph.revisions.revert("HEAD", dry_run=True, idempotency_key="k").replayed
    assert graph.schema.apply(WIDER, idempotency_key="k").applied


def test_a_key_that_is_too_long_is_rejected(graph: Graph) -> None:
    key = "x" * 5000
    calls: list[Callable[[], Any]] = [
        lambda: graph.merge("draft", idempotency_key=key),
        lambda: graph.revisions.revert("HEAD", idempotency_key=key),
        lambda: graph.branches.reset("main", to="HEAD~1", idempotency_key=key),
        lambda: graph.schema.apply(WIDER, idempotency_key=key),
    ]
    head = graph.head.id
    for call in calls:
        with pytest.raises(InputError):
            call()
    assert graph.refresh().head.id == head
