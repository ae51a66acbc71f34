"""Maintenance through the public interface: the status of a graph, compaction, checks and warnings."""

from omnigraph import Graph


def test_status_counts_branches_tags_and_commits(graph: Graph) -> None:
    graph.branches.create("side")
    graph.tag("v1")
    status = graph.maintenance.status()
    assert (status.branch, status.branches, status.tags, status.commits) == ("main", 2, 1, len(graph.log()))
    document = status.to_json()
    assert document["graph_commit_id"] == graph.head.id
    rows = {dataset["type_key"]: dataset["rows"] for dataset in document["datasets"]}
    assert rows == {"edge:Knows": 6, "edge:WorksAt": 3, "node:Firm": 2, "node:Note": 0, "node:Person": 4}
    assert (list(status.warnings), graph.warnings) == ([], [])


def test_compaction_keeps_the_rows_and_the_history(graph: Graph) -> None:
    for number in range(5):
        graph.insert("Note", {"text": str(number)})
    lines = sorted(graph.export())
    graph.maintenance.optimize(types=["Note"])
    assert sorted(graph.export()) == lines
    assert not graph.maintenance.check().findings
    assert graph.at(graph.log()[-1].id).nodes("Note").count() == 0
