"""Global flags for graph, actor and confirmation: before or after a command, or rejected."""

import json
import shlex
from pathlib import Path

import pytest

import omnigraph as library
from tests.cli.conftest import Outcome, Program
from tests.rig.writes import SCHEMA


@pytest.fixture
def graph(omnigraph: Program) -> str:
    Path("small.pg").write_text(SCHEMA)
    assert omnigraph("init", "--schema", "small.pg", "g").code == 0
    return "g"


def told(ended: Outcome) -> dict[str, object]:
    assert ended.code == 0, ended.err
    found: dict[str, object] = json.loads(ended.out)
    return found


@pytest.mark.parametrize(
    "words",
    [
        "--store g branch list",
        "branch --store g list",
        "branch list --store g",
        "--store g snapshot",
        "--store g commit list",
        "commit --store g list",
        "--store g recovery list",
        "--store nowhere branch list --store g",
        "--store g --yes --as ann branch create --as bob b",
        "--store g --json branch list",
    ],
)
def test_global_flag_may_precede_the_command(omnigraph: Program, graph: str, words: str) -> None:
    if "--yes" in words:
        omnigraph("branch", "create", "b", "--store", graph)
        words = "--store g --yes --as ann branch delete b"
    ended = omnigraph(*words.split())
    assert ended.code == 0, ended.err


@pytest.mark.parametrize(
    "words", ["branch list", "log", "query -e 'match { $p: Person } return { $p.id }'", "diff main"]
)
def test_environment_names_the_graph(
    omnigraph: Program, graph: str, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert omnigraph(*shlex.split(words)).code == 2
    monkeypatch.setenv("OMNIGRAPH_STORE", graph)
    ended = omnigraph(*shlex.split(words))
    assert ended.code == 0, ended.err


def test_option_overrides_the_environment(omnigraph: Program, graph: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMNIGRAPH_STORE", "nowhere")
    assert "nowhere" in omnigraph("branch", "list").err
    assert omnigraph("branch", "list", "--store", graph).code == 0


def test_suggested_commands_can_be_pasted_if_the_environment_names_the_graph(
    omnigraph: Program, graph: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = library.open(graph)
    opened.load([{"type": "Person", "data": {"id": "p", "n": 1}}], mode="append")
    branch = opened.branches.create("b")
    branch.update("Person", where="id = 'p'", set={"n": 2})
    opened.update("Person", where="id = 'p'", set={"n": 3})
    monkeypatch.setenv("OMNIGRAPH_STORE", graph)
    refused = omnigraph("branch", "merge", "b")
    (command,) = (line.split("#")[0] for line in refused.err.splitlines() if "--strategy theirs" in line)
    ended = omnigraph(*shlex.split(command)[1:])
    assert ended.code == 0, (command, ended.err)


def test_command_flag_overrides_the_global_flag(omnigraph: Program, graph: str) -> None:
    made = "branch create b --store g --json".split()
    assert told(omnigraph("--as", "ann", *made))["actor_id"] == "ann"
    gone = "branch delete b --store g --json".split()
    assert told(omnigraph("--as", "ann", *gone, "--as", "bob"))["actor_id"] == "bob"


@pytest.mark.parametrize(
    ("words", "flag"),
    [
        ("--as ann branch list --store g", "--as"),
        ("--as ann --store g snapshot", "--as"),
        ("--yes branch create b --store g", "--yes"),
        ("branch --yes create b --store g", "--yes"),
        ("--store g copy g h", "--store"),
        ("--store g version", "--store"),
        ("--as ann schema check small.pg", "--as"),
    ],
)
def test_unsupported_global_flag_is_rejected(omnigraph: Program, graph: str, words: str, flag: str) -> None:
    before = sorted(Path().rglob("*"))
    ended = omnigraph(*words.split())
    assert (ended.code, ended.out) == (2, "")
    assert f"does not accept {flag}" in ended.err
    assert sorted(Path().rglob("*")) == before
    assert omnigraph(*words.split(), "--help").code == 0


def test_two_graph_arguments_are_rejected(omnigraph: Program, graph: str) -> None:
    ended = omnigraph("--store", "g", "snapshot", "g")
    assert ended.code == 2
    assert "both specify a graph" in ended.err


def test_every_command_that_writes_takes_an_actor(omnigraph: Program, graph: str) -> None:
    made = told(omnigraph("init", "--schema", "small.pg", "h", "--as", "ann", "--json"))
    assert made["actor_id"] == "ann"
    assert library.open("h").head.actor == "ann"
    assert told(omnigraph("copy", "g", "i", "--as", "ann", "--json"))["actor_id"] == "ann"
    create = "branch create b --store g --as ann --json"
    assert told(omnigraph(*create.split()))["actor_id"] == "ann"
    assert told(omnigraph(*create.replace("create", "delete").split()))["actor_id"] == "ann"
    for words in ("init --schema small.pg k", "copy g k", "branch delete b --store g"):
        ended = omnigraph(*words.split(), "--as", "omnigraph:me")
        assert ended.code == 1
        assert "reserved" in ended.err
    assert not Path("k").exists()
