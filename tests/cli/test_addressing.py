"""Every way to name a graph on the command line, and the rule that finds it among other arguments."""

from pathlib import Path

import click
import pytest

import omnigraph as package
from omnigraph.cli.main import cli
from tests.cli.conftest import Program
from tests.cli.test_flags import COMMANDS
from tests.rig.writes import SCHEMA

# Commands whose positional arguments are never preceded by a graph.
WITHOUT_GRAPH = {
    "copy", "lint", "fmt", "describe", "completion", "version", "schema check", "schema diff", "schema infer",
    "profile list", "profile show", "config path", "config show", "serve", "token new", "login", "logout", "alias",
    "graphs list",
}  # fmt: skip


@pytest.fixture
def graph(omnigraph: Program) -> str:
    opened = package.init("g", SCHEMA)
    opened.load([{"type": "Person", "data": {"id": "p", "n": 1}}], mode="append")
    Path("q.gq").write_text(
        "query all() { match { $p: Person } return { $p.id } }\nquery g() { match { $p: Person } return { $p.n } }"
    )
    return "g"


def find_command(words: tuple[str, ...]) -> click.Command:
    command: click.Command = cli
    for word in words:
        assert isinstance(command, click.Group)
        found = command.get_command(click.Context(command), word)
        assert found is not None
        command = found
    return command


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_every_command_that_reaches_a_graph_takes_it_first(omnigraph: Program, words: tuple[str, ...]) -> None:
    command = find_command(words)
    if isinstance(command, click.Group) or " ".join(words) in WITHOUT_GRAPH:
        return
    usage = omnigraph(*words, "--help").out.splitlines()[0]
    assert usage.startswith(f"Usage: omnigraph {' '.join(words)} [OPTIONS] [GRAPH]")
    assert {"store", "uri", "profile"} <= {parameter.name for parameter in command.params}


def test_init_takes_the_graph_like_every_other_command(omnigraph: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    Path("s.pg").write_text("node Lamp { name: String @key }")
    assert omnigraph("init", "a", "--schema", "s.pg").code == 0
    assert omnigraph("init", "--store", "b", "--schema", "s.pg").code == 0
    missing = omnigraph("init", "--schema", "s.pg")
    assert (missing.code, "no graph specified" in missing.err) == (2, True)
    monkeypatch.setenv("OMNIGRAPH_STORE", "c")
    assert omnigraph("init", "--schema", "s.pg").out == f"initialized {Path('c').absolute()}\n"
    assert omnigraph("init", "d", "--schema", "s.pg").code == 0
    assert [package.open(name).schema.node_types for name in "abcd"] == [("Lamp",)] * 4
    twice = omnigraph("init", "a", "--store", "e", "--schema", "s.pg")
    assert (twice.code, "both specify a graph" in twice.err, Path("e").exists()) == (2, True, False)


@pytest.mark.parametrize(
    "words",
    [
        "snapshot g",
        "branch list g",
        "branch create g b",
        "tag create g v1",
        "tag create g v1 HEAD~1",
        "commit show g HEAD",
        "commit changes g HEAD",
        "diff g HEAD~1",
        "diff g HEAD~1 HEAD",
        "history g Person p",
        "blame g Person p",
        "query g all --query q.gq",
        "query g g --query q.gq",
        "query ./g all --query q.gq",
        "changes poll g --start beginning",
        "revert g HEAD",
        "branch rename g other new",
        "log g --uri g --help",
    ],
)
def test_graph_is_the_first_argument(omnigraph: Program, graph: str, words: str) -> None:
    omnigraph("branch", "create", "other", "--store", graph)
    ended = omnigraph(*words.split())
    assert ended.code == 0, ended.err


@pytest.mark.parametrize(
    "words",
    ["query all --query q.gq", "tag create v1 HEAD~1", "diff HEAD~1 HEAD", "commit show HEAD", "branch create b"],
)
@pytest.mark.parametrize("flag", ["--store", "--uri"])
def test_graph_may_be_an_option_instead(omnigraph: Program, graph: str, words: str, flag: str) -> None:
    assert omnigraph(*words.split(), flag, graph).code == 0
    assert "no graph specified" in omnigraph(*words.split()).err


def test_query_named_like_the_graph_is_selected_if_an_option_names_the_graph(omnigraph: Program, graph: str) -> None:
    ended = omnigraph("query", "g", "--query", "q.gq", "--store", "g", "--format", "csv")
    assert ended.out == "p.n\n1\n"


@pytest.mark.parametrize(
    "words",
    [
        "snapshot g --store h",
        "--store h snapshot g",
        "branch create g b --store h",
        "query ./g all --query q.gq --store h",
        "query ./g --query q.gq --uri h",
        "snapshot g --server h",
        "snapshot --store g --server h",
        "branch list --store g --cluster h",
    ],
)
def test_two_addresses_are_named_in_the_error(omnigraph: Program, graph: str, words: str) -> None:
    ended = omnigraph(*words.split())
    assert (ended.code, ended.out) == (2, "")
    assert "g' and " in ended.err
    assert "'h' both specify a graph: use only one of them" in ended.err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("snapshot --store g --graph x", "--graph x selects a graph on a server and cannot be combined"),
        ("snapshot g --graph x", "--graph x selects a graph on a server and cannot be combined"),
        ("snapshot --graph x", "no graph specified"),
        ("--server http://127.0.0.1:1 snapshot", "cannot reach the server at http://127.0.0.1:1"),
        ("snapshot --server prod", "unknown server 'prod'"),
        ("snapshot --cluster c", "clusters are not supported yet"),
        ("upgrade --server http://h", "requires direct storage access"),
        ("upgrade http://h/g", "requires direct storage access"),
        ("query http://127.0.0.1:1/graphs/g all --query q.gq", "cannot reach the server at http://127.0.0.1:1"),
        ("branch create", "Missing argument 'NAME'"),
        ("branch create g a b", "unexpected extra argument (b)"),
        ("diff g A B C D", "unexpected extra arguments (C D)"),
        ("--profile p version", "does not accept --profile"),
        ("--server s version", "does not accept --server"),
    ],
)
def test_wrong_addresses_are_refused(omnigraph: Program, graph: str, words: str, message: str) -> None:
    ended = omnigraph(*words.split())
    assert ended.code in (1, 2)
    assert message in ended.err


def test_the_first_argument_overrides_the_environment(
    omnigraph: Program, graph: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OMNIGRAPH_STORE", "nowhere")
    assert omnigraph("query", "g", "all", "--query", "q.gq").code == 0
    assert omnigraph("tag", "create", "g", "v1").code == 0
    assert "nowhere" in omnigraph("tag", "create", "v2", "HEAD").err
