"""Sources of a merge other than branches: tags, commit ids and ancestors."""

import pytest

from omnigraph.api.graph import Graph
from omnigraph.errors import BranchNotFound, InputError, SnapshotNotFound
from tests.rig.graph_hosts import GraphHost


@pytest.fixture
def graph(graphs: GraphHost) -> Graph:
    graph = graphs.init("node Item { name: String @key }")
    dev = graph.branches.create("dev")
    dev.insert("Item", {"name": "a"})
    dev.insert("Item", {"name": "b"})
    return graph


def items(graph: Graph) -> list[str]:
    return sorted(graph.nodes("Item").ids())


def test_an_ancestor_of_a_branch_is_merged_without_the_commits_after_it(graph: Graph) -> None:
    graph.insert("Item", {"name": "m"})
    merged = graph.merge("dev~1")
    assert merged.commit is not None
    assert (merged.outcome, merged.commit.message) == ("merged", "Merge commit 'dev~1' into main")
    assert items(graph) == ["a", "m"]
    assert graph.merge("dev~1").outcome == "already_up_to_date"
    assert graph.merge("dev").outcome == "merged"
    assert items(graph) == ["a", "b", "m"]
    assert not graph.maintenance.check().findings


def test_a_commit_id_is_fast_forwarded(graph: Graph) -> None:
    first = graph.at("dev~1").head.id
    assert graph.merge(first).outcome == "fast_forward"
    assert items(graph) == ["a"]


def test_a_tag_of_a_deleted_branch_is_merged(graph: Graph) -> None:
    graph.at("dev").tags.create("v1")
    graph.branches.delete("dev")
    graph.insert("Item", {"name": "m"})
    assert graph.merge("v1").outcome == "merged"
    graph.tags.delete("v1")
    assert items(graph) == ["a", "b", "m"]
    assert not graph.maintenance.check().findings


def test_a_source_that_does_not_exist_is_refused(graph: Graph) -> None:
    with pytest.raises(BranchNotFound):
        graph.merge("nowhere")
    with pytest.raises(SnapshotNotFound):
        graph.merge("0" * 26)
    with pytest.raises(InputError, match="'dev~1' is not a branch"):
        graph.merge("dev~1", delete_branch=True)
