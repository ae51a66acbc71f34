"""Commands on a server print what they print for a graph whose files they open themselves."""

import json
import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pyarrow.parquet as pq
import pytest

import omnigraph as og
from tests.cli.conftest import Outcome, Program
from tests.rig.http_server import HttpServer, serving

SCHEMA = """
node Person { name: String @key  age: I32?  born: Date?  seen: DateTime?  score: F64?  pace: F32?  tags: [String]? }
node Doc { slug: String @key  body: Blob?  body_media_type: String? }
edge Knows: Person -> Person { since: I32? }
"""
ADA, DOC = {"name": "ada", "age": 36, "born": "1815-12-10", "score": 1.5, "pace": 24.1}, {"slug": "a", "body": b"hello"}
PEOPLE = (
    "match { $p: Person } return { $p.name, $p.age, $p.born, $p.seen, $p.score, $p.pace, $p.tags } order { $p.name }"
)
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
    text = re.sub(r"cyJ[\w-]{40,}|eyJ[\w-]{40,}", "CURSOR", text)
    text = re.sub(r'"(cache_directory)": (null|"[^"]*")', r'"\1": null', text)  # belongs to the machine of the engine
    text = re.sub(r"^cache: .*\n", "", text, flags=re.MULTILINE)
    text = re.sub(r"[\d,]+ bytes", "BYTES", re.sub(r'"(\w*bytes\w*)": \d+', r'"\1": 0', text))
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
    ["export", "--since", "HEAD~1"],
    ["export", "--since", "nowhere"],
    ["export", "--type", "Person", "--out", "people.csv"],
    ["export", "--type", "Person", "--out", "people", "--format", "csv"],
    ["export", "--out", "people.parquet"],
    ["export", "--out", "people.tsv"],
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
    ["status"],
    ["status", "--json", "--branch", "dev"],
    ["status", "--branch", "nowhere"],
    ["check"],
    ["check", "--quick", "--json"],
    ["check", "--sample", "100"],
    ["check", "--absent", "Person", "ada"],
    ["check", "--absent", "Person", "nobody", "--json"],
    ["check", "--absent", "Human", "ada"],
    ["cleanup", "--keep", "1"],
    ["cleanup", "--older-than", "7d", "--json"],
    ["cleanup"],
    ["cleanup", "--older-than", "soon"],
    ["repair"],
    ["repair", "--json"],
    ["repair", "--restore", "x", "--drop", "y"],
    ["recovery", "list"],
    ["recovery", "list", "--json"],
    ["recovery", "retry", "01ARZ3NDEKTSV4RRFFQ69G5FAV"],
    ["recovery", "drop", "01ARZ3NDEKTSV4RRFFQ69G5FAV"],
    ["changes", "baseline", "--out", "baseline.ndjson"],
    ["changes", "baseline", "--out", "baseline.ndjson", "--json", "--type", "Person"],
    ["changes", "poll", "--start", "beginning", "--json"],
    ["lint", "--query", "people.gq"],
    ["lint", "--query", "people.gq", "--json"],
    ["shell"],
]
PEOPLE_FILE = "query all() { match { $p: Person } return { $p.name, $p.nme } }"
STATEMENTS = b"""match { $p: Person } return { $p.name } order { $p.name }
insert Person { name: "zoe" } ;
\\d
\\d Person
\\branch dev
\\at v1
match { $p: Person } return { count($p) as n }
\\at
branch list
\\branch nowhere
"""


@pytest.mark.parametrize("words", READS, ids=" ".join)
def test_reads_print_the_same(remote: Program, twins: Twins, words: list[str]) -> None:
    Path("people.gq").write_text(PEOPLE_FILE)
    statements = STATEMENTS.replace(b'insert Person { name: "zoe" } ;\n', b"")
    _compare(remote, twins, words, stdin=statements if words == ["shell"] else b"")


def test_writes_print_the_same(remote: Program, twins: Twins, tmp_path: Path) -> None:
    (tmp_path / "new.pg").write_text(SCHEMA.replace("age: I32?", "age: I32?  city: String?"))
    (tmp_path / "bad.pg").write_text("node Person {")
    rows = [{"type": "Person", "data": {"name": name}} for name in ("eve", "fay")]
    (tmp_path / "people.ndjson").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (tmp_path / "wrong.ndjson").write_text('{"type": "Person", "data": {"name": 7}}\n')
    (tmp_path / "blob.bin").write_bytes(b"new content")
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "Person.csv").write_text("full,years\ngil,7\nhal,\n")
    (tmp_path / "folder" / "Knows.tsv").write_text("from\tto\ngil\tada\n")
    (tmp_path / "bad.csv").write_text("name;age\nivy;1\njan;old\n")
    renamed = ["--mapping", '{"Person": {"full": "name", "years": "age"}}']
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
        ["load", "--data", "folder", "--mode", "append", *renamed],
        ["load", "--data", "folder", "--mode", "merge", *renamed, "--json"],
        ["load", "--data", "Person=bad.csv", "--data", "people.ndjson", "--mode", "merge"],
        ["load", "--data", "Person=bad.csv", "--mode", "merge", "--json", "--rejects", "rejects"],
        ["load", "--data", "Person=bad.csv", "--mode", "merge", "--csv-delimiter", ","],
        ["load", "--data", "Person=bad.csv", "--mode", "merge", "--csv-delimiter", "long"],
        ["load", "--data", "no*.csv", "--mode", "merge"],
        ["load", "--data", "people.ndjson", "--mode", "merge", "--max-row-bytes", "5"],
        ["shell"],
        ["ensure-indices"],
        ["ensure-indices", "--rebuild", "--json"],
        ["ensure-indices", "--rebuild", "--index", "Nobody"],
        ["optimize", "--max-bytes", "1"],
        ["optimize", "--max-seconds", "1000"],
        ["optimize", "--json"],
        ["optimize", "--type", "Nobody"],
        ["cleanup", "--keep", "30", "--confirm", "--yes"],
        ["repair", "--confirm", "--yes"],
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
            _compare(remote, twins, words, stdin=STATEMENTS if words == ["shell"] else b"")
        except AssertionError as error:
            raise AssertionError(words) from error


SPELLED = [
    ["query", "-e", PEOPLE],
    ["explain", "-e", "match { $p: Person } return { $p.name }"],
    ["export", "--type", "Doc"],
    ["branch", "list"],
    ["log"],
    ["history", "Person", "ada"],
    ["tag", "list"],
    ["snapshot"],
    ["schema", "show"],
    ["changes", "poll", "--start", "beginning"],
    ["status"],
    ["check", "--quick"],
    ["cleanup", "--keep", "30"],
    ["optimize", "--type", "Nobody"],
    ["ensure-indices", "--rebuild", "--index", "Nobody"],
    ["repair"],
    ["recovery", "list"],
    ["lint", "--query", "people.gq"],
    ["shell"],
]


def test_a_server_may_be_addressed_in_several_ways(
    remote: Program, twins: Twins, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OMNIGRAPH_HOME", str(tmp_path / "home"))
    (tmp_path / "home").mkdir()
    server = f"http://{twins.server.address}"
    (tmp_path / "home" / "config.yaml").write_text(
        f"servers:\n  prod:\n    url: {server}\nprofiles:\n  p:\n    server: prod\n    default_graph: default\n"
    )
    Path("people.gq").write_text(PEOPLE_FILE)
    spellings = [["--store", twins.url], ["--server", "prod", "--graph", "default"], ["--profile", "p"]]
    for words in SPELLED:
        stdin = b"branch list\n" if words == ["shell"] else b""
        ended = [remote(*words, *spelling, stdin=stdin) for spelling in spellings]
        ended.append(remote(*spellings[1], *words, stdin=stdin))
        assert {(one.code, one.out, one.err) for one in ended} == {(ended[0].code, ended[0].out, ended[0].err)}, words
        assert ended[0].code in (0, 1), ended[0].err


def test_rejects_are_the_same_files(remote: Program, twins: Twins, tmp_path: Path) -> None:
    (tmp_path / "bad.csv").write_text("name,age\nivy,one\njan,two\n")
    rejects = {}
    for at in (twins.copy, twins.url):
        words = ["load", "--store", at, "--data", "Person=bad.csv", "--mode", "append"]
        assert remote(*words, "--rejects", "rejects", "--max-errors", "1").code == 1
        rejects[at] = (Path("rejects/rejects.ndjson").read_text(), pq.read_table("rejects/rejects.parquet").to_pylist())
    assert rejects[twins.copy] == rejects[twins.url]
    assert [row["line"] for row in rejects[twins.url][1]] == [2, 3]


def test_doctor_diagnoses_a_server(remote: Program, twins: Twins, monkeypatch: pytest.MonkeyPatch) -> None:
    ended = remote("doctor", twins.url)
    assert ended.code == 0, ended.out
    assert f"ok       server: http://{twins.server.address}, version " in ended.out
    assert "ok       token: ann, permission admin\n" in ended.out
    assert f"ok       graph: {twins.url}, storage format " in ended.out
    monkeypatch.setenv("OMNIGRAPH_TOKEN", "og_wrong")
    refused = json.loads(remote("doctor", twins.url, "--json").out)
    assert (refused["ok"], refused["diagnoses"][-2]["name"]) == (False, "token")
    gone = remote("doctor", "http://127.0.0.1:1/graphs/g")
    assert (gone.code, "error    server: cannot reach the server" in gone.out) == (1, True)


def test_denied_command_is_described_as_json(remote: Program, twins: Twins, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMNIGRAPH_TOKEN", "og_reader")
    ended = remote("optimize", twins.url, "--json-errors")
    assert (ended.code, json.loads(ended.out)["kind"]) == (1, "PermissionDenied")
    assert "omnigraph token new rod --permission admin" in json.loads(ended.out)["hint"]


def test_spark_is_rejected_before_anything_is_sent(remote: Program) -> None:
    for words in (["optimize", "--engine", "spark"], ["check", "--master", "local"], ["cleanup", "--remote", "sc://h"]):
        ended = remote(*words, "--store", "http://127.0.0.1:1/graphs/g")
        assert (ended.code, ended.out) == (2, "")
        assert ended.err.startswith("error: --engine spark is not available on a server\nhint: run `omnigraph ")


def test_jobs_are_listed_and_shown(remote: Program, twins: Twins) -> None:
    assert remote("check", twins.url, "--quick").code == 0
    job = json.loads(remote("job", "list", twins.url, "--json").out)["jobs"][0]
    assert (job["kind"], job["state"], job["actor_id"]) == ("check", "succeeded", "ann")
    shown = remote("job", "show", twins.url, job["job_id"])
    assert shown.out.startswith(f"{job['job_id']}  check  succeeded  ")
    assert json.loads(shown.out.partition("\n")[2])["ok"]
    assert remote("job", "wait", twins.url, job["job_id"]).out == shown.out
    assert "only a server runs jobs" in remote("job", "list", twins.copy).err
    assert remote("job", "show", twins.url, "nothing").code == 1


def test_reader_need_not_name_the_graph_of_a_server_with_one_graph(
    remote: Program, twins: Twins, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OMNIGRAPH_TOKEN", "og_reader")
    ended = remote("query", f"http://{twins.server.address}", "-e", PEOPLE, "--format", "csv")
    assert (ended.code, ended.out.splitlines()[0]) == (0, "p.name,p.age,p.born,p.seen,p.score,p.pace,p.tags"), ended.err
    assert ended.err == f"using graph default on http://{twins.server.address}\n"


def test_graph_id_directly_after_the_host_is_explained(remote: Program, twins: Twins) -> None:
    ended = remote("query", f"http://{twins.server.address}/git", "-e", PEOPLE)
    assert ended.code == 2
    assert f"to address a graph, write http://{twins.server.address}/graphs/git" in ended.err
