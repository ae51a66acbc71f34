"""Tokens, permissions and admission: cases 2, 4, 5, 12 and 21 of the server's conformance list."""

import http.client
import json
import subprocess
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

import omnigraph
from omnigraph.cli.main import run
from omnigraph.server.access.tokens import format_hash
from omnigraph.server.log_output import LOGGER
from tests.rig.deployments import Deployment
from tests.rig.http_server import TOKEN_VARIABLES, HttpServer, Reply, serving, wait_until
from tests.rig.server_process import installed
from tests.server.conftest import make_graph

GRAPH = "/graphs/default"
PEOPLE = "match { $p: Person } return { $p.name }"
ADD = "query add($n: String) { insert Person { name: $n } }"
TOKENS = {
    "ann": {"token": format_hash("ann-token"), "permission": "write"},
    "bob": {"token": "bob-token", "permission": "admin"},
    "rita": "rita-token",
}


@pytest.fixture(scope="module")
def uri(deployment: Deployment, tmp_path_factory: pytest.TempPathFactory) -> str:
    return make_graph(deployment.new_root(tmp_path_factory.mktemp("graph")))


@pytest.fixture(scope="module")
def guarded(deployment: Deployment, uri: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[HttpServer]:
    """A server with a token file, a single token beside it, and two writes per actor at once."""
    folder = tmp_path_factory.mktemp("guarded")
    file = folder / "tokens.json"
    file.write_text(json.dumps(TOKENS))
    variables = {
        "OMNIGRAPH_SERVER_BEARER_TOKENS_FILE": str(file),
        "OMNIGRAPH_SERVER_BEARER_TOKENS_JSON": '{"ignored": "inline-token"}',
        "OMNIGRAPH_SERVER_BEARER_TOKEN": "single-token",
        "OMNIGRAPH_PER_ACTOR_INFLIGHT_MAX": "2",
    }
    with deployment.serving(folder, uri, variables=variables, token="ann-token") as server:
        yield server


def refused(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *arguments: str, **variables: str
) -> str:
    """What a server says that does not start. Its tokens are read before anything else, so no process is needed."""
    for name in TOKEN_VARIABLES:
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    for attribute in ("handlers", "level", "propagate"):  # the server's log goes to the output of this test
        monkeypatch.setattr(LOGGER, attribute, getattr(LOGGER, attribute))
    assert run(["serve", "nowhere", "--bind", "127.0.0.1:0", *arguments]) == 1
    output = capsys.readouterr()
    assert output.out == ""
    return output.err


def test_case_2_a_server_without_tokens_must_be_declared_open(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert "--unauthenticated" in refused(monkeypatch, capsys)


@pytest.mark.parametrize(
    ("document", "complaint"),
    [
        ('{"a": "same", "b": "same"}', "two actors have the same token"),
        ('{"a": "x", "a": "y"}', "the actor 'a' has two tokens"),
        ('{"": "x"}', "blank actor"),
        ('{"a": " "}', "blank token"),
        ('["a"]', "must be a JSON object"),
        ("{", "not valid JSON"),
        ('{"a": {"token": "x", "permission": "root"}}', "unknown permission 'root'"),
        ('{"omnigraph:me": "x"}', "reserved"),
    ],
)
def test_case_5_a_faulty_token_source_is_refused(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], document: str, complaint: str
) -> None:
    message = refused(monkeypatch, capsys, OMNIGRAPH_SERVER_BEARER_TOKENS_JSON=document)
    assert complaint in message
    assert "same" not in message or "two actors" in message


def test_case_5_a_file_excludes_inline_tokens_and_a_single_token_is_added(guarded: HttpServer) -> None:
    tokens = {"ann-token": "ann", "bob-token": "bob", "rita-token": "rita", "single-token": "default"}
    for token, actor in tokens.items():
        assert guarded.get("/whoami", token=token).json()["actor_id"] == actor
    assert guarded.get("/whoami", token="inline-token").status == 401


@pytest.mark.parametrize("header", [None, "Basic YTpi", "Bearer", "Bearer  ", "bearer wrong", "Bearer ann-token2"])
def test_a_missing_or_wrong_token_is_401_before_anything_else(guarded: HttpServer, header: str | None) -> None:
    headers = {"Authorization": header} if header is not None else {"Authorization": ""}
    for path in (f"{GRAPH}/query", "/graphs/nothing/query"):
        reply = guarded.post(path, b"{not json", headers={**headers, "Content-Type": "application/json"})
        assert reply.status == 401
        assert reply.headers["www-authenticate"] == "Bearer"
    assert guarded.get("/healthz", headers=headers).status == 200
    assert guarded.get("/openapi.json", headers=headers).status == 200
    assert guarded.get("/nowhere", headers=headers).status == 404


def test_the_scheme_is_read_in_any_case(guarded: HttpServer) -> None:
    assert guarded.get("/whoami", headers={"Authorization": "bEaReR ann-token"}).json()["permission"] == "write"


def test_case_4_the_actor_comes_only_from_the_token(guarded: HttpServer) -> None:
    headers = {"X-Actor-Id": "bob", "X-Forwarded-User": "bob"}
    body = {"query": ADD, "params": {"n": "by-ann"}, "actor": "bob", "actor_id": "bob"}
    commit = guarded.post(f"{GRAPH}/mutate", body, headers=headers).json()["commit"]
    assert commit["actor_id"] == "ann"


def test_the_permission_of_a_token_decides(guarded: HttpServer) -> None:
    def statuses(token: str) -> list[int]:
        write = guarded.post(f"{GRAPH}/mutate", {"query": ADD, "params": {"n": f"n-{token[:3]}"}}, token=token)
        return [
            guarded.post(f"{GRAPH}/query", {"query": PEOPLE}, token=token).status,
            write.status,
            guarded.post(f"{GRAPH}/export", token=token).status,
            guarded.get("/graphs", token=token).status,
            guarded.get("/metrics", token=token).status,
        ]

    assert statuses("rita-token") == [200, 403, 200, 403, 403]
    assert statuses("ann-token") == [200, 200, 200, 403, 403]
    assert statuses("bob-token") == [200, 200, 200, 200, 200]


def test_denials_say_how_to_get_access(guarded: HttpServer) -> None:
    denied = guarded.post(f"{GRAPH}/mutate", {"query": ADD, "params": {"n": "no"}}, token="rita-token").json()
    assert denied["hint"] == (
        "the token has the permission 'read'; create a token with `omnigraph token new rita --permission write`"
    )
    assert "--permission admin" in guarded.get("/metrics", token="rita-token").json()["hint"]
    missing = guarded.get("/whoami", headers={"Authorization": ""}).json()
    assert missing["error"] == "missing bearer token"
    for remedy in ("omnigraph login", "OMNIGRAPH_TOKEN", "omnigraph.open(url, token=…)"):
        assert remedy in missing["hint"]


def test_the_same_idempotency_key_of_two_actors_is_two_keys(guarded: HttpServer) -> None:
    headers = {"Idempotency-Key": "shared"}
    replies = [
        guarded.post(f"{GRAPH}/mutate", {"query": ADD, "params": {"n": f"k-{token[:3]}"}}, token=token, headers=headers)
        for token in ("ann-token", "bob-token")
    ]
    assert [reply.status for reply in replies] == [200, 200]
    assert len({reply.json()["commit"]["graph_commit_id"] for reply in replies}) == 2


def test_case_12_a_denied_caller_with_an_endless_body_is_answered_at_once(guarded: HttpServer) -> None:
    connection = guarded.connect()
    connection.putrequest("POST", f"{GRAPH}/load/ndjson")
    for name, value in {"Authorization": "Bearer rita-token", "Content-Type": "application/x-ndjson"}.items():
        connection.putheader(name, value)
    connection.putheader("Transfer-Encoding", "chunked")
    connection.endheaders()
    response = connection.getresponse()  # the body has not even begun
    assert (response.status, response.headers["connection"]) == (403, "close")
    connection.close()


@contextmanager
def slow_writes(uri: str) -> Iterator[None]:
    """While the block runs, writes to main wait for their turn, for at most five seconds."""
    with omnigraph.open(uri)._handle.branch_state.machine_queue.turn():
        yield


def test_case_21_writes_beyond_the_limit_of_an_actor_are_429(guarded: HttpServer, uri: str) -> None:
    replies: list[Reply] = []

    def write(name: str) -> None:
        replies.append(guarded.post(f"{GRAPH}/mutate", {"query": ADD, "params": {"n": name}}))

    with slow_writes(uri):
        threads = [threading.Thread(target=write, args=(f"slow{number}",)) for number in range(3)]
        for thread in threads:
            thread.start()
        wait_until(lambda: bool(replies))  # two of the three wait for their turn
        (rejected,) = replies
        denied = guarded.post(f"{GRAPH}/mutate", {"query": ADD, "params": {"n": "x"}}, token="rita-token")
        other = guarded.post(f"{GRAPH}/branches", {"name": "of-bob"}, token="bob-token")
        read = guarded.post(f"{GRAPH}/query", {"query": PEOPLE})
    for thread in threads:
        thread.join()
    assert rejected.status == 429
    assert rejected.json()["code"] == "too_many_requests"
    assert 1 <= int(rejected.headers["retry-after"]) <= 60
    assert (denied.status, other.status, read.status) == (403, 200, 200)
    assert sorted(reply.status for reply in replies) == [200, 200, 429]


def test_case_21_two_workers_share_the_limit_of_an_actor(uri: str, tmp_path: Path) -> None:
    variables = {
        "OMNIGRAPH_SERVER_BEARER_TOKENS_JSON": json.dumps({"ann": "ann-token", "bob": "bob-token"}),
        "OMNIGRAPH_PER_ACTOR_INFLIGHT_MAX": "4",
    }
    arguments = (uri, "--token-permission", "admin", "--workers", "2")
    with serving(tmp_path, *arguments, variables=variables, token="ann-token") as server:
        # Each attempt opens its own connection, so both workers get some of them.
        statuses = write_beyond_the_limit(server, uri, running=4, attempts=8)
        assert statuses == [200] * 4 + [429] * 8
        assert write_beyond_the_limit(server, uri, running=4, attempts=1) == [200] * 4 + [429], (
            "all slots were released"
        )


def write_beyond_the_limit(server: HttpServer, uri: str, *, running: int, attempts: int) -> list[int]:
    """Start as many writes as the limit allows, then attempt more, and return all statuses in order."""
    accepted: list[Reply] = []

    def write(number: int) -> Reply:
        return server.post(f"{GRAPH}/mutate", {"query": ADD, "params": {"n": f"{attempts}-{number}"}})

    with slow_writes(uri):
        threads = [threading.Thread(target=lambda n=n: accepted.append(write(n))) for n in range(running)]
        for thread in threads:
            thread.start()
        wait_until(lambda: running_writes(server) == running)
        refused = [write(running + number).status for number in range(attempts)]
        other = server.post(f"{GRAPH}/branches", {"name": f"of-bob-{attempts}"}, token="bob-token")
    for thread in threads:
        thread.join()
    assert other.status == 200
    return [*(reply.status for reply in accepted), *refused]


def running_writes(server: HttpServer) -> float:
    """How many calls run in the lanes of heavy work of all workers."""
    reply = server.get("/metrics")
    lines = [line for line in reply.body.decode().splitlines() if 'lane_calls{lane="heavy"}' in line]
    return sum(float(line.rpartition(" ")[2]) for line in lines)


def test_no_log_and_no_reply_contains_a_token_or_a_text(guarded: HttpServer) -> None:
    guarded.post(f"{GRAPH}/mutate", {"query": ADD, "params": {"n": "secret-value"}})
    guarded.post(f"{GRAPH}/query", {"query": 'match { $p: Person  $p.name = "secret-literal" } return { $p.nothing }'})
    log = guarded.log.read_text()
    for secret in ("ann-token", "bob-token", "single-token", "secret-value", "secret-literal", "match {", "insert"):
        assert secret not in log
    assert not any(b"-token" in reply.body for reply in guarded.replies)


def test_a_new_token_is_a_line_for_the_token_file(tmp_path: Path) -> None:
    command = [installed("omnigraph"), "token", "new", "carol", "--permission", "write", "--json"]
    printed = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    assert printed["entry"] == {"carol": {"token": format_hash(printed["token"]), "permission": "write"}}
    assert len(printed["token"]) >= 40


@contextmanager
def request_without_its_body(
    server: HttpServer, operation: str, token: str, content_type: str = "application/json"
) -> Iterator[http.client.HTTPConnection]:
    """A connection with a request whose body the client never begins to send."""
    with closing(server.connect()) as connection:
        connection.putrequest("POST", f"{GRAPH}/{operation}")
        connection.putheader("Authorization", f"Bearer {token}")
        connection.putheader("Content-Type", content_type)
        connection.putheader("Content-Length", "1000000")
        connection.endheaders()
        yield connection


@pytest.mark.parametrize("operation", ["load", "mutate", "ingest", "transaction", "branches", "schema/apply"])
def test_a_denied_caller_is_answered_before_the_body(guarded: HttpServer, operation: str) -> None:
    with request_without_its_body(guarded, operation, "rita-token") as connection:
        response = connection.getresponse()
        assert (response.status, response.headers["connection"]) == (403, "close")
    with request_without_its_body(guarded, operation, "wrong") as connection:
        assert connection.getresponse().status == 401


def test_writes_are_admitted_before_their_bodies(guarded: HttpServer) -> None:
    with (
        request_without_its_body(guarded, "mutate", "bob-token"),
        request_without_its_body(guarded, "load", "bob-token"),
    ):
        wait_until(lambda: is_rejected(guarded, "bob-token"))
    wait_until(lambda: not is_rejected(guarded, "bob-token"))


def is_rejected(server: HttpServer, token: str) -> bool:
    """Whether a further write is rejected. A write that is admitted fails because of its media type."""
    with request_without_its_body(server, "mutate", token, "text/plain") as connection:
        status = connection.getresponse().status
    assert status in (415, 429)
    return status == 429
