"""`omnigraph.lint`: the findings of the command line for programs."""

import json
from pathlib import Path

import pytest

import omnigraph
from omnigraph import Graph, Schema
from omnigraph.errors import InputError

SCHEMA = "node Person { name: String @key  age: I32? }"
GOOD = "query all() { match { $p: Person } return { $p.name } }"
BAD = "query bad() { match { $p: Person } return { $p.nmae } }"
HARD_CODED = 'query one() { insert Person { name: "ada" } }'


def test_valid_queries_have_no_findings() -> None:
    report = omnigraph.lint(GOOD, SCHEMA)
    assert (report.ok, list(report), len(report), str(report)) == (True, [], 0, "no findings")
    assert not report
    assert report.to_json()["queries_processed"] == 1


def test_findings_have_positions_codes_and_hints() -> None:
    report = omnigraph.lint([GOOD, BAD, HARD_CODED], Schema(SCHEMA))
    (error,), (warning,) = report.errors, report.warnings
    assert (error.code, error.line, error.column, error.severity, error.path) == ("T6", 1, 45, "error", "<query>")
    assert error.hint == "did you mean `name`?"
    assert "hard-coded" in warning.message
    assert repr(report) == "<LintReport: 1 error, 1 warning>"
    assert str(report) == f"{error}\n{warning}"
    assert "nmae" in report._repr_html_()


def test_an_invalid_schema_hides_the_queries() -> None:
    report = omnigraph.lint(BAD, "node person {}")
    assert [finding.path for finding in report.errors] == ["<schema>"]
    assert report.to_json()["queries_processed"] == 0


def test_a_schema_of_a_graph_is_accepted(graph: Graph) -> None:
    assert omnigraph.lint(GOOD, graph.schema).ok
    assert not omnigraph.lint(BAD, graph.schema).ok


def test_files_and_folders_are_read(tmp_path: Path) -> None:
    (tmp_path / "s.pg").write_text(SCHEMA)
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "a.gq").write_text(GOOD)
    (tmp_path / "b.gq").write_text(BAD)
    (tmp_path / "notes.txt").write_text("no query")
    folder = omnigraph.lint(tmp_path, tmp_path / "s.pg")
    assert [linted.source.name for linted in folder.files] == [str(tmp_path / "b.gq"), str(tmp_path / "sub" / "a.gq")]
    assert len(folder.to_json()["queries"]) == 2
    assert omnigraph.lint(tmp_path / "b.gq", tmp_path / "s.pg").to_json()["query_path"].endswith("b.gq")
    with pytest.raises(InputError, match="cannot read"):
        omnigraph.lint(tmp_path / "none.gq", SCHEMA)


def test_bytes_that_are_no_text_are_a_finding(tmp_path: Path) -> None:
    (tmp_path / "a.gq").write_bytes(b"query \xff")
    report = omnigraph.lint(tmp_path / "a.gq", SCHEMA)
    assert [finding.code for finding in report.errors] == ["Q000"]


def test_the_json_form_is_that_of_the_command_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from omnigraph.cli.main import main

    monkeypatch.chdir(tmp_path)
    Path("s.pg").write_text(SCHEMA)
    for name, text in (("a.gq", GOOD), ("b.gq", BAD), ("c.gq", HARD_CODED)):
        Path(name).write_text(text)
    for paths in (["b.gq"], ["a.gq", "c.gq"]):
        with pytest.raises(SystemExit):
            main(["lint", "--schema", "s.pg", *(word for path in paths for word in ("--query", path)), "--json"])
        assert (
            json.loads(capsys.readouterr().out)
            == omnigraph.lint([Path(path) for path in paths], Path("s.pg")).to_json()
        )
