"""The numbered cases of the error catalog over HTTP, and beside it in Python and on the command line."""

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

import omnigraph
from omnigraph import Graph, errors
from omnigraph.cli.main import run
from tests.rig.case_lists import entries, missing
from tests.rig.deployments import Deployment
from tests.rig.error_provocations import (
    ADD,
    ALLOWED_BASE,
    GRAPH,
    OUTSIDE_URI,
    PEOPLE,
    PROVOCATIONS,
    SET,
    Provocation,
    Request,
    create_graph,
)
from tests.rig.http_server import HttpServer, Reply

CURSOR_PREFIX = "change cursor rejected: "
WITHOUT_CODE = {410, 412, 424, 503}
TOKEN = "t0ken-that-must-not-leak"
# `error` names the source of a text, and a server does not show locations. `details` are compared without locations.
DIFFERENT_BY_SURFACE = {"error", "details", "request_id", "diagnostics"}
NDJSON = {"Content-Type": "application/x-ndjson"}


@pytest.fixture(scope="module", autouse=True)
def _environment() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OMNIGRAPH_EXTERNAL_BLOBS", ALLOWED_BASE)
        patch.setenv("OMNIGRAPH_EXIT_CODES", "extended")
        yield


@pytest.fixture(scope="module")
def graph(deployment: Deployment, tmp_path_factory: pytest.TempPathFactory) -> Graph:
    """The graph that the server serves, opened in this process."""
    return create_graph(deployment.new_root(tmp_path_factory.mktemp("graph")))


@pytest.fixture(scope="module")
def server(deployment: Deployment, graph: Graph, tmp_path_factory: pytest.TempPathFactory) -> Iterator[HttpServer]:
    """A server whose only caller may do everything."""
    variables = {"OMNIGRAPH_SERVER_BEARER_TOKEN": TOKEN}
    folder, arguments = tmp_path_factory.mktemp("errors"), (graph.uri, "--token-permission", "admin")
    with deployment.serving(folder, *arguments, variables=variables, token=TOKEN) as running:
        yield running


RunCommand = Callable[[tuple[str, ...]], tuple[int, dict[str, Any]]]


@pytest.fixture
def run_command(graph: Graph, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> RunCommand:
    """Runs a command on the graph, and returns its exit code and its error object."""

    def expand(argument: str) -> str:
        if not argument.startswith("file."):
            return graph.uri if argument == "GRAPH" else argument
        name, _, content = argument.partition("=")
        (tmp_path / name).write_text(content)
        return str(tmp_path / name)

    def call(command: tuple[str, ...]) -> tuple[int, dict[str, Any]]:
        capsys.readouterr()
        code = run(["--json-errors", *map(expand, command)])
        return code, json.loads(capsys.readouterr().out)

    return call


def send(server: HttpServer, request: Request) -> Reply:
    return server.request(request.method, GRAPH + request.path, request.body, headers=request.headers)


def members(document: dict[str, Any]) -> dict[str, Any]:
    """The members on which all surfaces agree."""
    if document["kind"] == "QueryTimeout":
        document["resource_limit"].pop("actual")  # the time that passed
    return {name: value for name, value in document.items() if name not in DIFFERENT_BY_SURFACE}


def check_surfaces(provocation: Provocation, graph: Graph, server: HttpServer, run_command: RunCommand) -> Reply:
    """Assert that a failure is the same in Python, on the command line and over HTTP; return the response."""
    with pytest.raises(errors.OmnigraphError) as caught:
        provocation.call(graph)
    error = caught.value
    assert type(error) is getattr(errors, provocation.error)
    exit_code, printed = run_command(provocation.command)
    reply = send(server, provocation.request)
    sent = reply.json()
    assert (exit_code, reply.status) == (error.extended_exit_code, error.status)
    assert members(error.to_json()) == members(printed) == members(sent)
    details = error.to_json().get("details", {})
    assert printed.get("details", {}) == details
    assert {**details, **sent.get("details", {})} == {**sent.get("details", {}), **details}
    return reply


@pytest.mark.parametrize("provocation", PROVOCATIONS, ids=lambda provocation: provocation.error)
def test_case_1_an_error_is_the_same_in_python_on_the_command_line_and_over_http(
    provocation: Provocation, graph: Graph, server: HttpServer, run_command: RunCommand
) -> None:
    head = graph.head.id
    reply = check_surfaces(provocation, graph, server, run_command)
    assert ("code" in reply.json()) == (
        reply.status not in WITHOUT_CODE or provocation.error == "BlobPreconditionFailed"
    )
    assert graph.refresh().head.id == head, "no failed request writes anything"


def test_case_1_commits_without_a_parent_and_before_a_cleanup(
    deployment: Deployment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    graph = create_graph(deployment.new_root(tmp_path))
    genesis, cursor = [*graph.log()][-1].id, graph.changes.feed().cursor
    without_parent = Provocation(
        "CommitHasNoParent",
        lambda graph: graph.changes.of_commit(genesis),
        ("commit", "changes", "GRAPH", genesis),
        Request("GET", f"/commits/{genesis}/changes"),
    )
    reclaimed = Provocation(
        "ChangeFeedGap",
        lambda graph: next(graph.changes.feed(cursor=cursor)),
        ("changes", "poll", "GRAPH", "--cursor", cursor),
        Request("GET", f"/changes?cursor={cursor}"),
    )
    command = run_command.__wrapped__(graph, tmp_path, capsys)  # type: ignore[attr-defined]
    with deployment.serving(tmp_path, graph.uri, "--unauthenticated") as server:
        check_surfaces(without_parent, graph, server, command)
        for name in ("n1", "n2", "n3"):
            graph.mutate(ADD, n=name)
        graph.maintenance.cleanup(keep=1, older_than=0, grace=0, confirm=True)
        reply = check_surfaces(reclaimed, graph, server, command)
        assert "code" not in reply.json()


def test_case_1_every_class_is_provoked_or_has_a_reason() -> None:
    classes = {name for name, *_ in entries("errors/catalog.txt")}
    provoked = {provocation.error for provocation in PROVOCATIONS} | {"CommitHasNoParent", "ChangeFeedGap"}
    others = entries("errors/surfaces.txt")
    assert provoked | {name for name, *_ in others} == classes | {
        "ServerUnreachable",
        "IndexUnreadable",
        "AmbiguousRevision",
    }
    assert not provoked & {name for name, *_ in others}
    assert [(name, missing(test)) for name, _, test in others if test != "-" and missing(test)] == []


def test_case_2_no_response_shows_the_storage_or_a_token(graph: Graph, server: HttpServer) -> None:
    for provocation in PROVOCATIONS:
        send(server, provocation.request)
    server.query(PEOPLE, token="wrong-token")
    failures = [reply for reply in server.replies if reply.status >= 400]
    assert len(failures) > len(PROVOCATIONS)
    for reply in failures:
        text = reply.body.decode()
        traces = (graph.uri, ".lance", TOKEN, "wrong-token", "AWS4", "X-Amz", "node:", "edge:", "Traceback")
        document = json.loads(text)
        if document["kind"] in ("SchemaUnsupported", "SchemaViolation"):
            text = text.replace("node:Person", "")  # the name of a type in a schema change
        assert not [trace for trace in traces if trace in text], text


@pytest.mark.parametrize("status", sorted(WITHOUT_CODE - {410}))
def test_case_3_these_statuses_have_no_code(server: HttpServer, status: int) -> None:
    replies = [send(server, provocation.request) for provocation in PROVOCATIONS]
    of_status = [reply.json() for reply in replies if reply.status == status]
    assert of_status
    for document in of_status:
        assert document.get("code") == ("conflict" if document["kind"] == "BlobPreconditionFailed" else None)


def test_case_5_a_repeated_append_fails_again_and_writes_nothing(server: HttpServer) -> None:
    before = server.post(f"{GRAPH}/export").body
    line = json.dumps({"type": "Person", "data": {"name": "ada"}}).encode()
    expected = {"entity_kind": "node", "type_name": "Person", "entity_id": "ada"}
    for _ in range(2):
        reply = server.post(f"{GRAPH}/load/ndjson?mode=append", line, headers=NDJSON)
        assert (reply.status, reply.json()["key_conflict"]) == (409, expected)
    assert server.post(f"{GRAPH}/export").body == before


def send_at_once(server: HttpServer, path: str, bodies: list[dict[str, Any]]) -> list[Reply]:
    """Send requests at the same time, each on its own connection."""
    barrier, replies = threading.Barrier(len(bodies)), list[Reply]()

    def post(body: dict[str, Any]) -> None:
        barrier.wait()
        replies.append(server.post(path, body))

    threads = [threading.Thread(target=post, args=(body,)) for body in bodies]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(replies) == len(bodies)
    return replies


def test_case_6_of_two_writes_on_the_same_read_exactly_one_wins(server: HttpServer, branch: str) -> None:
    path = f"{GRAPH}/transaction"
    read = {"op": "query", "query": PEOPLE}
    preview = server.post(path, {"operations": [read], "branch": branch, "rollback": True}).json()
    seen = {**read, "digest": preview["results"][0]["digest"]}
    steps = [[seen, {"op": "mutate", "query": SET, "params": {"a": age}}] for age in (51, 52)]
    replies = send_at_once(server, path, [{"operations": step, "branch": branch} for step in steps])
    assert sorted(reply.status for reply in replies) == [200, 409]
    (lost,) = [reply.json() for reply in replies if reply.status == 409]
    assert lost["read_set_conflict"]["member"] in ("query", "node:Person"), (
        "what the loser notices depends on the order"
    )
    assert lost["retry"] == "fresh"


def test_case_6_two_inserts_of_different_ids_both_win(server: HttpServer, branch: str) -> None:
    bodies = [{"query": ADD, "params": {"n": name}, "branch": branch} for name in ("first", "second")]
    replies = send_at_once(server, f"{GRAPH}/mutate", bodies)
    assert [reply.status for reply in replies] == [200, 200]
    assert {"first", "second"} <= {row["p.name"] for row in server.rows(PEOPLE, branch=branch)}


def load_records(server: HttpServer, branch: str, records: list[dict[str, Any]]) -> None:
    lines = b"".join(json.dumps(record).encode() + b"\n" for record in records)
    path = f"{GRAPH}/load/ndjson?mode=merge&branch={quote(branch, safe='')}"
    assert server.post(path, lines, headers=NDJSON).status == 200


def test_case_8_conflicts_are_listed_once_in_order_with_a_short_message(server: HttpServer, branch: str) -> None:
    names, theirs = ["d", "b", "e", "c", "a"], f"{branch}-theirs"
    records: list[dict[str, Any]] = [{"type": "Person", "data": {"name": name}} for name in names]
    records.append({"edge": "Knows", "from": "a", "to": "b", "data": {"id": "k", "since": 1}})
    load_records(server, branch, records)
    server.post(f"{GRAPH}/branches", {"name": theirs, "from": branch})
    for target, number in ((branch, 2), (theirs, 3)):
        for record in records:
            record["data"]["since" if "edge" in record else "age"] = number
        load_records(server, target, records)
    reply = server.post(f"{GRAPH}/branches/merge", {"source": theirs, "target": branch})
    listed = [
        (entry["entity_kind"], entry["type_name"], entry["entity_id"]) for entry in reply.json()["merge_conflicts"]
    ]
    assert listed == [*(("node", "Person", name) for name in "abcde"), ("edge", "Knows", "k")]
    message = reply.json()["error"]
    assert message.count("entity id") == 3
    assert "3 more" in message


@pytest.mark.parametrize(
    "text",
    [
        "match { $p: Person }\r\nreturn { $p.nmae }",
        'match { $p: Person  $p.name = "äöü€😀" } return { $p.nmae }',
    ],
    ids=["CRLF", "multi-byte"],
)
def test_case_9_a_type_error_shows_line_and_column(server: HttpServer, text: str) -> None:
    before = text.partition("$p.nmae")[0].split("\r\n")
    line, column = len(before), len(before[-1]) + 1
    (finding,) = server.query(text).json()["diagnostics"]
    assert (finding["line"], finding["column"], finding["code"]) == (line, column, "T6")
    assert text[finding["start"] : finding["end"]] == "$p.nmae"


def test_case_10_no_surface_prints_the_secrets_of_a_uri(
    graph: Graph, server: HttpServer, run_command: RunCommand
) -> None:
    (provocation,) = [entry for entry in PROVOCATIONS if entry.error == "ExternalBlobPolicyError"]
    assert OUTSIDE_URI in json.dumps(provocation.request.body.decode())
    with pytest.raises(errors.ExternalBlobPolicyError) as caught:
        provocation.call(graph)
    texts = [str(caught.value), repr(caught.value), json.dumps(caught.value.to_json())]
    texts += [json.dumps(run_command(provocation.command)), send(server, provocation.request).body.decode()]
    texts.append(server.log.read_text())
    assert not [text for text in texts if "secret" in text or "sig=" in text]


def test_case_15_rejected_cursors_have_a_stable_prefix(
    deployment: Deployment, server: HttpServer, branch: str, tmp_path: Path
) -> None:
    feed = f"{GRAPH}/changes?branch={quote(branch, safe='')}"
    for name in ("p1", "p2"):
        server.post(f"{GRAPH}/mutate", {"query": ADD, "params": {"n": name}, "branch": branch})
    cursor = server.get(feed).json()["cursor"]
    page_token = server.get(f"{feed}&start=beginning&limit=1").json()["next_page_token"]
    with closing(omnigraph.open(create_graph(deployment.new_root(tmp_path)).uri)) as other:
        foreign = other.changes.feed().cursor
    rejected = {
        "truncated": f"{feed}&cursor={cursor[:-3]}",
        "of another graph": f"{feed}&cursor={foreign}",
        "a page token": f"{feed}&cursor={page_token}",
        "of another filter": f"{feed}&kind=node&cursor={cursor}",
    }
    replies = {name: server.get(path) for name, path in rejected.items()}
    server.delete(f"{GRAPH}/branches/{quote(branch, safe='')}?force=true")
    server.post(f"{GRAPH}/branches", {"name": branch})
    replies["of a deleted branch"] = server.get(f"{feed}&cursor={cursor}")
    for name, reply in replies.items():
        assert (reply.status, reply.json()["error"].startswith(CURSOR_PREFIX)) == (400, True), name
