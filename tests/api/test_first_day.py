"""What new users try on their first day: merges, schema changes, updates, files, edges, paths and repairs."""

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

import omnigraph
from omnigraph import Graph, errors
from omnigraph.cli.main import run

SCHEMA = """
node Package { name: String @key  section: String?  version: String?  size: I32? @index }
edge DependsOn: Package -> Package { kind: String?  @unique(src, dst) }
"""
NAMES = ("apt", "bash", "curl", "dash")


@pytest.fixture
def graph(tmp_path: Path) -> Graph:
    """Provide a graph of four packages, each of which depends on the next one."""
    graph = omnigraph.init(tmp_path / "graph", SCHEMA, durability="os")
    graph.insert("Package", *({"name": name, "section": "old", "version": "1"} for name in NAMES))
    graph.connect_nodes("DependsOn", [(*pair, {"kind": "hard"}) for pair in pairwise(NAMES)])
    return graph


def set_package(graph: Graph, name: str, **values: Any) -> None:
    graph.update("Package", where=f"name = '{name}'", set=values)


def package(graph: Graph, name: str) -> dict[str, Any]:
    """Return the properties of a package."""
    text = "match { $p: Package { name: $key } } return { $p.section as section, $p.version as version }"
    return dict(graph.query(text, key=name).to_dicts()[0])


def test_a_strategy_keeps_edits_that_do_not_conflict(graph: Graph) -> None:
    other = graph.branches.create("other")
    set_package(graph, "apt", section="admin", version="2")
    set_package(other, "apt", version="3")
    graph.merge("other", strategy="theirs")
    assert package(graph, "apt") == {"section": "admin", "version": "3"}


def test_branches_merge_and_compare_across_a_new_nullable_property(graph: Graph) -> None:
    older = graph.branches.create("older")
    set_package(older, "bash", version="2")
    graph.schema.apply(SCHEMA.replace("version: String?", "version: String?  license: String?"))
    assert graph.diff("older", "main")
    graph.merge("older")
    assert package(graph, "bash")["version"] == "2"


def test_handles_that_update_different_entities_never_conflict(graph: Graph) -> None:
    others = [omnigraph.open(graph.uri, durability="os") for _ in range(2)]
    for version in ("2", "3"):
        for name, other in zip(NAMES, others, strict=False):
            assert package(other, name)
            set_package(other, name, version=version)
    assert {package(graph.refresh(), name)["version"] for name in NAMES[:2]} == {"3"}


def test_csv_files_are_read_with_any_delimiter_and_errors_name_the_line(graph: Graph, tmp_path: Path) -> None:
    path = tmp_path / "packages.csv"
    path.write_text("name,size\nzsh,1\nfish,x\n")
    with pytest.raises(errors.PropertyValueError, match=r"line 3: .*expected I32, got string 'x'"):
        graph.load({"Package": path}, mode="append")
    path.write_text("name;size\nzsh;1\n")
    graph.load({"Package": path}, mode="append")
    assert "zsh" in graph.refresh().nodes("Package").ids()


def test_a_patch_keeps_the_columns_that_the_file_does_not_have(graph: Graph, tmp_path: Path) -> None:
    path = tmp_path / "versions.csv"
    path.write_text("name,version\napt,9\n")
    graph.load({"Package": path}, mode="patch")
    assert package(graph, "apt") == {"section": "old", "version": "9"}


def test_edges_are_reloaded_without_changes_and_can_be_updated(tmp_path: Path) -> None:
    schema = "node P { name: String @key }  edge E: P -> P { kind: String?  @key(src, dst) }"
    graph = omnigraph.init(tmp_path / "keyed", schema, durability="os")
    graph.insert("P", {"name": "a"}, {"name": "b"})
    edges = [{"from": "a", "to": "b", "kind": "hard"}]
    graph.load({"E": edges}, mode="merge")
    before = graph.head
    graph.load({"E": edges}, mode="merge")
    assert not graph.diff(before.id, "main")
    other = graph.branches.create("other")
    graph.mutate('match { $a: P  $a $e:e $b } update $e set { kind: "soft" }')
    other.load({"E": edges}, mode="merge")
    graph.merge("other")
    assert graph.query("match { $a: P  $a $e:e $b } return { $e.kind }").scalars() == ["soft"]


def test_hops_filter_edges_and_paths_are_returned(graph: Graph) -> None:
    hard = 'match { $a: Package { name: "apt" }  $a $e:dependsOn{1,4} $b where $e.kind = "hard" } return { $b.name }'
    assert sorted(graph.query(hard).scalars()) == ["bash", "curl", "dash"]
    path = """match {
        $a: Package { name: "apt" }  $b: Package { name: "dash" }  $p = any shortest $a dependsOn{1,6} $b
    } return { length($p) as steps }"""
    assert graph.query(path).scalar() == 3


def test_polars_reads_a_result_as_a_frame(graph: Graph) -> None:
    polars = pytest.importorskip("polars")
    result = graph.query("match { $p: Package } return { $p.name as name, $p.section as section }")
    frame = polars.from_arrow(result.table)
    assert frame.columns == ["name", "section"]
    assert polars.DataFrame(result).shape == (4, 2)


def test_a_corrupt_index_is_named_and_rebuilt(graph: Graph) -> None:
    graph.maintenance.ensure_indices()
    index_files = list(Path(graph.uri).rglob("_indices/*/*.lance"))
    assert index_files
    for index_file in index_files:
        index_file.write_bytes(b"")
    reopened = omnigraph.open(graph.uri, durability="os")
    findings = reopened.maintenance.check().findings
    assert findings
    assert all("omnigraph ensure-indices" in str(finding.hint) for finding in findings)
    assert reopened.maintenance.ensure_indices()
    assert reopened.maintenance.check()
    assert reopened.nodes("Package").count() == 4


def test_a_command_finds_its_graph_and_loads_files_of_several_formats(
    graph: Graph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "packages.ndjson").write_text(json.dumps({"type": "Package", "data": {"name": "fish"}}) + "\n")
    (tmp_path / "edges.csv").write_text("from,to\nfish,dash\n")
    (tmp_path / "more.ndjson").write_text('{"name": "zsh"}\n')
    files = ["packages.ndjson", "DependsOn=edges.csv", "Package=more.ndjson"]
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OMNIGRAPH_STORE", graph.uri)
    data = [argument for file in files for argument in ("--data", file)]
    assert run(["load", *data, "--mode", "append"]) == 0, capsys.readouterr().err
    for address in ([], [graph.uri], ["--store", graph.uri]):
        capsys.readouterr()
        assert run(["query", *address, "-e", "match { $p: Package } return { count($p) as n }", "--json"]) == 0
        assert json.loads(capsys.readouterr().out)["rows"][0]["n"] == 6
