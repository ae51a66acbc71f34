"""Completion of names for shells: what is offered, the cache, and silence on failure."""

import json
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

import omnigraph as package
from omnigraph.cli import completion_names
from omnigraph.cli.completion_names import load_names
from omnigraph.cli.completion_refresh import refresh_names
from tests.cli.conftest import Program
from tests.cli.test_process_behavior import PROGRAM, environment

SCHEMA = "node Person { name: String @key  photo: Blob? }  edge Knows: Person -> Person"
Completer = Callable[[str], list[str]]


@pytest.fixture
def graph(omnigraph: Program) -> str:
    """A graph whose names are cached."""
    opened = package.init("people", SCHEMA)
    opened.branches.create("review")
    opened.tag("v1")
    refresh_names(opened.uri)
    return opened.uri


@pytest.fixture
def complete(omnigraph: Program, monkeypatch: pytest.MonkeyPatch) -> Completer:
    """The completions of a line, as bash requests them."""

    def complete_line(line: str) -> list[str]:
        monkeypatch.setenv("_OMNIGRAPH_COMPLETE", "bash_complete")
        monkeypatch.setenv("COMP_WORDS", line)
        monkeypatch.setenv("COMP_CWORD", str(len(line.split(" ")) - 1))
        ended = omnigraph()
        assert (ended.code, ended.err) == (0, "")
        return ended.out.split()

    return complete_line


@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("omnigraph log people --branch ", ["main", "review"]),
        ("omnigraph branch merge people r", ["review"]),
        ("omnigraph branch merge people review --into m", ["main"]),
        ("omnigraph branch create people r", []),
        ("omnigraph tag delete people ", ["v1"]),
        ("omnigraph diff people ", ["main", "review", "v1", "HEAD"]),
        ("omnigraph query people --at v", ["v1"]),
        ("omnigraph export people --type ", ["Person", "Knows"]),
        ("omnigraph history people P", ["Person"]),
        ("omnigraph blob get people Person ada ", ["name", "photo"]),
        ("omnigraph log --store people --branch r", ["review"]),
        ("omnigraph --store people log --branch r", ["review"]),
        ("omnigraph log p", ["people"]),
        ("omnigraph query people --query q.gq ", ["adults", "all"]),
        ("omnigraph --profile ", ["prod", "test"]),
        ("omnigraph log --profile t", ["test"]),
        ("omnigraph alias ", ["adults"]),
        ("omnigraph completion p", ["powershell"]),
    ],
)
def test_names_are_offered(complete: Completer, graph: str, line: str, offered: list[str]) -> None:
    Path("q.gq").write_text("// query x(\nquery adults($a: I32) { match { } }\nquery all() {")
    home = Path(os.environ["OMNIGRAPH_HOME"])
    profiles = "profiles: {prod: {store: s3://lake/people}, test: {store: people}}"
    (home / "config.yaml").write_text(f"{profiles}\naliases: {{adults: {{query: adults}}}}\ncolour: red")
    assert complete(line) == [f"plain,{value}" for value in offered]


def test_graph_is_found_in_the_environment(complete: Completer, graph: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMNIGRAPH_STORE", "people")
    assert complete("omnigraph log --branch r") == ["plain,review"]
    assert complete("omnigraph branch delete r") == ["plain,review"]


def test_files_and_directories_are_left_to_the_shell(complete: Completer, omnigraph: Program) -> None:
    assert complete("omnigraph load g --data x") == ["file,x"]
    assert complete("omnigraph query g --out ") == ["file,"]
    assert complete("omnigraph log nothing") == ["dir,nothing"]


@pytest.mark.parametrize(
    "line",
    [
        "omnigraph log missing --branch ",
        "omnigraph log s3://lake/missing --branch ",
        "omnigraph log https://example.com --branch ",
        "omnigraph query people --query missing.gq ",
        "omnigraph log --profile ",
    ],
)
def test_failures_are_silent(complete: Completer, line: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(completion_names, "_refresh_names", lambda _: None)
    Path(os.environ["OMNIGRAPH_HOME"]).mkdir()
    Path(os.environ["OMNIGRAPH_HOME"], "config.yaml").write_text("profiles: [broken")
    assert complete(line) == []


def test_only_outdated_names_of_local_graphs_are_refreshed(
    complete: Completer, graph: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    refreshed: list[str] = []
    monkeypatch.setattr(completion_names, "_refresh_names", refreshed.append)
    (cached,) = Path(os.environ["OMNIGRAPH_HOME"], "completion").iterdir()
    assert cached.stat().st_mode & 0o777 == 0o600
    complete("omnigraph log people --branch ")
    assert refreshed == []
    document = json.loads(cached.read_text())
    cached.write_text(json.dumps(document | {"saved_at": document["saved_at"] - 31_000}))
    assert complete("omnigraph log people --branch r") == ["plain,review"]  # better an old answer than none
    complete("omnigraph log s3://lake/people --branch ")
    assert refreshed == [graph]


def test_refresh_process_fills_the_cache(omnigraph: Program) -> None:
    uri = package.init("people", SCHEMA).uri
    arguments = [*PROGRAM[:2], "omnigraph.cli.completion_refresh", uri]
    subprocess.run(arguments, check=True, env=environment(OMNIGRAPH_HOME=os.environ["OMNIGRAPH_HOME"]))
    names, saved_at = load_names(uri)
    assert names is not None
    assert saved_at is not None
    assert (names.branches, names.types) == (("main",), ("Person", "Knows"))


def test_bash_completes_branches(graph: str, tmp_path: Path) -> None:
    bash = shutil.which("bash")
    if bash is None:
        pytest.skip("no bash")
    (tmp_path / "omnigraph").write_text(f'#!/bin/sh\nexec {" ".join(PROGRAM)} "$@"\n')
    (tmp_path / "omnigraph").chmod(0o755)
    script = """
        eval "$(omnigraph completion bash)"
        COMP_WORDS=(omnigraph branch delete people r) COMP_CWORD=4
        _omnigraph_completion omnigraph
        echo "${COMPREPLY[@]}"
    """
    variables = environment(
        PATH=f"{tmp_path}{os.pathsep}{os.environ['PATH']}", OMNIGRAPH_HOME=os.environ["OMNIGRAPH_HOME"]
    )
    ended = subprocess.run([bash, "--norc", "-c", script], capture_output=True, env=variables, check=False)
    assert (ended.stdout, ended.stderr) == (b"review\n", b"")


def test_powershell_gets_values_and_help(omnigraph: Program, graph: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "Register-ArgumentCompleter -Native -CommandName omnigraph" in omnigraph("completion", "powershell").out
    monkeypatch.setenv("_OMNIGRAPH_COMPLETE", "powershell_complete")
    monkeypatch.setenv("COMP_WORDS", "omnigraph\nbranch\ndelete\n'people'")
    monkeypatch.setenv("COMP_CWORD", "r")
    assert omnigraph().out == "plain\treview\treview\n"
    monkeypatch.setenv("COMP_WORDS", "omnigraph")
    monkeypatch.setenv("COMP_CWORD", "vers")
    assert omnigraph().out == "plain\tversion\tPrint version information\n"


def test_unknown_instruction_is_an_error(omnigraph: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("_OMNIGRAPH_COMPLETE", "tcsh_complete")
    assert omnigraph().code == 1
