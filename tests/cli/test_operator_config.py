"""The operator configuration: profiles, defaults, precedence, and files with mistakes."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import omnigraph as package
from tests.cli.conftest import Outcome, Program
from tests.rig.writes import SCHEMA


class Home:
    """A directory with a configuration file, which `OMNIGRAPH_HOME` names."""

    def __init__(self, directory: Path) -> None:
        self.path = directory / "config.yaml"

    def write(self, text: str) -> None:
        self.path.parent.mkdir(exist_ok=True)
        self.path.write_text(text)


@pytest.fixture
def home(omnigraph: Program, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    monkeypatch.setenv("OMNIGRAPH_HOME", str(tmp_path / "home"))
    return Home(tmp_path / "home")


@pytest.fixture
def graphs(omnigraph: Program) -> None:
    """Graphs a, b, c and d, each with a branch of its own name."""
    for name in "abcd":
        package.init(name, SCHEMA).branches.create(f"only-{name}")


def shown_graph(ended: Outcome) -> str:
    assert ended.code == 0, ended.err
    (branch,) = (line for line in ended.out.splitlines() if line.startswith("only-"))
    return branch.removeprefix("only-")


def told(ended: Outcome) -> Any:
    assert ended.code == 0, ended.err
    return json.loads(ended.out)


CONFIG = """
operator: {actor: ann}
defaults: {store: d, output: csv}
profiles:
  pb: {store: b}
  pc: {store: c}
  remote: {server: prod, default_graph: people}
  two: {server: prod, store: a}
  none: {}
servers:
  prod: {url: "https://graphs.example.com"}
"""


def test_explicit_address_then_profile_then_environment_then_defaults(
    omnigraph: Program, home: Home, graphs: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    home.write(CONFIG)
    assert shown_graph(omnigraph("branch", "list")) == "d"
    monkeypatch.setenv("OMNIGRAPH_PROFILE", "pc")
    assert shown_graph(omnigraph("branch", "list")) == "c"
    assert shown_graph(omnigraph("branch", "list", "--profile", "pb")) == "b"
    assert shown_graph(omnigraph("--profile", "pb", "branch", "list")) == "b"
    assert shown_graph(omnigraph("branch", "list", "a", "--profile", "pb")) == "a"
    assert shown_graph(omnigraph("--profile", "pb", "branch", "list", "--store", "a")) == "a"
    monkeypatch.setenv("OMNIGRAPH_STORE", "a")
    assert shown_graph(omnigraph("branch", "list")) == "a"
    assert shown_graph(omnigraph("branch", "list", "--profile", "pb")) == "b"
    monkeypatch.setenv("OMNIGRAPH_STORE", "")
    monkeypatch.setenv("OMNIGRAPH_PROFILE", "")
    assert shown_graph(omnigraph("branch", "list")) == "d"


def test_profile_with_two_bindings_is_refused_on_use_but_listed(omnigraph: Program, home: Home, graphs: None) -> None:
    home.write(CONFIG)
    for name, problem in (
        ("two", "has server and store: set exactly one"),
        ("none", "has none of server, cluster, store"),
    ):
        ended = omnigraph("branch", "list", "--profile", name)
        assert (ended.code, ended.out) == (1, "")
        assert f"profile '{name}' {problem}" in ended.err
    listed = {one["name"]: one for one in told(omnigraph("profile", "list", "--json"))["profiles"]}
    assert {name: one["valid"] for name, one in listed.items()} == {
        "pb": True, "pc": True, "remote": True, "two": False, "none": False,
    }  # fmt: skip
    assert "set exactly one" in listed["two"]["error"]
    assert listed["remote"] == {
        "name": "remote", "binding": "prod", "scope_kind": "server", "target": "https://graphs.example.com",
        "valid": True, "error": None, "default_graph": "people", "active": False,
    }  # fmt: skip


def test_profile_of_a_server_contacts_it(omnigraph: Program, home: Home) -> None:
    home.write(CONFIG.replace("https://graphs.example.com", "http://127.0.0.1:1"))
    ended = omnigraph("snapshot", "--profile", "remote")
    assert (ended.code, ended.out) == (1, "")
    assert "cannot reach the server at http://127.0.0.1:1" in ended.err


def test_profile_of_a_server_is_refused_by_commands_that_need_the_files(omnigraph: Program, home: Home) -> None:
    home.write(CONFIG)
    ended = omnigraph("upgrade", "--profile", "remote")
    assert (ended.code, ended.out) == (1, "")
    assert "is a server address; this command requires direct storage access" in ended.err


def test_unknown_profile_lists_the_known_ones(omnigraph: Program, home: Home) -> None:
    home.write(CONFIG)
    ended = omnigraph("snapshot", "--profile", "nobody")
    assert ended.code == 1
    assert "--profile: unknown profile 'nobody'; available profiles: pb, pc, remote, two, none" in ended.err


def test_ambient_profile_is_ignored_by_commands_without_a_graph(
    omnigraph: Program, home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OMNIGRAPH_PROFILE", "nobody")
    assert omnigraph("version").code == 0
    assert "does not accept --profile" in omnigraph("--profile", "nobody", "version").err


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("defaults: {store: a, server: b}", "'defaults.store' and 'defaults.server' are mutually exclusive"),
        ("defaults: {store: a, default_graph: g}", "'defaults.default_graph' requires 'defaults.server'"),
        ("defaults: {output: xml}", "'defaults.output' must be one of table, kv, csv, jsonl, json, not 'xml'"),
        ("defaults: {table_max_column_width: 3}", "must be an integer of at least 8, not 3"),
        ("operator: {actor: 3}", "'operator.actor' must be a non-empty string"),
        ("operator: [a]", "'operator' must be a mapping"),
        ("profiles: {a: b}", "'profiles.a' must be a mapping"),
        ("servers: {a: {}}", "'servers.a' has no 'url'"),
        ("- a", "expected a mapping"),
        ("operator:\n  actor: ann\n :x", "config.yaml:3:2: "),
        ("operator: {actor: ann", "config.yaml:1:22: "),
    ],
)
def test_mistakes_in_the_file_are_errors(omnigraph: Program, home: Home, text: str, message: str) -> None:
    home.write(text)
    ended = omnigraph("snapshot")
    assert (ended.code, ended.out) == (1, "")
    assert message in ended.err
    assert str(home.path) in ended.err


def test_unknown_key_warns_once_and_the_rest_works(omnigraph: Program, home: Home, graphs: None) -> None:
    home.write("defaults: {store: a, colour: red}\nsurprise: 1\nprofiles: {p: {store: b, speed: 9}}\n")
    ended = omnigraph("branch", "create", "new", "--json")
    assert ended.code == 0
    warned = [line.rpartition(": ")[2] for line in ended.err.splitlines() if line.startswith("warning")]
    assert sorted(warned) == [
        f"unknown key '{key}' is ignored" for key in ("defaults.colour", "profiles.p.speed", "surprise")
    ]


def test_actor_of_the_configuration_is_the_last_choice(
    omnigraph: Program, home: Home, graphs: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    home.write(CONFIG)
    create = "branch create {} --json"
    assert told(omnigraph(*create.format("x").split()))["actor_id"] == "ann"
    monkeypatch.setenv("OMNIGRAPH_ACTOR", "bob")
    assert told(omnigraph(*create.format("y").split()))["actor_id"] == "bob"
    assert told(omnigraph("--as", "eve", *create.format("z").split()))["actor_id"] == "eve"


def test_defaults_decide_the_output_of_a_query(omnigraph: Program, home: Home, graphs: None) -> None:
    package.open("d").load([{"type": "Person", "data": {"id": "p" * 20, "n": 1}}], mode="append")
    query = ("query", "-e", "match { $p: Person } return { $p.id }")
    home.write(CONFIG)
    assert omnigraph(*query).out == f"p.id\n{'p' * 20}\n"
    assert "p.id: " in omnigraph(*query, "--format", "kv").out
    home.write("defaults: {store: d, table_max_column_width: 10}")
    assert "ppppppppp…" in omnigraph(*query).out
    home.write("defaults: {store: d, table_max_column_width: 10, table_cell_layout: wrap}")
    assert omnigraph(*query).out.count("p" * 10) == 2
    assert "p" * 20 in omnigraph(*query, "--max-width", "40").out


def test_show_and_path(omnigraph: Program, home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    assert omnigraph("config", "path").out == f"{home.path}\n"
    assert told(omnigraph("config", "path", "--json")) == {"path": str(home.path), "exists": False}
    assert told(omnigraph("config", "show", "--json"))["exists"] is False
    assert told(omnigraph("profile", "show", "--json")) == {
        "name": "(defaults)", "scope_kind": None, "target": None, "endpoint": None, "default_graph": None,
        "output_format": "table",
    }  # fmt: skip
    home.write(CONFIG)
    shown = told(omnigraph("config", "show", "--json"))
    assert (shown["operator"], shown["defaults"]["store"]) == ({"actor": "ann"}, "d")
    assert "operator.actor" in omnigraph("config", "show").out
    assert told(omnigraph("profile", "show", "--json"))["target"] == "d"
    assert told(omnigraph("profile", "show", "remote", "--json"))["endpoint"] == "https://graphs.example.com"
    monkeypatch.setenv("OMNIGRAPH_PROFILE", "pc")
    assert told(omnigraph("profile", "show", "--json"))["name"] == "pc"
    assert "* pc " in omnigraph("profile", "list").out


def test_yaml_is_imported_only_if_the_file_exists(home: Home) -> None:
    program = (
        "import sys; from omnigraph.cli.operator_config import load_config;load_config(); print('yaml' in sys.modules)"
    )

    def imports_yaml() -> str:
        return subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True).stdout

    assert imports_yaml() == "False\n"
    home.write(CONFIG)
    assert imports_yaml() == "True\n"
