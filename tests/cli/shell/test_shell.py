"""The shell without a terminal: statements from a pipe, errors, and the current graph and branch."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

import omnigraph as package
from tests.cli.conftest import Outcome, Program

SCHEMA = "node Person { name: String @key  age: I32? @index }  edge Knows: Person -> Person { since: Date? }"
NAMES = "match { $p: Person } return { $p.name } order { $p.name }"
Shell = Callable[..., Outcome]


@pytest.fixture
def shell(omnigraph: Program) -> Shell:
    """Statements run in a shell on a graph with one person and the tag v1, with results as CSV."""
    graph = package.init("people", SCHEMA)
    graph.insert("Person", {"name": "ada", "age": 36})
    graph.tag("v1")

    def run_shell(*statements: str, flags: tuple[str, ...] = ()) -> Outcome:
        return omnigraph("shell", "people", *flags, stdin="\n".join(("\\format csv", *statements)).encode())

    return run_shell


def test_queries_mutations_and_commands_share_a_branch(shell: Shell) -> None:
    ended = shell(
        "branch create review",
        "\\branch review",
        'insert Person { name: "bob" }',
        NAMES,
        "commit show HEAD --json",
        "\\branch main",
        NAMES,
    )
    assert ended.code == 0, ended.err
    assert "changed review: 1 node, 0 edges" in ended.out
    assert "p.name\nada\nbob\n" in ended.out
    assert ended.out.endswith("}\np.name\nada\n")
    assert ended.err == ""


def test_commands_default_to_the_current_branch(shell: Shell) -> None:
    Path("p.ndjson").write_text('{"type": "Person", "data": {"name": "cy"}}')
    ended = shell(
        "branch create review",
        "\\branch review",
        "load --data p.ndjson --mode append",
        "branch create next",
        "branch merge next",
    )
    assert "loaded into review" in ended.out
    assert "created branch next from review" in ended.out
    assert "into review" in ended.out
    assert package.open("people").nodes("Person").ids() == ["ada"]


def test_revision_is_pinned_until_it_is_released(shell: Shell) -> None:
    ended = shell(
        'insert Person { name: "bob" }', "\\at v1", NAMES, "\\at", NAMES, "\\at HEAD~1", "query -e '" + NAMES + "'"
    )
    assert ended.code == 0, ended.err
    assert ended.out.count("p.name\nada\n") == 2
    assert "p.name\nada\nbob\n" in ended.out


def test_write_at_a_revision_is_refused(shell: Shell) -> None:
    ended = shell("\\at v1", 'insert Person { name: "bob" }')
    assert ended.code == 1
    assert "the shell is at revision v1, not on a branch" in ended.err
    assert "enter \\at to return to the head of main" in ended.err


def test_first_error_ends_the_shell_with_its_exit_code(shell: Shell) -> None:
    for statement, code in (
        ("match { $p: Persn } return { $p }", 1),
        ("branch lst", 2),
        ("\\nothing", 2),
        ("log 'x", 2),
    ):
        ended = shell(statement, NAMES)
        assert (ended.code, ended.out) == (code, ""), statement
        assert "rror" in ended.err


def test_shell_keeps_going_if_asked_to(shell: Shell) -> None:
    ended = shell("branch lst", "match { $p: Persn } return { $p }", NAMES, flags=("--keep-going",))
    assert (ended.code, ended.out) == (2, "p.name\nada\n")


def test_types_are_described(shell: Shell) -> None:
    ended = shell("\\d", "\\d Person", "\\d Knows")
    assert ended.out.splitlines() == [
        "kind  type    endpoints         properties  rows",
        "node  Person                    2           1",
        "edge  Knows   Person -> Person  1           0",
        "node Person",
        "  property  type    constraints",
        "  age       I32?    @index",
        "  name      String  @key",
        "edge Knows: Person -> Person",
        "  property  type   constraints",
        "  since     Date?",
    ]
    assert "did you mean `Person`?" in shell("\\d Persn").err


def test_results_go_to_a_file_and_scripts_come_from_files(shell: Shell) -> None:
    Path("script").write_text(f"\\o out.csv\n{NAMES}\n\\o\n")
    ended = shell("\\i script", "branch list")
    assert (ended.code, ended.out) == (0, "main\n")
    assert Path("out.csv").read_text() == "p.name\nada\n"
    assert "cannot read" in shell("\\i missing").err
    Path("loop").write_text("\\i loop\n")
    assert "nested more than 16 levels deep" in shell("\\i loop").err


def test_formats_timing_help_and_leaving(shell: Shell) -> None:
    ended = shell(
        "\\format json", NAMES, "\\timing on", "branch list", "\\h", "\\h branch list", "\\h \\at", "\\q", "branch lst"
    )
    assert ended.code == 0, ended.err
    document, _, rest = ended.out.partition("\nmain\n")
    assert json.loads(document)["rows"] == [{"p.name": "ada"}]
    assert "\\branch [NAME]" in rest
    assert "Usage: branch list [OPTIONS] [GRAPH]" in rest
    assert "\\at [REVISION]: Read a past revision" in rest
    assert ended.err.count("time: ") == 6  # \timing itself, four statements, and \q
    assert shell("quit", "branch lst").code == 0
    assert "expected one of table, csv, json, kv" in shell("\\format xml").err


def test_actor_and_settings_of_the_shell_apply_to_its_commands(shell: Shell) -> None:
    ended = shell('insert Person { name: "bob" }', "branch list", flags=("--as", "ann", "--json"))
    assert ended.code == 0, ended.err
    assert package.open("people").head.actor == "ann"
    assert '"branches": [' in ended.out


def test_shell_does_not_nest_and_needs_an_existing_branch(shell: Shell, omnigraph: Program) -> None:
    assert "already running" in shell("shell people").err
    assert omnigraph("shell", "people", "--branch", "nothing").code == 1
    assert "\\branch nothing" not in shell("\\branch nothing").err
    assert shell("\\branch nothing").code == 1


def test_current_branch_cannot_be_deleted(shell: Shell) -> None:
    ended = shell("branch create review", "\\branch review", "branch delete review")
    assert ended.code == 1
    assert "review" in package.open("people").branches
