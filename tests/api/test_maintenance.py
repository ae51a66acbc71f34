"""Maintenance through the public interface: the status of a graph, compaction, checks and warnings."""

from datetime import timedelta
from pathlib import Path

import pytest

from omnigraph import Graph
from omnigraph.errors import InputError, NotFound, ReadOnlyError, StorageError
from omnigraph.storage import layout
from tests.rig.graph_hosts import GraphHost, open_again

INDEXED = "node Doc { slug: String @key  words: String? @index  size: I32? @index }"
LOST_ID = "01BX5ZZKBKACTAV9WEVGEMMVRZ"


@pytest.fixture
def docs(graphs: GraphHost) -> Graph:
    """A graph whose schema declares indexes that no write has built."""
    graph = graphs.init(INDEXED)
    graph.load(
        {"Doc": [{"slug": f"d{number}", "words": "a b", "size": number} for number in range(400)]}, mode="append"
    )
    return graph


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


def test_declared_indexes_are_built_and_rebuilt(docs: Graph) -> None:
    pending = docs.maintenance.pending_indices()
    receipt = docs.maintenance.ensure_indices()
    assert {key for key, _, _ in pending} <= {"node:Doc"}
    assert docs.maintenance.pending_indices() == []
    assert (receipt.commit_id, receipt.branch) == ((docs.refresh().head.id if receipt else None), "main")
    rebuilt = docs.maintenance.ensure_indices(rebuild=["Doc.size"])
    assert rebuilt.indexes == {"node:Doc": ["size"]}
    assert rebuilt.commit_id == docs.refresh().head.id
    assert not docs.maintenance.ensure_indices()
    with pytest.raises(InputError, match="Doc"):
        docs.maintenance.ensure_indices(rebuild=["Doc.nothing"])
    with pytest.raises(ReadOnlyError):
        open_again(docs, read_only=True).maintenance.ensure_indices()


def test_an_optimize_run_with_a_budget_reports_what_remains(docs: Graph) -> None:
    docs.insert("Doc", {"slug": "one"})
    report = docs.maintenance.optimize(max_bytes=1)
    while report.remaining:
        assert set(report.remaining) == {"node:Doc"}
        report = docs.maintenance.optimize(max_bytes=1, max_seconds=1e9)
    assert not docs.maintenance.optimize()
    with pytest.raises(InputError, match="max_bytes must be a positive number, got integer 0"):
        docs.maintenance.optimize(max_bytes=0)


def test_report_of_an_optimize_run_has_the_tables_and_the_commits(docs: Graph) -> None:
    for number in range(3):
        docs.insert("Doc", {"slug": f"x{number}"})
    report = docs.maintenance.optimize()
    assert [commit.id for commit in report.commits] == ([docs.refresh().head.id] if report else [])
    assert [(dataset.type_key, dataset.error) for dataset in report.datasets] == [("node:Doc", None)]
    assert repr(report).startswith("<Optimized ")
    again = docs.maintenance.optimize()
    assert (bool(again), again.damaged, again.engine, again.retries) == (False, (), "local", 0)


def test_healthy_graph_makes_a_truthy_checkup(docs: Graph) -> None:
    steps: list[str] = []
    checkup = docs.maintenance.check(progress=steps.append)
    assert checkup
    assert (checkup.findings, checkup.damage, checkup.more) == ((), (), 0)
    assert checkup.readable == {"main": docs.head.id}
    assert checkup.read["rows"] == 400
    assert docs.maintenance.check(quick=True).read["rows"] == 0


def test_damage_makes_a_falsy_checkup_that_names_it(graphs: GraphHost, docs: Graph) -> None:
    other = graphs.copy(docs)
    data_file = next(graphs.folder_of(other).glob("**/data/*.lance"))
    data_file.unlink()
    checkup = other.maintenance.check()
    assert not checkup
    assert {finding.severity for finding in checkup.findings} == {"error"}
    assert any(data_file.name in str(finding) for finding in checkup.findings)
    assert other.maintenance.repair().damage != ()


def test_cleanup_reports_and_removes_history(docs: Graph) -> None:
    for number in range(4):
        docs.update("Doc", where="slug = 'd1'", set={"size": number})
    preview = docs.maintenance.cleanup(keep=1, grace=timedelta())
    assert preview.preview
    assert preview.bytes_removed > 0
    counts: list[tuple[int, int]] = []
    done = docs.maintenance.cleanup(keep=1, grace="0s", confirm=True, progress=lambda *pair: counts.append(pair))
    assert (done.preview, done.failed, done.commits_kept) == (False, (), preview.commits_kept)
    assert all(removed <= total for removed, total in counts)
    assert repr(done).startswith("<Cleanup removed ")
    with pytest.raises(InputError, match="retention policy"):
        docs.maintenance.cleanup()


def test_past_commit_can_be_held(docs: Graph) -> None:
    docs.tag("v1")
    docs.update("Doc", where="slug = 'd1'", set={"size": 7})
    with docs.at("v1").maintenance.hold() as protected:
        assert (protected.head.id, protected["Doc", "d1"].size) == (docs.tags["v1"].commit_id, 1)
        assert len(docs.maintenance.operations.pending()) == 1
    with pytest.raises(ReadOnlyError), open_again(docs, read_only=True).maintenance.hold():
        pass


def test_hold_protects_a_commit_from_cleanup(docs: Graph) -> None:
    with docs.maintenance.hold() as protected:
        for number in range(3):
            docs.update("Doc", where="slug = 'd1'", set={"size": 1000 + number})
        report = docs.maintenance.cleanup(keep=1, grace="0s", confirm=True)
        assert any("reader" in holder for holder in report.held_by)
        assert protected["Doc", "d1"].size == 1
        assert protected.read_only
        assert [operation.intent.operation for operation in docs.maintenance.operations.pending()] == ["read"]
    assert docs.maintenance.operations.pending() == []


def test_erased_entity_leaves_no_trace(docs: Graph, tmp_path: Path) -> None:
    slug = "a-slug-that-no-compressed-bytes-contain-by-chance"
    (tmp_path / "rejects.ndjson").write_text(f'{{"id": "{slug}"}}')
    docs.insert("Doc", {"slug": slug})
    docs.delete("Doc", where="slug = $slug", params={"slug": slug})
    before = docs.maintenance.check_absent("Doc", slug)
    assert not before
    docs.maintenance.cleanup(keep=1, grace="0s", erase=True, confirm=True)
    absence = docs.maintenance.check_absent("Doc", slug)
    assert (bool(absence), absence.traces, absence.type_name, absence.entity_id) == (True, (), "Doc", slug)
    also = docs.maintenance.check_absent("Doc", slug, also=tmp_path)
    assert [trace.name for trace in also.traces] == [str(tmp_path / "rejects.ndjson")]
    assert also.files == absence.files + 1
    with pytest.raises(InputError, match="no such file or folder"):
        docs.maintenance.check_absent("Doc", slug, also=tmp_path / "missing")


def test_repair_previews_an_intact_graph(docs: Graph) -> None:
    report = docs.maintenance.repair()
    assert report.preview
    assert [(dataset.type_key, dataset.action) for dataset in report.datasets] == [("node:Doc", "no_op")]
    assert (report.refused, report.not_restored, report.damage, report.names) == ((), (), (), ())
    confirmed = docs.maintenance.repair(confirm=True)
    assert (confirmed.preview, confirmed.commit_id) == (False, None)


def test_operation_that_was_set_aside_is_dropped(graphs: GraphHost, docs: Graph) -> None:
    other = graphs.copy(docs)
    intent = graphs.folder_of(other) / layout.intent_name(LOST_ID)
    intent.parent.mkdir(exist_ok=True)
    intent.write_text("{")
    other.insert("Doc", {"slug": "new"})
    (operation,) = other.maintenance.operations.set_aside()
    assert (operation.id, operation.intent) == (LOST_ID, None)
    with pytest.raises(StorageError):
        other.maintenance.operations.retry(LOST_ID)
    assert other.maintenance.operations.drop(LOST_ID).kind == "dropped"
    assert other.maintenance.operations.set_aside() == []
    assert [record.kind for record in other.maintenance.operations.recoveries()][-1] == "dropped"
    with pytest.raises(NotFound, match="no set-aside operation"):
        other.maintenance.operations.drop(LOST_ID)
