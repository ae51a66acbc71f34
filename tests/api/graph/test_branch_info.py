"""Facts about branches, branches that may already exist, and deletions that would lose commits."""

import pytest

from omnigraph import testing
from omnigraph.api.graph import Graph
from omnigraph.errors import AlreadyExists, BranchBusy, BranchNotFound

SCHEMA = "node Person { name: String @key  age: I32? }"


def add_person(graph: Graph, name: str) -> None:
    graph.insert("Person", {"name": name})


def test_a_branch_tells_its_head_its_origin_and_its_distance_from_its_parent() -> None:
    with testing.graph(SCHEMA) as graph:
        add_person(graph, "ada")
        fork = graph.head.id
        review = graph.branches.create("review")
        for name in ("bob", "cyd"):
            add_person(review, name)
        add_person(graph, "dee")
        info = graph.branches["review"]
        assert (info.name, info.parent, info.fork_commit, info.head) == ("review", "main", fork, review.head)
        assert (info.ahead, info.behind) == (2, 1)
        assert info.created is not None
        assert review.head.created >= info.created >= graph.at(fork).head.created


def test_main_has_no_parent_and_no_distance() -> None:
    with testing.graph(SCHEMA) as graph:
        info = graph.branches["main"]
        assert (info.parent, info.created, info.ahead, info.behind) == (None, None, None, None)
        assert info.head == graph.head


def test_commits_that_both_sides_merged_are_not_counted() -> None:
    with testing.graph(SCHEMA) as graph:
        review = graph.branches.create("review")
        add_person(review, "ada")
        add_person(graph, "bob")
        graph.merge("review", into="main")
        assert (graph.branches["review"].ahead, graph.branches["review"].behind) == (0, 2)
        graph.merge("main", into="review")
        assert (graph.branches["review"].ahead, graph.branches["review"].behind) == (1, 0)  # the merge commit


def test_a_branch_whose_parent_was_deleted_has_no_distance() -> None:
    with testing.graph(SCHEMA) as graph:
        graph.branches.create("base")
        graph.branches.create("review", from_="base")
        graph.branches.delete("base")
        info = graph.branches["review"]
        assert (info.parent, info.ahead, info.behind) == ("base", None, None)


def test_get_returns_none_for_an_unknown_branch() -> None:
    with testing.graph(SCHEMA) as graph:
        assert graph.branches.get("nothing") is None
        with pytest.raises(BranchNotFound):
            _ = graph.branches["nothing"]


def test_exist_ok_opens_an_existing_branch_as_it_is() -> None:
    with testing.graph(SCHEMA) as graph:
        add_person(graph.branches.create("review", exist_ok=True), "ada")
        again = graph.branches.create("review", from_="main", exist_ok=True)
        assert again.nodes("Person").ids() == ["ada"]
        with pytest.raises(AlreadyExists):
            graph.branches.create("review")


def test_a_branch_with_unmerged_commits_is_deleted_only_by_force() -> None:
    with testing.graph(SCHEMA) as graph:
        review = graph.branches.create("review")
        for name in ("ada", "bob"):
            add_person(review, name)
        with pytest.raises(BranchBusy, match="2 commits are not on any other branch or tag") as refusal:
            graph.branches.delete("review")
        assert "--force" in str(refusal.value.hint)
        assert "review" in graph.branches
        graph.branches.delete("review", force=True)
        assert "review" not in graph.branches


@pytest.mark.parametrize("keeper", ["merge", "branch", "tag", "no commits", "optimize"])
def test_a_branch_whose_commits_are_kept_elsewhere_is_deleted(keeper: str) -> None:
    with testing.graph(SCHEMA) as graph:
        review = graph.branches.create("review")
        if keeper == "optimize":
            review.maintenance.ensure_indices()
        elif keeper != "no commits":
            add_person(review, "ada")
        if keeper == "merge":
            graph.merge("review", into="main")
        elif keeper == "branch":
            graph.branches.create("copy", from_="review")
        elif keeper == "tag":
            review.tag("v1")
        graph.branches.delete("review")
        assert "review" not in graph.branches


def test_a_merge_of_an_older_commit_does_not_keep_newer_ones() -> None:
    with testing.graph(SCHEMA) as graph:
        review = graph.branches.create("review")
        add_person(review, "ada")
        graph.merge("review", into="main")
        add_person(review, "bob")
        with pytest.raises(BranchBusy, match="1 commit is not on any other branch or tag"):
            graph.branches.delete("review")
