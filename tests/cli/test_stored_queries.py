"""Commands list the graphs of a server, and list and run their stored queries."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

import omnigraph as og
from tests.cli.conftest import Program
from tests.rig.http_server import HttpServer, serving

SCHEMA = "node Person { name: String @key  age: I32?  born: Date?  tags: [String]?  near: Vector(2)?  score: F32? }"
PEOPLE = """
query adults($min: I32 = 18, $since: Date?) @description("People of an age") @instruction("Ask for an age first") {
    match { $p: Person  $p.age >= $min }
    return { $p.name, $p.age }
    order { $p.name }
}
query tagged($tags: [String], $near: Vector(2)) { match { $p: Person } return { $p.name } }
query scores() { match { $p: Person  $p.score > 0.0 } return { $p.score } }
query add($name: String) { insert Person { name: $name } }
"""
TOKENS = {
    "ann": {"token": "og_admin", "permission": "admin"},
    "rod": {"token": "og_reader", "permission": "read"},
}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HttpServer]:
    """A server with two graphs, of which only `people` has stored queries."""
    folder = tmp_path_factory.mktemp("stored")
    for name in ("people", "more"):
        og.init(folder / name, SCHEMA, durability="os").insert(
            "Person", {"name": "ada", "age": 36, "score": 24.1}, {"name": "bo"}
        )
        (folder / "queries" / name).mkdir(parents=True)
    (folder / "queries" / "people" / "people.gq").write_text(PEOPLE)
    tokens = folder / "tokens.json"
    tokens.write_text(json.dumps(TOKENS))
    variables = {"OMNIGRAPH_SERVER_BEARER_TOKENS_FILE": str(tokens)}
    graphs = [f"{name}={folder / name}" for name in ("people", "more")]
    with serving(
        folder, *graphs, "--queries", str(folder / "queries"), variables=variables, token="og_admin"
    ) as server:
        yield server


@pytest.fixture
def base(server: HttpServer) -> str:
    return f"http://{server.address}"


@pytest.fixture
def remote(omnigraph: Program, monkeypatch: pytest.MonkeyPatch) -> Program:
    """The program with the token of the server."""
    monkeypatch.setenv("OMNIGRAPH_TOKEN", "og_admin")
    return omnigraph


def configure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "config.yaml").write_text(text)
    monkeypatch.setenv("OMNIGRAPH_HOME", str(tmp_path / "home"))


def test_graphs_are_listed_with_their_locations(remote: Program, base: str) -> None:
    listed = remote("graphs", "list", "--server", base)
    assert (listed.code, listed.err) == (0, "")
    lines = [line.split("\t") for line in listed.out.splitlines()]
    assert [graph_id for graph_id, _ in lines] == ["more", "people"]
    document = json.loads(remote("graphs", "list", "--server", base, "--json").out)
    assert document == {"graphs": [{"graph_id": graph_id, "uri": uri} for graph_id, uri in lines]}
    assert remote("--server", f"{base}/graphs/people", "graphs", "list").out == listed.out


def test_the_server_comes_from_the_configuration(
    remote: Program, base: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    profiles = "profiles: {served: {server: prod}, disk: {store: g.omni}}"
    configure(tmp_path, monkeypatch, f"servers: {{prod: {{url: '{base}'}}}}\n{profiles}")
    expected = remote("graphs", "list", "--server", base).out
    assert remote("graphs", "list", "--server", "prod").out == expected
    assert remote("graphs", "list", "--profile", "served").out == expected
    stored = remote("graphs", "list", "--profile", "disk")
    assert (stored.code, stored.out) == (2, "")
    assert "profile 'disk' selects a store: pass --server" in stored.err
    missing = remote("graphs", "list")
    assert missing.code == 2
    assert "no server specified: pass --server" in missing.err


def test_a_token_needs_the_permission_to_list_graphs(
    remote: Program, base: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OMNIGRAPH_TOKEN", "og_reader")
    ended = remote("graphs", "list", "--server", base, "--json-errors")
    assert (ended.code, json.loads(ended.out)["kind"]) == (1, "PermissionDenied")


def test_stored_queries_are_listed_with_their_parameters(remote: Program, base: str) -> None:
    listed = remote("queries", "list", f"{base}/graphs/people")
    assert (listed.code, listed.err) == (0, "")
    assert listed.out.splitlines() == [
        "mutation  add($name: string)",
        "read      adults($min: int, $since: date?)",
        "read      scores()",
        "read      tagged($tags: [string], $near: vector(2))",
    ]
    queries = json.loads(remote("queries", "list", "--server", base, "--graph", "people", "--json").out)["queries"]
    assert [(query["name"], query["mutation"]) for query in queries] == [
        ("add", True),
        ("adults", False),
        ("scores", False),
        ("tagged", False),
    ]
    assert queries[0]["params"] == [{"name": "name", "kind": "string", "nullable": False}]
    empty = remote("queries", "list", f"{base}/graphs/more")
    assert (empty.code, empty.out, empty.err) == (0, "", "there are no stored queries\n")


def test_a_stored_query_is_shown_with_its_description(remote: Program, base: str) -> None:
    url = f"{base}/graphs/people"
    assert remote("queries", "show", url, "adults").out.splitlines() == [
        "read  adults($min: int, $since: date?)",
        "description: People of an age",
        "instruction: Ask for an age first",
    ]
    assert json.loads(remote("queries", "show", url, "adults", "--json").out)["description"] == "People of an age"
    unknown = remote("queries", "show", url, "adult")
    assert (unknown.code, unknown.out) == (1, "")
    assert unknown.err == "error: stored query not found\nhint: did you mean `adults`?\n"


def test_only_a_server_stores_queries(remote: Program, tmp_path: Path) -> None:
    og.init(tmp_path / "g", SCHEMA, durability="os")
    ended = remote("queries", "list", "./g")
    assert (ended.code, ended.out) == (1, "")
    assert "queries are stored on a server" in ended.err


@pytest.fixture
def aliases(remote: Program, base: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Program:
    """The program with a configuration that defines aliases."""
    defined = f"""
servers: {{prod: {{url: '{base}'}}}}
aliases:
  grown: {{server: prod, graph: people, query: adults, args: [min, since], params: {{min: 18}}, format: csv}}
  young: {{server: prod, graph: people, query: adults, params: {{min: 1, since: 2024-01-31}}}}
  scores: {{server: prod, graph: people, query: scores}}
  bare: adults
  blank:
  add: {{server: prod, graph: people, query: add, args: [name]}}
  lost: {{graph: people, query: adults}}
  idle: {{server: prod, graph: people}}
  loud: {{server: prod, query: adults, format: parquet}}
  twice: {{server: prod, query: adults, args: [min, min]}}
"""
    configure(tmp_path, monkeypatch, defined)
    return remote


def test_an_alias_runs_a_stored_query(aliases: Program) -> None:
    ended = aliases("alias", "grown")
    assert (ended.code, ended.out) == (0, "p.name,p.age\nada,36\n"), ended.err
    assert aliases("alias", "grown", "40").out == "p.name,p.age\n"
    assert aliases("alias", "grown", "40", "--params", '{"min": 36}').out == "p.name,p.age\nada,36\n"
    assert aliases("alias", "grown", "36", "2024-01-31").out == "p.name,p.age\nada,36\n"
    assert aliases("alias", "young", "--format", "csv").out == "p.name,p.age\nada,36\n", "YAML reads dates"


def test_the_format_of_an_alias_can_be_overridden(aliases: Program) -> None:
    assert json.loads(aliases("alias", "grown", "--json").out)["rows"] == [{"p.name": "ada", "p.age": 36}]
    assert aliases("alias", "grown", "--format", "ndjson").out == '{"p.name":"ada","p.age":36}\n'
    assert "p.name | p.age" in aliases("alias", "young").out


def test_an_alias_prints_csv_like_a_query(aliases: Program, base: str) -> None:
    text = "match { $p: Person  $p.score > 0.0 } return { $p.score }"
    expected = aliases("query", f"{base}/graphs/people", "-e", text, "--format", "csv").out
    assert aliases("alias", "scores", "--format", "csv").out == expected == "p.score\n24.1\n"


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["grown", "1", "2024-01-31", "x"], 2, "alias 'grown' accepts MIN SINCE; unexpected argument 'x'"),
        (["young", "1"], 2, "alias 'young' accepts no arguments; unexpected argument '1'"),
        (["grown", "--server", "prod"], 2, "No such option"),
        (["grow"], 1, "unknown alias 'grow'; available aliases: grown, young, scores, bare, blank"),
        (["add", "zed"], 1, "the stored query 'add' is a mutation"),
        (["bare"], 1, "alias 'bare' must be a mapping"),
        (["blank"], 1, "alias 'blank' must be a mapping"),
        (["lost"], 1, "alias 'lost' has no 'server'"),
        (["idle"], 1, "alias 'idle' has no 'query'"),
        (["loud"], 1, "alias 'loud': 'format' must be one of table, kv"),
        (["twice"], 1, "alias 'twice': 'args' must be a list of different parameter names"),
        (["grown", "many"], 1, "expected I32, got string 'many'"),
    ],
)
def test_a_wrong_use_of_an_alias_is_explained(aliases: Program, words: list[str], code: int, said: str) -> None:
    ended = aliases("alias", *words)
    assert (ended.code, ended.out) == (code, "")
    assert said in " ".join(ended.err.split())


def test_an_alias_accepts_no_address(aliases: Program) -> None:
    ended = aliases("--server", "prod", "alias", "grown")
    assert (ended.code, ended.out) == (2, "")
    assert "omnigraph alias does not accept --server" in ended.err
