"""`check` and `repair` on the command line: output and exit codes."""

import json
from pathlib import Path

from omnigraph.api.graph import Graph
from omnigraph.values.table_key import TableKey
from tests.cli.conftest import Program
from tests.maintenance.conftest import foreign_append, head, names, smuggle

EVE = {"id": "eve", "name": "eve", "age": 5}


def test_check_of_a_healthy_graph_exits_with_0(shell: Program, graph: Graph) -> None:
    done = shell("check", graph.uri)
    assert done.code == 0
    assert done.out.startswith("graph is healthy; 2 branches, 1 tag,")
    assert json.loads(shell("check", graph.uri, "--quick", "--json").out)["ok"] is True
    assert shell("repair", graph.uri).code == 0


def test_a_quick_check_names_what_it_skipped(shell: Program, graph: Graph) -> None:
    quick = shell("check", graph.uri, "--quick")
    assert (quick.code, quick.out.startswith("graph is healthy;")) == (0, True)
    skipped = "not checked: rows and the contents of indexes and files;"
    assert skipped in quick.err
    sampled = shell("check", graph.uri, "--sample", "50")
    assert skipped.replace("files", "other files") in sampled.err
    assert "not checked" not in shell("check", graph.uri).err


def test_check_prints_rule_violations_and_external_rows(shell: Program, graph: Graph) -> None:
    foreign_append(graph, "Person", EVE)
    warned = shell("check", graph.uri)
    assert warned.code == 5
    assert "warning: drift (node:Person)" in warned.out
    assert "hint: run `omnigraph repair`" in warned.err
    smuggle(graph, "node:Person", [{"id": "x", "name": "x", "age": 151}])
    wrong = shell("check", graph.uri)
    assert wrong.code == 1
    assert "error: value (main node:Person x): @range age: 151 is not in 0..150" in wrong.out
    assert wrong.out.rstrip().splitlines()[-1].startswith("1 error, 1 warning; ")
    told = json.loads(shell("check", graph.uri, "--json").out)
    assert {one["kind"] for one in told["findings"]} == {"drift", "value"}


def test_repair_previews_then_applies(shell: Program, graph: Graph) -> None:
    foreign_append(graph, "Person", EVE)
    head(graph, "City").create_scalar_index("name", "BTREE")
    seen = shell("repair", graph.uri)
    assert seen.code == 0
    assert "node:City: verified_maintenance, no_effect (CreateIndex)" in seen.out
    assert "node:Person: appended, preview (Append): needs_confirm" in seen.out
    assert "nothing was written" in seen.err
    refused = shell("repair", graph.uri, "--confirm")
    assert refused.code == 1
    assert "refused (Append): needs_force" in refused.out
    assert shell("repair", graph.uri, "--force").code == 2
    done = shell("repair", graph.uri, "--force", "--confirm", "--json")
    told = json.loads(done.out)
    assert done.code == 0
    assert told["graph_commit_id"]
    assert told["preview"] is False
    assert "eve" in names(graph)
    listed = json.loads(shell("recovery", "list", graph.uri, "--json").out)
    assert {one["recovery_kind"] for one in listed["recoveries"]} == {"repaired", "seen"}
    assert shell("check", graph.uri).code == 0, "the foreign index was told"


def test_damage_report_names_readable_commits(shell: Program, graph: Graph) -> None:
    entry = graph.snapshot.tables[TableKey("node:Person")]
    Path(graph.uri, entry.location, "_versions", f"d{entry.lance_version}.manifest").unlink()
    for verb in ("check", "repair"):
        done = shell(verb, graph.uri)
        assert done.code == 1
        assert "the file is missing" in done.out
        assert f"newest readable commit on main: {graph.head.parent}" in done.out
    for one in Path(graph.uri, "__manifest", "_versions").iterdir():
        one.write_bytes(b"")
    for verb in ("check", "repair"):
        done = shell(verb, graph.uri)
        assert done.code == 1
        assert "newest readable commit on main: none" in done.out


def test_invalid_usage_is_rejected(shell: Program, graph: Graph, tmp_path: Path) -> None:
    assert shell("check", graph.uri, "--also", str(tmp_path)).code == 2
    assert shell("check", graph.uri, "--quick", "--absent", "Person", "x").code == 2
    for verb in ("check", "repair", "status"):
        gone = shell(verb, tmp_path / "nothing")
        assert gone.code == 1
        assert "no graph at" in gone.err
        assert shell(verb, "http://example.org/g").code == 1
