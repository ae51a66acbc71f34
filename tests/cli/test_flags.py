"""Common flags, help pages, versions, exit codes and unexpected errors."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from omnigraph import errors
from omnigraph.cli import exits
from omnigraph.cli.main import cli
from omnigraph.errors.diagnostics import Diagnostic
from tests.cli.conftest import Program

SHARED = ("--json", "--json-errors", "--color", "--quiet", "--debug", "--help")
ESCAPE = "\x1b["


def commands(group: click.Group, *path: str) -> Iterator[tuple[str, ...]]:
    """The words of every command, groups included."""
    yield path
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if isinstance(command, click.Group):
            yield from commands(command, *path, name)
        else:
            yield (*path, name)


COMMANDS = list(commands(cli))


def test_command_list_matches_the_expected_one() -> None:
    assert {" ".join(words) for words in COMMANDS} == {
        "",
        "init",
        "query",
        "mutate",
        "load",
        "export",
        "blob",
        "blob get",
        "blob stat",
        "blob put",
        "explain",
        "branch",
        "branch create",
        "branch list",
        "branch delete",
        "commit",
        "commit list",
        "commit show",
        "snapshot",
        "serve",
        "token",
        "token new",
        "login",
        "logout",
        "check",
        "cleanup",
        "optimize",
        "ensure-indices",
        "copy",
        "recovery",
        "recovery list",
        "recovery retry",
        "recovery drop",
        "alias",
        "graphs",
        "graphs list",
        "queries",
        "queries list",
        "queries show",
        "job",
        "job list",
        "job show",
        "job wait",
        "lint",
        "schema",
        "schema check",
        "schema diff",
        "schema infer",
        "schema show",
        "fmt",
        "describe",
        "shell",
        "completion",
        "profile",
        "profile list",
        "profile show",
        "config",
        "config path",
        "config show",
        "version",
        "status",
        "doctor",
        "repair",
        "upgrade",
        "branch merge",
        "branch rename",
        "branch reset",
        "diff",
        "log",
        "history",
        "blame",
        "tag",
        "tag create",
        "tag list",
        "tag delete",
        "revert",
        "undo",
        "cherry-pick",
        "commit changes",
        "changes",
        "changes poll",
        "changes baseline",
        "schema apply",
        "schema plan",
    }


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
@pytest.mark.parametrize("flag", ["--help", "-h"])
def test_every_command_has_a_help_page(omnigraph: Program, words: tuple[str, ...], flag: str) -> None:
    ended = omnigraph(*words, flag)
    assert (ended.code, ended.err) == (0, "")
    assert ended.out.startswith(f"Usage: {' '.join(['omnigraph', *words])} ")
    assert [one for one in SHARED if one not in ended.out] == []


def test_help_page_lists_the_exit_codes(omnigraph: Program) -> None:
    told = " ".join(omnigraph("--help").out.split())
    assert (
        "0 success, 1 failure, 2 usage error, 4 --if-commit did not match, 5 --check found"
        " differences or warnings, 130 interrupted, 143" in told
    )


@pytest.mark.parametrize(
    "words",
    [
        "",
        "schema",
        "lint",
        "lint --shcema a.pg",
        "lint --schema",
        "lint --schema a.pg --format yaml",
        "fmt",
        "fmt a.pg --language sql",
        "schema diff a.pg",
        "schema diff a.pg b.pg c.pg",
        "describe --schema a.pg",
        "completion tcsh",
        "version 2",
        "init g",
        "init --schema a.pg",
        "branch",
        "branch create",
        "branch list",
        "branch list --uri g --store g",
        "commit list g --store h",
        "commit list g --limit 0",
        "commit list g --filter colour=red",
        "snapshot",
        "snapshot g h",
        "branch list --uri g --as me",
        "copy g",
        "--color sometimes version",
        "--nonsense",
    ],
)
def test_usage_errors_go_to_standard_error(omnigraph: Program, words: str) -> None:
    ended = omnigraph(*words.split())
    assert (ended.code, ended.out) == (2, "")
    assert re.match(r"(Usage|Error): ", ended.err)
    assert "Traceback" not in ended.err


def test_version(omnigraph: Program) -> None:
    ended = omnigraph("version")
    assert ended.code == 0
    assert re.match(r"^omnigraph \d+\.\d+\.\d+\n", ended.out)
    assert omnigraph("-V").out == omnigraph("--version").out == f"{ended.out.splitlines()[0]}\n"
    told = json.loads(omnigraph("version", "--json").out)
    assert [f"{name} {number}" for name, number in told.items()] == ended.out.splitlines()


# Colors  ----------------------------------------------------------------------------------------


@pytest.fixture
def broken() -> Path:
    path = Path("broken.pg")
    path.write_text("node lamp {}\n")
    return path


@pytest.mark.parametrize(
    ("environment", "flags", "colored"),
    [
        ({}, [], False),  # what is captured is no terminal
        ({}, ["--color", "auto"], False),
        ({}, ["--color", "always"], True),
        ({}, ["--color", "never"], False),
        ({"CLICOLOR_FORCE": "1"}, [], True),
        ({"CLICOLOR_FORCE": "0"}, [], False),
        ({"CLICOLOR_FORCE": "1"}, ["--color", "never"], False),
        ({"CLICOLOR_FORCE": "1"}, ["--color", "auto"], False),
        ({"NO_COLOR": "1", "CLICOLOR_FORCE": "1"}, [], False),
        ({"NO_COLOR": "1"}, ["--color", "always"], True),
    ],
)
def test_colors(
    omnigraph: Program,
    broken: Path,
    monkeypatch: pytest.MonkeyPatch,
    environment: dict[str, str],
    flags: list[str],
    colored: bool,
) -> None:
    plain = omnigraph("schema", "check", broken)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    for words in (
        ["schema", "check", str(broken)],  # findings, as a result
        ["schema", "diff", str(broken), str(broken)],  # findings, as an error
        ["schema", "check", "gone.pg"],  # an error without a place
    ):
        for line in (words + flags, flags + words):
            ended = omnigraph(*line)
            assert (ESCAPE in ended.out + ended.err) is colored
    assert click.unstyle(omnigraph("schema", "check", broken, *flags).out) == plain.out


def test_command_flag_overrides_the_global_flag(omnigraph: Program, broken: Path) -> None:
    said = omnigraph("--color", "always", "schema", "check", broken, "--color", "never").out
    assert ESCAPE not in said
    said = omnigraph("--color", "never", "schema", "check", broken, "--color", "always").out
    assert ESCAPE in said


def test_machine_formats_have_no_colors(omnigraph: Program, broken: Path, library: Path) -> None:
    always = ("--color", "always")
    for words in (
        ["schema", "check", broken, "--json"],
        ["lint", "--schema", broken, "--format", "sarif"],
        ["schema", "diff", library / "schema.pg", library / "schema-next.pg", "--json"],
        ["schema", "diff", broken, broken, "--json-errors"],
    ):
        ended = omnigraph(*always, *words)
        assert ESCAPE not in ended.out + ended.err
        json.loads(ended.out)


def test_colors_of_a_plan(omnigraph: Program, library: Path) -> None:
    words = ("schema", "diff", library / "schema-next.pg", library / "schema.pg")
    said = omnigraph(*words, "--color", "always").out.splitlines()
    colors = {(click.unstyle(line)[0], line[: line.index("m")]) for line in said[:-1]}
    assert colors >= {("+", "\x1b[32"), ("-", "\x1b[31"), ("~", "\x1b[32"), ("✗", "\x1b[31")}
    lossy = [line for line in said if line.endswith("[destructive]")]
    assert lossy
    assert all(line.startswith("\x1b[31") for line in lossy)


# Errors -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("words", ["schema check gone.pg", "schema diff a.pg a.pg"])
def test_traceback_is_shown_only_on_request(omnigraph: Program, words: str) -> None:
    Path("a.pg").write_text("node a {}")
    assert "Traceback" not in omnigraph(*words.split()).err
    ended = omnigraph(*words.split(), "--debug")
    assert ended.code == 1
    assert "Traceback (most recent call last)" in ended.err
    assert ended.err.endswith(omnigraph(*words.split()).err)


def test_unexpected_errors_are_typed(omnigraph: Program, monkeypatch: pytest.MonkeyPatch, broken: Path) -> None:
    def explode(*_: object) -> None:
        raise ZeroDivisionError("by zero")

    monkeypatch.setattr("omnigraph.lang.schema.examine_schema", explode)
    ended = omnigraph("schema", "check", broken)
    assert (ended.code, ended.out) == (1, "")
    assert ended.err.startswith("error: unexpected ZeroDivisionError: by zero\nhint: ")
    assert "Traceback" not in ended.err
    assert "Traceback" in omnigraph("--debug", "schema", "check", broken).err
    told = json.loads(omnigraph("--json-errors", "schema", "check", broken).out)
    assert (told["kind"], told["effect"]) == ("InternalError", "unknown")


@pytest.mark.parametrize(
    ("error", "plain", "extended"),
    [
        (errors.ParseError("no"), 1, 1),
        (errors.InputError("no"), 1, 1),
        (errors.UsageError("no"), 2, 2),
        (errors.PreconditionFailed("no"), 4, 4),
        (errors.MergeConflict("no"), 1, 3),
        (errors.KeyConflict("no"), 1, 3),
        (errors.PermissionDenied("no"), 1, 6),
        (errors.Unauthenticated("no"), 1, 6),
        (errors.TooManyRequests("no"), 1, 7),
        (errors.StorageError(kind="transient"), 1, 7),
        (errors.InternalError("no"), 1, 1),
        (ValueError("no"), 1, 1),
    ],
    ids=lambda one: type(one).__name__ if isinstance(one, Exception) else "",
)
def test_exit_codes_of_errors(monkeypatch: pytest.MonkeyPatch, error: Exception, plain: int, extended: int) -> None:
    monkeypatch.delenv("OMNIGRAPH_EXIT_CODES", raising=False)
    assert exits.error_exit_code(error) == plain
    monkeypatch.setenv("OMNIGRAPH_EXIT_CODES", "something else")
    assert exits.error_exit_code(error) == plain
    monkeypatch.setenv("OMNIGRAPH_EXIT_CODES", "extended")
    assert exits.error_exit_code(error) == extended


def test_the_exit_code_of_a_command_follows_the_table(
    omnigraph: Program, monkeypatch: pytest.MonkeyPatch, broken: Path
) -> None:
    def refuse(*_: object) -> None:
        raise errors.PermissionDenied("no")

    monkeypatch.setattr("omnigraph.lang.schema.examine_schema", refuse)
    assert omnigraph("schema", "check", broken).code == 1
    monkeypatch.setenv("OMNIGRAPH_EXIT_CODES", "extended")
    assert omnigraph("schema", "check", broken).code == 6


@pytest.mark.parametrize(
    ("severities", "plain", "strict"),
    [([], 0, 0), (["info"], 0, 0), (["warning"], 0, 5), (["warning", "error"], 1, 1), (["error"], 1, 1)],
)
def test_exit_codes_of_findings(severities: list[str], plain: int, strict: int) -> None:
    found = [Diagnostic("x", severity=one) for one in severities]  # type: ignore[arg-type]
    assert exits.diagnostics_exit_code(found) == plain
    assert exits.diagnostics_exit_code(found, strict=True) == strict
