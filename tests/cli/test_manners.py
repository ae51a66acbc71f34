"""Small promises of the command line: undo, lint --fix, silence, old spellings, generated ids, key conflicts."""

import json
import socket
import warnings
from pathlib import Path

import pytest

import omnigraph as package
from omnigraph.cli.main import _show_warning
from tests.cli.conftest import Program

SCHEMA = "node Person { name: String @key  age: I32? }\nedge Knows: Person -> Person\n"


@pytest.fixture
def graph(omnigraph: Program) -> package.Graph:
    made = package.init("g", SCHEMA)
    made.insert("Person", {"name": "ada", "age": 36}, message="ada")
    made.insert("Person", {"name": "bob", "age": 20}, message="bob")
    return made


def names(graph: package.Graph) -> list[str]:
    return sorted(row["name"] for row in graph.nodes("Person").result().to_dicts())


def test_undo_reverts_the_last_commit_and_itself(omnigraph: Program, graph: package.Graph) -> None:
    ended = omnigraph("undo", "g")
    assert ended.out.startswith("reverted HEAD on main: 0 added, 0 changed, 1 removed; commit ")
    assert names(graph) == ["ada"]
    assert omnigraph("undo", "g").code == 0
    assert names(graph) == ["ada", "bob"]
    assert omnigraph("undo", "g", "HEAD~3", "--dry-run").code == 0
    assert omnigraph("undo", "--store", "g", "HEAD~3").code == 0
    assert names(graph) == ["bob"]


def test_lint_uses_the_schema_of_a_graph(omnigraph: Program, graph: package.Graph) -> None:
    Path("q.gq").write_text("query q() { match { $p: Person } return { $p.nmae } }")
    branch = graph.branches.create("b")
    branch.schema.apply(SCHEMA.replace("age: I32?", "age: I32?  nmae: String?"))
    ended = omnigraph("lint", "g", "--query", "q.gq")
    assert ended.code == 1
    assert "error[T6]: Person has no property `nmae`" in ended.out
    assert omnigraph("lint", "--store", "g", "--query", "q.gq", "--branch", "b").code == 0
    told = json.loads(omnigraph("lint", "g", "--query", "q.gq", "--json").out)
    assert told["schema_source"] == str(Path("g").absolute())
    Path("s.pg").write_text(SCHEMA)
    both = omnigraph("lint", "g", "--schema", "s.pg", "--query", "q.gq")
    assert (both.code, "both specify a schema" in both.err) == (2, True)


def test_lint_fix_corrects_names_and_formats(omnigraph: Program) -> None:
    Path("s.pg").write_text("node  Lamp { watts: I32 // bright\n name: Strin }")
    Path("q.gq").write_text(
        "query one() { match { $l: Lump } return { $l.id } }\n"
        "query two() { match { $l: Lamp } return { $l.wats } }\n"
        "query rank($x: String) { match { $l: Lamp } return { $l.name } order { bm25($l.name, $x) asc } limit 3 }\n"
    )
    before = omnigraph("lint", "--schema", "s.pg", "--query", "q.gq")
    assert before.code == 1
    ended = omnigraph("lint", "--schema", "s.pg", "--query", "q.gq", "--fix")
    assert ended.code == 0, ended.out
    assert Path("s.pg").read_text() == "node Lamp {\n    watts: I32  // bright\n    name: String\n}\n"
    text = Path("q.gq").read_text()
    assert "$l: Lamp" in text
    assert "$l.watts" in text
    assert "bm25($l.name, $x) }" in text
    assert omnigraph("fmt", "--check", "s.pg", "q.gq").code == 0
    assert omnigraph("lint", "--schema", "s.pg", "--query", "q.gq", "--fix").err == ""


def test_lint_fix_corrects_what_a_correction_reveals(omnigraph: Program) -> None:
    Path("s.pg").write_text("node Person { name: String @key  age: I32? }\nedge Knows: Person -> Person\n")
    Path("q.gq").write_text(
        "query one() { match { $p: Persn } return { $p.nme } }\n"
        "query two() { match { $p: Persn } return { $p.nme, $p.agge } }\n"
        "query three() { match { $p: Persn  $p knws $q } return { $q.nme } }\n"
        "query four() { match { $p: Persn } return { $p.zzzzzz } }\n"
    )
    ended = omnigraph("lint", "--schema", "s.pg", "--query", "q.gq", "--fix")
    assert "fixed q.gq: 9 corrections, formatted" in ended.err
    assert (ended.code, ended.out.count("error[")) == (1, 1)
    assert "error[T6]: Person has no property `zzzzzz`" in ended.out
    text = Path("q.gq").read_text()
    assert (text.count("$p: Person"), text.count("knows"), text.count("p.name"), text.count("$q.name")) == (4, 1, 2, 1)
    again = omnigraph("lint", "--schema", "s.pg", "--query", "q.gq", "--fix")
    assert (again.err, Path("q.gq").read_text()) == ("", text)


def test_lint_fix_leaves_what_it_cannot_correct(omnigraph: Program) -> None:
    Path("s.pg").write_text("node Lamp {}\n")
    text = "query one() { match { $l: Zzz } return { $l.id } }\nquery two( {\n"
    Path("q.gq").write_text(text)
    ended = omnigraph("lint", "--schema", "s.pg", "--query", "q.gq", "--fix")
    assert ended.code == 1
    assert Path("q.gq").read_text() == text
    wrong = omnigraph("lint", "--schema", "-", "--fix", stdin=b"node A {}")
    assert (wrong.code, "cannot be used with standard input" in wrong.err) == (2, True)


def test_quiet_prints_nothing_but_results_and_errors(omnigraph: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(warnings, "showwarning", _show_warning)
    Path("s.pg").write_text("node Lamp { wattsNow: I32 }\nedge Near: Lamp -> Lamp\n")
    assert "warning" in omnigraph("init", "a", "--schema", "s.pg").err
    ended = omnigraph("--quiet", "init", "b", "--schema", "s.pg")
    assert (ended.out, ended.err) == ("", "")
    ended = omnigraph("--quiet", "snapshot", "nowhere")
    assert ended.err.startswith("error: ")
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        for words in ("tag create b v1", "branch create b c", "branch create b v1"):
            ended = omnigraph("--quiet", *words.split())
            assert (ended.code, ended.out, ended.err) == (0, "", "")
        assert omnigraph("--quiet", "snapshot", "b", "--at", "v1").err == ""
        assert "warning: revision 'v1' is both a tag and a branch" in omnigraph("snapshot", "b", "--at", "v1").err


def test_quiet_writes_print_nothing_and_previews_print_their_result(omnigraph: Program, graph: package.Graph) -> None:
    graph.branches.create("side").insert("Person", {"name": "cyd", "age": 30})
    Path("more.ndjson").write_text('{"type": "Person", "data": {"name": "dee", "age": 1}}\n')
    load = ("load", "g", "--data", "more.ndjson", "--mode", "merge")
    assert omnigraph("--quiet", *load, "--dry-run").out.startswith("would load into main")
    assert omnigraph("--quiet", "branch", "merge", "g", "side", "--dry-run").out.startswith("would merge side")
    writes = (load, ("branch", "merge", "g", "side"), ("undo", "g"), ("optimize", "g"), ("tag", "delete", "g", "t"))
    graph.tag("t")
    for words in writes:
        ended = omnigraph("--quiet", *words)
        assert (ended.code, ended.out, ended.err) == (0, "", ""), words
    assert omnigraph("--quiet", "branch", "list", "g").out == "main\nside\n"


@pytest.mark.parametrize(
    ("words", "spelling"),
    [
        ("read g", "'read' is now `omnigraph query`"),
        ("change g", "'change' is now `omnigraph mutate`"),
        ("ingest g --data x", "'ingest' is now `omnigraph load`"),
        ("query lint --schema s.pg --query q.gq", "use `omnigraph lint --schema FILE --query FILE`"),
        ("query check --schema=s.pg --query q.gq", "use `omnigraph lint --schema FILE --query FILE`"),
        ("check --query q.gq", "`check` verifies a graph; to check queries, use `omnigraph lint`"),
        ("export g --jsonl", "`export` writes NDJSON by default"),
        ("query all --alias a", "use `omnigraph alias NAME` instead of --alias"),
        ("commit list --target prod", "use --store URI or --profile NAME instead of --target"),
    ],
)
def test_old_spellings_name_the_new_ones(omnigraph: Program, words: str, spelling: str) -> None:
    ended = omnigraph(*words.split())
    assert (ended.code, ended.out) == (2, "")
    assert spelling in " ".join(ended.err.split())


def test_mutate_names_generated_ids(omnigraph: Program, graph: package.Graph) -> None:
    words = ("mutate", "g", "-e", 'insert Person { name: "cy" } insert Knows { from: "ada", to: "cy" }', "--json")
    told = json.loads(omnigraph(*words).out)
    assert told["ids"]["Person"] == ["cy"]
    (edge_id,) = told["ids"]["Knows"]
    assert graph.edges("Knows").result().to_dicts()[0]["id"] == edge_id


@pytest.mark.parametrize("count", [1, 2])
def test_key_conflicts_end_alike_for_one_and_several(
    omnigraph: Program, graph: package.Graph, count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = [json.dumps({"type": "Person", "data": {"name": name}}) for name in ("ada", "bob")[:count]]
    Path("d.ndjson").write_text("\n".join(lines))
    words = ("load", "g", "--data", "d.ndjson", "--mode", "append")
    ended = omnigraph(*words)
    assert (ended.code, ended.out) == (1, "")
    monkeypatch.setenv("OMNIGRAPH_EXIT_CODES", "extended")
    assert omnigraph(*words).code == 3
    told = omnigraph(*words, "--json-errors")
    assert (told.code, json.loads(told.out)["kind"]) == (3, "KeyConflict")
    assert "key_conflict" in told.out


def test_small_conveniences(omnigraph: Program, graph: package.Graph) -> None:
    assert omnigraph("schema", "get", "g").out == omnigraph("schema", "show", "g").out == SCHEMA
    branch = graph.branches.create("r")
    branch.insert("Person", {"name": "cy"})
    merged = omnigraph("branch", "merge", "g", "r", "--delete-branch")
    assert (merged.code, "deleted branch r\n" in merged.err) == (0, True)
    graph.branches.create("r")
    merged = omnigraph("branch", "merge", "g", "r", "--delete-branch")
    assert (merged.out, "deleted branch r\n" in merged.err) == ("main already has all changes from r\n", True)
    assert "r" not in graph.branches
    Path("f").write_text("")
    for location in ("f", "f/x"):
        ended = omnigraph("init", location, "--schema", "-", stdin=b"node A {}")
        assert (ended.code, "f is a file" in ended.err) == (1, True)


def test_doctor_checks_the_configuration(omnigraph: Program, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def outcome() -> str:
        found = json.loads(omnigraph("doctor", "--json").out)["diagnoses"]
        return next(str(one["outcome"]) for one in found if one["name"] == "configuration")

    monkeypatch.setenv("OMNIGRAPH_HOME", str(tmp_path))
    assert outcome() == "ok"
    for text, expected in (("defaults: {output: csv}", "ok"), ("profiles: {a: {}}", "warning"), ("- a", "error")):
        (tmp_path / "config.yaml").write_text(text)
        assert outcome() == expected


def test_undo_skips_maintenance_commits(omnigraph: Program, graph: package.Graph) -> None:
    insertion = graph.head.id
    for number in range(8):
        graph.insert("Person", {"name": f"p{number}", "age": number})
    newest = graph.head.id
    assert omnigraph("optimize", "g").code == 0
    assert package.open("g").head.id not in (insertion, newest)
    ended = omnigraph("undo", "g")
    assert ended.out.startswith(f"reverted {newest} on main: 0 added, 0 changed, 1 removed; commit "), ended.out
    assert "p7" not in names(package.open("g"))


def test_undo_says_that_it_keeps_a_schema_change(omnigraph: Program, graph: package.Graph) -> None:
    branch = graph.branches.create("b")
    branch.schema.apply(SCHEMA.replace("age: I32?", "age: I32?  nickname: String?"))
    branch.insert("Person", {"name": "cyd", "nickname": "c"})
    graph.merge("b")
    ended = omnigraph("undo", "g")
    assert "1 removed" in ended.out
    assert "note: the schema change in HEAD is kept" in ended.err
    assert "omnigraph schema apply" in ended.err
    again = omnigraph("undo", "g")
    assert "schema change" not in again.err


def test_time_before_the_graph_existed_is_not_a_misspelling(omnigraph: Program, graph: package.Graph) -> None:
    ended = omnigraph("query", "g", "--at", "2001-01-01", "-e", "match { $p: Person } return { $p.name }")
    assert ended.code != 0
    assert "the graph did not exist at 2001-01-01" in ended.err
    assert "spelling" not in ended.err
    assert "omnigraph log" in ended.err


def test_address_in_use_is_not_called_invalid_configuration(omnigraph: Program, graph: package.Graph) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        address = f"127.0.0.1:{listener.getsockname()[1]}"
        ended = omnigraph("serve", "g", "--bind", address, "--unauthenticated")
    assert ended.code != 0
    assert f"cannot listen on {address}: Address already in use" in ended.err
    assert "configuration" not in ended.err
    assert "--bind" in ended.err
