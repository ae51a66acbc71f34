"""Commands on a server print what they print for a graph whose files they open themselves."""

import json
import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

import omnigraph as og
from tests.cli.conftest import Outcome, Program
from tests.rig.http_server import HttpServer, serving

SCHEMA = """
node Person { name: String @key  age: I32?  born: Date?  seen: DateTime?  score: F64?  tags: [String]? }
node Doc { slug: String @key  body: Blob?  body_media_type: String? }
edge Knows: Person -> Person { since: I32? }
"""
ADA, DOC = {"name": "ada", "age": 36, "born": "1815-12-10", "score": 1.5}, {"slug": "a", "body": b"hello"}
PEOPLE = "match { $p: Person } return { $p.name, $p.age, $p.born, $p.seen, $p.score, $p.tags } order { $p.name }"
TOKENS = {
    "ann": {"token": "og_secret", "permission": "admin"},
    "rod": {"token": "og_reader", "permission": "read"},
}


@dataclass(frozen=True)
class Twins:
    """A graph that a server serves, and a copy of it that the program opens itself."""

    server: HttpServer
    url: str
    copy: str


def _make_graph(folder: Path) -> str:
    graph = og.init(folder, SCHEMA, durability="os", actor="ann")
    graph.insert("Person", ADA, {"name": "bob", "seen": "2024-01-31T10:00:00Z", "tags": ["x", "y|z"]})
    graph.connect_nodes("Knows", [("ada", "bob", {"since": 2020})])
    graph.insert("Doc", DOC)
    graph.mutate('update Person set { age: 37 } where name = "ada"', message="birthday")
    dev = graph.branches.create("dev")
    dev.mutate('update Person set { age: 50 } where name = "ada"')
    graph.mutate('update Person set { age: 38 } where name = "ada"')
    graph.tag("v1", message="first")
    return graph.uri


@pytest.fixture(scope="module")
def twins(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Twins]:
    folder = tmp_path_factory.mktemp("remote")
    uri = _make_graph(folder / "graph")
    shutil.copytree(uri, folder / "copy")
    tokens = folder / "tokens.json"
    tokens.write_text(json.dumps(TOKENS))
    variables = {"OMNIGRAPH_SERVER_BEARER_TOKENS_FILE": str(tokens)}
    with serving(folder, uri, variables=variables, token="og_secret") as server:
        yield Twins(server, f"http://{server.address}/graphs/default", str(folder / "copy"))


@pytest.fixture
def remote(omnigraph: Program, twins: Twins, monkeypatch: pytest.MonkeyPatch) -> Program:
    """The program with the token of the server."""
    monkeypatch.setenv("OMNIGRAPH_TOKEN", "og_secret")
    monkeypatch.setenv("OMNIGRAPH_ACTOR", "ann")
    return omnigraph


def _mask(text: str, location: str) -> str:
    """Replace what differs between two graphs: their location, new commit ids, times and the access to the graph."""
    text = text.replace(location, "GRAPH").replace("(direct, local)", "(ACCESS)").replace("(served)", "(ACCESS)")
    text = re.sub(r"\b[0-7][0-9A-HJKMNP-TV-Z]{25}\b", "COMMIT", text)
    text = re.sub(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d", "TIME", text)
    text = re.sub(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}\+00:00", "TIME", text)
    text = re.sub(r'"(created_at|published_at|authored_at)": ?\d+', r'"\1": 0', text)
    text = re.sub(r',\s*"request_id": "[^"]*"', "", text)
    text = re.sub(r'"engine_reason": "[^"]*"', '"engine_reason": null', text)  # only a local load chooses an engine
    return re.sub(r"\d+\.\d+ ?(ms|s)\b", "DURATION", text)


def _compare(program: Program, twins: Twins, words: list[str], stdin: bytes = b"") -> tuple[Outcome, Outcome]:
    local, served = (program(*words, "--store", at, stdin=stdin) for at in (twins.copy, twins.url))
    assert served.code == local.code, served.err + served.out
    assert _mask(served.out, twins.url) == _mask(local.out, twins.copy)
    assert _mask(served.err, twins.url) == _mask(local.err, twins.copy)
    return local, served


READS = [
    ["query", "-e", PEOPLE],
    ["query", "-e", PEOPLE, "--json"],
    ["query", "-e", PEOPLE, "--format", "csv"],
    ["query", "-e", PEOPLE, "--format", "kv"],
    ["query", "-e", PEOPLE, "--format", "jsonl"],
    ["query", "-e", PEOPLE, "--format", "ndjson"],
    ["query", "-e", PEOPLE, "--format", "md", "--snapshot", "v1"],
    ["query", "-e", "match { $p: Person } return { $p.nme }"],
    ["query", "-e", "match { $p: Person return"],
    ["query", "-e", PEOPLE, "--branch", "nowhere"],
    ["query", "-e", "query q($n: String) { match { $p: Person $p.name = $n } return { $p.age } }"],
    ["explain", "-e", "match { $p: Person } return { $p.name }"],
    ["export"],
    ["export", "--type", "Person", "--iso-dates"],
    ["branch", "list"],
    ["branch", "list", "--json"],
    ["log"],
    ["log", "--all", "--json"],
    ["commit", "list"],
    ["commit", "list", "--json"],
    ["commit", "show", "HEAD"],
    ["commit", "show", "HEAD~1", "--json"],
    ["commit", "changes", "HEAD"],
    ["commit", "changes", "HEAD", "--json"],
    ["changes", "poll", "--start", "beginning"],
    ["diff", "main", "dev"],
    ["diff", "main", "dev", "--json"],
    ["diff", "main~3", "main", "--stat", "--check"],
    ["tag", "list"],
    ["tag", "list", "--json"],
    ["schema", "show"],
    ["schema", "show", "--json"],
    ["schema", "show", "--diagram", "mermaid"],
    ["snapshot"],
    ["history", "Person", "ada"],
    ["history", "Person", "ada", "--json"],
    ["history", "Person", "nobody"],
    ["blame", "Person", "ada"],
    ["blame", "Person", "ada", "--json"],
    ["blob", "get", "Doc", "a", "body"],
    ["blob", "get", "Doc", "a", "body", "--range", "1-3"],
    ["blob", "get", "Doc", "b", "body"],
    ["blob", "stat", "Doc", "a", "body"],
    ["blob", "stat", "Doc", "a", "body", "--json"],
    ["branch", "merge", "dev", "--dry-run"],
    ["branch", "merge", "dev", "--dry-run", "--json"],
    ["branch", "merge", "dev"],
    ["branch", "merge", "dev", "--json-errors"],
    ["branch", "merge", "nowhere"],
    ["revert", "HEAD", "--dry-run"],
]


@pytest.mark.parametrize("words", READS, ids=" ".join)
def test_reads_print_the_same(remote: Program, twins: Twins, words: list[str]) -> None:
    _compare(remote, twins, words)


def test_writes_print_the_same(remote: Program, twins: Twins, tmp_path: Path) -> None:
    (tmp_path / "new.pg").write_text(SCHEMA.replace("age: I32?", "age: I32?  city: String?"))
    (tmp_path / "bad.pg").write_text("node Person {")
    rows = [{"type": "Person", "data": {"name": name}} for name in ("eve", "fay")]
    (tmp_path / "people.ndjson").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (tmp_path / "wrong.ndjson").write_text('{"type": "Person", "data": {"name": 7}}\n')
    (tmp_path / "blob.bin").write_bytes(b"new content")
    insert = 'insert Person { name: "%s" }'
    for words in (
        ["mutate", "-e", insert % "cyd", "-m", "more people"],
        ["mutate", "-e", insert % "dan", "--json"],
        ["mutate", "-e", insert % "dan", "--if-commit", "01ARZ3NDEKTSV4RRFFQ69G5FAV"],
        ["mutate", "-e", 'update Person set { age: 1 } where name = "nobody"'],
        ["load", "--data", "people.ndjson", "--mode", "append"],
        ["load", "--data", "people.ndjson", "--mode", "append"],
        ["load", "--data", "wrong.ndjson", "--mode", "append"],
        ["load", "--data", "people.ndjson", "--mode", "merge", "--branch", "new", "--from", "main", "--json"],
        ["load", "--data", "missing.ndjson", "--mode", "merge"],
        ["load", "--data", "people.ndjson", "--mode", "delete", "--dry-run"],
        ["branch", "create", "review"],
        ["branch", "create", "review"],
        ["branch", "rename", "review", "seen", "--json"],
        ["branch", "reset", "seen", "HEAD~1"],
        ["branch", "delete", "seen", "--yes"],
        ["branch", "delete", "seen", "--yes", "--force"],
        ["branch", "delete", "nowhere", "--yes"],
        ["branch", "merge", "dev", "--strategy", "theirs"],
        ["branch", "merge", "dev", "--json"],
        ["tag", "create", "v2", "-m", "second"],
        ["tag", "delete", "v2", "--json"],
        ["schema", "plan", "--schema", "new.pg"],
        ["schema", "plan", "--schema", "new.pg", "--json", "--check"],
        ["schema", "plan", "--schema", "bad.pg"],
        ["schema", "apply", "--schema", "new.pg", "--dry-run"],
        ["schema", "apply", "--schema", "new.pg"],
        ["schema", "apply", "--schema", "new.pg", "--json"],
        ["revert", "HEAD"],
        ["undo", "--json"],
        ["cherry-pick", "dev"],
        ["blob", "put", "Doc", "a", "body", "blob.bin"],
        ["blob", "put", "Doc", "a", "body", "blob.bin", "--if-match", "sha256:0"],
    ):
        try:
            _compare(remote, twins, words)
        except AssertionError as error:
            raise AssertionError(words) from error


def test_reader_need_not_name_the_graph_of_a_server_with_one_graph(
    remote: Program, twins: Twins, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OMNIGRAPH_TOKEN", "og_reader")
    ended = remote("query", f"http://{twins.server.address}", "-e", PEOPLE, "--format", "csv")
    assert (ended.code, ended.out.splitlines()[0]) == (0, "p.name,p.age,p.born,p.seen,p.score,p.tags"), ended.err
    assert ended.err == f"using graph default on http://{twins.server.address}\n"


def test_graph_id_directly_after_the_host_is_explained(remote: Program, twins: Twins) -> None:
    ended = remote("query", f"http://{twins.server.address}/git", "-e", PEOPLE)
    assert ended.code == 2
    assert f"to address a graph, write http://{twins.server.address}/graphs/git" in ended.err
