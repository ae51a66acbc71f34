"""A real `omnigraph serve` for tests, and a client that checks every response against the server's own document."""

import http.client
import itertools
import json
import os
import re
import socket
import ssl
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.rig.openapi_check import OpenApiCheck
from tests.rig.server_process import _END_WITH_PARENT, installed
from tests.rig.timeouts import PATIENCE

LISTEN_LINE = re.compile(r"OMNIGRAPH_LISTEN_ADDR=(.+)")
TOKEN_VARIABLES = (
    "OMNIGRAPH_SERVER_BEARER_TOKENS_FILE",
    "OMNIGRAPH_SERVER_BEARER_TOKENS_JSON",
    "OMNIGRAPH_SERVER_BEARER_TOKEN",
)


@dataclass(frozen=True)
class Reply:
    """A response, read completely."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    def json(self) -> Any:
        """The body as JSON."""
        return json.loads(self.body)

    @property
    def media_type(self) -> str:
        """The media type without parameters."""
        return self.headers.get("content-type", "").partition(";")[0]


class _UnixConnection(http.client.HTTPConnection):
    """An HTTP connection over a Unix socket."""

    def __init__(self, path: str) -> None:
        super().__init__("localhost", timeout=PATIENCE)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(PATIENCE)
        self.sock.connect(self._path)


@dataclass
class HttpServer:
    """A running server program."""

    process: "subprocess.Popen[bytes]"
    address: str
    log: Path
    tls: ssl.SSLContext | None = None
    token: str | None = None
    check: OpenApiCheck | None = None
    secrets: tuple[str, ...] = ()
    replies: list[Reply] = field(default_factory=list)

    @property
    def port(self) -> int:
        return int(self.address.rpartition(":")[2])

    def connect(self) -> http.client.HTTPConnection:
        """A new connection."""
        if self.address.startswith("unix:"):
            return _UnixConnection(self.address.removeprefix("unix:"))
        host, _, port = self.address.rpartition(":")
        if self.tls is not None:
            return http.client.HTTPSConnection("localhost", int(port), timeout=PATIENCE, context=self.tls)
        return http.client.HTTPConnection(host, int(port), timeout=PATIENCE)

    def request(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        headers: Mapping[str, str] | None = None,
        token: str | None = None,
    ) -> Reply:
        """Send a request on a connection of its own; anything but bytes is sent as JSON."""
        connection = self.connect()
        try:
            all_headers = {"Connection": "close", **self._authorization(token), **(headers or {})}
            if body is not None and not isinstance(body, bytes):
                body = json.dumps(body).encode()
                all_headers.setdefault("Content-Type", "application/json")
            connection.request(method, path, body, all_headers)
            response = connection.getresponse()
            lower = {name.lower(): value for name, value in response.getheaders()}
            assert len(response.headers.get_all("Content-Length", [])) <= 1, (method, path)
            reply = Reply(response.status, lower, response.read())
        finally:
            connection.close()
        self._verify(method, path, reply)
        return reply

    def get(self, path: str, **options: Any) -> Reply:
        return self.request("GET", path, **options)

    def post(self, path: str, body: Any = None, **options: Any) -> Reply:
        return self.request("POST", path, {} if body is None else body, **options)

    def delete(self, path: str, **options: Any) -> Reply:
        return self.request("DELETE", path, **options)

    def query(self, text: str, path: str = "/graphs/default/query", **members: Any) -> Reply:
        return self.post(path, {"query": text, **members})

    def rows(self, text: str, **members: Any) -> list[dict[str, Any]]:
        reply = self.query(text, **members)
        assert reply.status == 200, reply.body
        rows: list[dict[str, Any]] = reply.json()["rows"]
        return rows

    def head(self, branch: str = "main") -> str:
        """The id of the newest commit of a branch."""
        reply = self.get(f"/graphs/default/commits?limit=1&branch={branch}")
        commit_id: str = reply.json()["commits"][0]["graph_commit_id"]
        return commit_id

    def _authorization(self, token: str | None) -> dict[str, str]:
        token = token if token is not None else self.token
        return {"Authorization": f"Bearer {token}"} if token else {}

    def _verify(self, method: str, path: str, reply: Reply) -> None:
        self.replies.append(reply)
        assert re.fullmatch(r"[\w-]{1,64}", reply.headers.get("omnigraph-request-id", "")), (method, path)
        if self.check is not None:
            problems = self.check.problems(method, path, reply.status, reply.media_type, reply.body)
            assert problems == [], (method, path, reply.status, problems)

    def signal(self, number: int) -> None:
        self.process.send_signal(number)

    def wait(self) -> int:
        return self.process.wait(PATIENCE)


def workers_of(server: HttpServer) -> set[int]:
    """The process ids of the workers that run now."""
    children: set[int] = set()
    for status in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = status.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[1]) == server.process.pid and fields[0] != "Z":
            children.add(int(status.parent.name))
    return children


def wait_until(condition: Callable[[], bool]) -> None:
    """Wait for a condition; the limit of a whole test ends a wait in vain."""
    while not condition():
        time.sleep(0.05)


def environment(**variables: str) -> dict[str, str]:
    """The environment of the tests without tokens, with further variables."""
    kept = {name: value for name, value in os.environ.items() if name not in TOKEN_VARIABLES}
    return {**kept, "OMNIGRAPH_LOG": "info", **variables}


def start_server(folder: Path, *arguments: str, variables: Mapping[str, str] | None = None) -> HttpServer:
    """Start a server and wait until it listens; its log goes to a file."""
    folder.mkdir(parents=True, exist_ok=True)
    log = folder / "server.log"
    bind = () if "--unix-socket" in arguments else ("--bind", "127.0.0.1:0")
    command = [installed("omnigraph"), "serve", *arguments, *bind]
    with log.open("wb") as log_file:
        process = subprocess.Popen(
            [sys.executable, "-c", _END_WITH_PARENT, sys.executable, *command],
            stdout=subprocess.PIPE,
            stderr=log_file,
            env=environment(**(variables or {})),
        )
    assert process.stdout is not None
    timer = threading.Timer(PATIENCE, process.kill)
    timer.start()
    line = process.stdout.readline().decode()
    timer.cancel()
    match = LISTEN_LINE.fullmatch(line.strip())
    if match is None:
        process.kill()
        process.wait()
        process.stdout.close()
        raise RuntimeError(f"the server did not start: {line!r}\n{log.read_text()}")
    return HttpServer(process, match[1], log, secrets=find_secrets(arguments, variables or {}))


def find_secrets(arguments: Sequence[str], variables: Mapping[str, str]) -> tuple[str, ...]:
    """The roots and the tokens of a server, which its log must not contain."""
    graphs = itertools.takewhile(lambda argument: not argument.startswith("--"), arguments)
    roots = [graph.rpartition("=")[2].partition("?")[0].removeprefix("file://") for graph in graphs]
    documents = [variables.get(name) for name in TOKEN_VARIABLES[1:]]
    path = Path(variables.get(TOKEN_VARIABLES[0], ""))
    if path.is_file():
        documents.append(path.read_text())
    tokens = [token for document in documents if document for token in _read_tokens(document)]
    return tuple(secret for secret in (*roots, *tokens) if len(secret) > 3)


def _read_tokens(document: str) -> list[str]:
    """The tokens in a token document; a document that is no JSON is a single token."""
    try:
        entries = json.loads(document)
    except ValueError:
        return [document]
    values = entries.values() if isinstance(entries, dict) else ()
    return [value["token"] if isinstance(value, dict) else value for value in values]


def require_clean_log(server: HttpServer) -> None:
    """Insist that the log shows no secret."""
    log = server.log.read_text()
    secrets = (*server.secrets, *([server.token] if server.token and len(server.token) > 3 else []))
    for secret in secrets:
        assert secret not in log, [line for line in log.splitlines() if secret in line][:3]


def stop_server(server: HttpServer) -> None:
    """Stop a server as an operator would, and insist that it ends well."""
    if server.process.poll() is None:
        server.process.terminate()
    wait_for_end(server)


def wait_for_end(server: HttpServer) -> None:
    """Wait for a server that was told to stop, and insist that it ends well."""
    assert server.process.stdout is not None
    assert server.process.wait(PATIENCE) == 0, server.log.read_text()[-4000:]
    assert server.process.stdout.read() == b"", "only the listen line goes to standard output"
    server.process.stdout.close()
    require_clean_log(server)


@contextmanager
def serving(
    folder: Path, *arguments: str, variables: Mapping[str, str] | None = None, token: str | None = None
) -> Iterator[HttpServer]:
    """A server that is stopped at the end; its responses are checked against its own document."""
    server = start_server(folder, *arguments, variables=variables)
    try:
        server.token = token
        server.check = OpenApiCheck(server.get("/openapi.json").json())
        yield server
        stop_server(server)
    finally:
        if server.process.poll() is None:
            server.process.kill()
            server.process.wait()
        if server.process.stdout is not None:
            server.process.stdout.close()
