"""The processes of a server: cases 1 and 30, workers, reloads, sockets and certificates."""

import json
import os
import signal
import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime, timedelta
from ipaddress import IPv4Address
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

import omnigraph
from tests.rig.deployments import Deployment
from tests.rig.http_server import (
    HttpServer,
    Reply,
    serving,
    start_server,
    stop_server,
    wait_for_end,
    wait_until,
    workers_of,
)
from tests.rig.timeouts import PATIENCE
from tests.server.conftest import make_graph

GRAPH = "/graphs/default"
PEOPLE = "match { $p: Person } return { $p.name }"
# Headers that scripts may read without permission, or that concern only the connection.
READABLE_HEADERS = {"content-length", "content-type", "cache-control", "date", "connection", "transfer-encoding"}
READABLE_HEADERS |= {"x-content-type-options"}
ADD = "query add($n: String) { insert Person { name: $n } }"


@pytest.fixture(scope="module")
def uri(tmp_path_factory: pytest.TempPathFactory) -> str:
    return make_graph(tmp_path_factory.mktemp("graph") / "graph")


@pytest.fixture(scope="module")
def pair(uri: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[HttpServer]:
    """A server with two workers and a token file."""
    folder = tmp_path_factory.mktemp("pair")
    tokens = folder / "tokens.json"
    tokens.write_text('{"ann": {"token": "old", "permission": "admin"}}')
    variables = {"OMNIGRAPH_SERVER_BEARER_TOKENS_FILE": str(tokens)}
    with serving(folder, uri, "--workers", "2", variables=variables, token="old") as server:
        yield server


def test_a_killed_worker_is_replaced_while_the_other_serves(pair: HttpServer) -> None:
    before = workers_of(pair)
    assert len(before) == 2
    os.kill(min(before), signal.SIGKILL)
    wait_until(lambda: len(workers_of(pair) - {min(before)}) == 2)
    for _ in range(20):
        assert pair.query(PEOPLE).status == 200


def test_a_hang_up_replaces_the_workers_and_reads_new_tokens_without_failures(pair: HttpServer) -> None:
    wait_until(lambda: len(workers_of(pair)) == 2)
    before, failures, stop = workers_of(pair), [], threading.Event()

    def ask() -> None:
        while not stop.is_set():
            reply = pair.query(PEOPLE)
            if reply.status not in (200, 401):
                failures.append(reply)

    asking = threading.Thread(target=ask)
    asking.start()
    (pair.log.parent / "tokens.json").write_text('{"ann": {"token": "new", "permission": "admin"}}')
    pair.signal(signal.SIGHUP)
    wait_until(lambda: not workers_of(pair) & before)
    stop.set()
    asking.join()
    assert failures == []
    assert pair.get("/whoami", token="new").json()["actor_id"] == "ann"
    assert pair.get("/whoami", token="old").status == 401
    pair.token = "new"


def test_both_workers_see_a_write_at_once(pair: HttpServer) -> None:
    for number in range(10):
        written = pair.post(f"{GRAPH}/mutate", {"query": ADD, "params": {"n": f"w{number}"}}).json()["commit"]
        for _ in range(3):
            assert pair.query(PEOPLE).json()["graph_commit_id"] == written["graph_commit_id"]


def test_metrics_are_those_of_all_workers(pair: HttpServer) -> None:
    def count() -> float:
        text = pair.get("/metrics").body.decode()
        lines = [line for line in text.splitlines() if line.startswith("omnigraph_request_seconds_count")]
        return sum(float(line.rpartition(" ")[2]) for line in lines if '/query"' in line)

    before = count()
    for _ in range(20):
        pair.query(PEOPLE)
    assert count() == before + 20


@contextmanager
def slow_writes(uri: str) -> Iterator[None]:
    """While the block runs, writes to main wait for their turn, for at most five seconds."""
    with omnigraph.open(uri)._handle.branch_state.machine_queue.turn():
        yield


def test_case_30_a_running_mutation_is_answered_before_the_server_ends(deployment: Deployment, tmp_path: Path) -> None:
    uri = make_graph(deployment.new_root(tmp_path))
    server = deployment.start_server(tmp_path, uri, "--unauthenticated")
    replies: list[Reply] = []

    def write() -> None:
        replies.append(server.post(f"{GRAPH}/mutate", {"query": ADD, "params": {"n": "last"}}))

    with slow_writes(uri):
        writing = threading.Thread(target=write)
        writing.start()
        wait_until(lambda: is_writing(server))
        server.signal(signal.SIGTERM)
        wait_until(lambda: not is_listening(server))
    writing.join(PATIENCE)
    wait_for_end(server)
    assert replies[0].status == 200
    assert omnigraph.open(uri).node("Person", "last") is not None


def is_writing(server: HttpServer) -> bool:
    """Whether a call runs in the lane of writes."""
    text = server.get("/metrics").body.decode()
    return 'omnigraph_lane_calls{lane="heavy"} 1.0' in text


def is_listening(server: HttpServer) -> bool:
    try:
        socket.create_connection(("127.0.0.1", server.port), 1).close()
    except OSError:
        return False
    return True


def test_case_1_the_listen_line_comes_first_and_names_the_real_port(deployment: Deployment, tmp_path: Path) -> None:
    uri = make_graph(deployment.new_root(tmp_path))
    server = deployment.start_server(tmp_path, uri, "--unauthenticated")
    assert server.port > 0
    assert server.get("/readyz").json() == {"status": "ready", "graphs": 1}
    stop_server(server)


def test_a_request_that_has_not_arrived_at_the_end_of_the_grace_is_503(uri: str, tmp_path: Path) -> None:
    server = start_server(tmp_path, uri, "--unauthenticated", "--shutdown-grace", "0")
    with closing(server.connect()) as connection:
        connection.putrequest("POST", f"{GRAPH}/mutate")
        for name, value in {
            "Content-Type": "application/json",
            "Content-Length": "1000",
            "Expect": "100-continue",
        }.items():
            connection.putheader(name, value)
        connection.endheaders()
        assert connection.sock.recv(100).startswith(b"HTTP/1.1 100"), "the server waits for the body"
        server.signal(signal.SIGTERM)
        response = connection.getresponse()
        document = json.loads(response.read())
        assert (response.status, document["kind"], document["effect"]) == (503, "Shutdown", "none")
        assert (response.headers["retry-after"], response.headers["connection"]) == ("1", "close")
    wait_for_end(server)


def test_a_graph_that_cannot_be_opened_is_an_error_of_the_start(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match="no graph can be served"):
        start_server(tmp_path, str(tmp_path / "nothing"), "--unauthenticated")


def test_case_29_a_quarantined_graph_is_not_found_and_the_others_serve(deployment: Deployment, tmp_path: Path) -> None:
    uri = make_graph(deployment.new_root(tmp_path))
    arguments = (f"people={uri}", f"lost={deployment.new_root(tmp_path)}", "--unauthenticated")
    with deployment.serving(tmp_path, *arguments) as server:
        assert server.get("/graphs/people/branches").status == 200
        missing, unknown = server.get("/graphs/lost/branches"), server.get("/graphs/other/branches")
        assert (missing.status, unknown.status) == (404, 404)
        assert missing.json()["error"] == "graph 'lost' not found"
        assert missing.json()["kind"] == unknown.json()["kind"]
        assert server.get("/readyz").json()["status"] == "degraded"
        assert server.get("/branches").status == 404, "several graphs have no flat routes"
        assert server.get("/graphs/no_such%2Fid/branches").status == 400
    with pytest.raises(RuntimeError, match="not all graphs can be served"):
        deployment.start_server(tmp_path / "strict", *arguments, "--require-all-graphs")


def test_a_unix_socket_serves_only_its_owner(uri: str, tmp_path: Path) -> None:
    path = tmp_path / "socket"
    with serving(tmp_path, uri, "--unauthenticated", "--unix-socket", str(path)) as server:
        assert server.address == f"unix:{path}"
        assert path.stat().st_mode & 0o777 == 0o600
        assert server.query(PEOPLE).status == 200
    assert not path.exists()


class Authority:
    """A certificate authority of this test."""

    def __init__(self, folder: Path, name: str) -> None:
        self.folder, self.key = folder, ec.generate_private_key(ec.SECP256R1())
        self.name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        constraints = x509.BasicConstraints(ca=True, path_length=0)
        self.certificate = (
            self._builder(self.name, self.key).add_extension(constraints, True).sign(self.key, hashes.SHA256())
        )
        self.file = folder / f"{name}.pem"
        self.file.write_bytes(self.certificate.public_bytes(serialization.Encoding.PEM))

    def _builder(self, subject: x509.Name, key: ec.EllipticCurvePrivateKey) -> x509.CertificateBuilder:
        now = datetime.now(UTC)
        builder = x509.CertificateBuilder().subject_name(subject).issuer_name(self.name).public_key(key.public_key())
        builder = builder.serial_number(x509.random_serial_number())
        return builder.not_valid_before(now - timedelta(days=1)).not_valid_after(now + timedelta(days=1))

    def issue(self, name: str) -> tuple[str, str]:
        """A certificate for localhost and its key, as files."""
        key = ec.generate_private_key(ec.SECP256R1())
        names = x509.SubjectAlternativeName([x509.DNSName("localhost"), x509.IPAddress(IPv4Address("127.0.0.1"))])
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        signed = self._builder(subject, key).add_extension(names, False).sign(self.key, hashes.SHA256())
        certificate_file, key_file = self.folder / f"{name}.crt", self.folder / f"{name}.key"
        certificate_file.write_bytes(signed.public_bytes(serialization.Encoding.PEM))
        encoding = (serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
        key_file.write_bytes(key.private_bytes(*encoding))
        return str(certificate_file), str(key_file)


def test_a_client_needs_a_certificate_when_the_server_has_a_ca_for_it(uri: str, tmp_path: Path) -> None:
    authority = Authority(tmp_path, "ca")
    certificate, key = authority.issue("server")
    client_files = authority.issue("client")
    server = start_server(
        *(tmp_path, uri, "--unauthenticated", "--tls-cert", certificate, "--tls-key", key),
        *("--tls-client-ca", str(authority.file)),
    )
    server.tls = ssl.create_default_context(cafile=str(authority.file))
    with pytest.raises((ssl.SSLError, ConnectionError)):
        server.get("/healthz")
    server.tls.load_cert_chain(*client_files)
    assert server.query(PEOPLE).status == 200
    old = ssl.create_default_context(cafile=str(authority.file))
    old.load_cert_chain(*client_files)
    old.maximum_version = ssl.TLSVersion.TLSv1_2
    with (
        socket.create_connection(("127.0.0.1", server.port)) as plain,
        old.wrap_socket(plain, server_hostname="localhost") as wrapped,
    ):
        assert wrapped.version() == "TLSv1.2"
    stop_server(server)


def test_a_worker_ends_when_its_supervisor_is_killed(uri: str, tmp_path: Path) -> None:
    server = start_server(tmp_path, uri, "--unauthenticated")
    (worker,) = workers_of(server)
    server.process.kill()
    server.process.wait()
    wait_until(lambda: not Path(f"/proc/{worker}/stat").exists())
    assert server.process.stdout is not None
    server.process.stdout.close()


def test_logs_are_json_when_asked(uri: str, tmp_path: Path) -> None:
    with serving(tmp_path, uri, "--unauthenticated", "--log-format", "json") as server:
        server.query(PEOPLE)
    events = [json.loads(line) for line in server.log.read_text().splitlines()]
    (event,) = [event for event in events if event.get("route", "").endswith("/query")]
    assert (event["method"], event["status"], event["graph"]) == ("POST", 200, "default")


def test_a_browser_of_a_listed_origin_may_call(uri: str, tmp_path: Path) -> None:
    with serving(tmp_path, uri, "--unauthenticated", "--cors-origin", "https://app.example") as server:
        asked = {"Origin": "https://app.example", "Access-Control-Request-Method": "POST"}
        preflight = server.request("OPTIONS", f"{GRAPH}/query", headers=asked)
        assert (preflight.status, preflight.headers["access-control-allow-origin"]) == (204, "https://app.example")
        reply = server.get("/healthz", headers={"Origin": "https://app.example"})
        assert reply.headers["access-control-allow-origin"] == "https://app.example"
        exposed = {name.strip().lower() for name in reply.headers["access-control-expose-headers"].split(",")}
        write = {"query": ADD, "params": {"n": "twice"}}
        replies = [server.post(f"{GRAPH}/mutate", write, headers={"Idempotency-Key": "k"}) for _ in range(2)]
        replies.append(server.post(f"{GRAPH}/query", {"query": PEOPLE}, headers={"Accept": "text/csv"}))
        replies.append(server.post(f"{GRAPH}/maintenance/check", {"quick": True}))
        replies.append(server.post("/read", {"query_source": PEOPLE}))
        sent = {name for sent_reply in replies for name in sent_reply.headers} - READABLE_HEADERS
        assert sent >= {"idempotent-replay", "omnigraph-query-name", "location", "deprecation"}
        assert sent <= exposed
        stranger = server.get("/healthz", headers={"Origin": "https://evil.example"})
        assert "access-control-allow-origin" not in stranger.headers
        head = server.request("HEAD", "/healthz")
        assert (head.status, head.body) == (200, b"")
        assert head.headers["cache-control"] == "no-store"
