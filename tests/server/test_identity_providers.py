"""Tokens of an identity provider, beside tokens of the server."""

import asyncio
import base64
import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import rsa

from tests.rig.http_server import HttpServer, serving, wait_until
from tests.server.conftest import make_graph

AUDIENCE = "omnigraph-tests"


class Provider:
    """An identity provider: it publishes keys, and signs tokens."""

    def __init__(self) -> None:
        self.keys = {"k1": rsa.generate_private_key(65537, 2048)}
        self.fetches = 0
        self.malformed_keys: list[Any] = []
        self.outage: bytes | None = None
        provider = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                body = provider.outage or json.dumps(provider.document(self.path)).encode()
                self.send_response(200)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                return

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.issuer = f"http://127.0.0.1:{self.http.server_address[1]}"
        threading.Thread(target=self.http.serve_forever, daemon=True).start()

    def document(self, path: str) -> dict[str, Any]:
        if path.endswith("openid-configuration"):
            return {"issuer": self.issuer, "jwks_uri": f"{self.issuer}/keys"}
        self.fetches += 1
        algorithm = jwt.algorithms.RSAAlgorithm
        keys = [{**json.loads(algorithm.to_jwk(key.public_key())), "kid": name} for name, key in self.keys.items()]
        return {"keys": [*self.malformed_keys, *keys]}

    def token(self, key: str = "k1", **claims: Any) -> str:
        payload = {"iss": self.issuer, "aud": AUDIENCE, "sub": "ann@example", "exp": int(time.time()) + 600, **claims}
        payload = {name: value for name, value in payload.items() if value is not None}
        return jwt.encode(payload, self.keys[key], "RS256", headers={"kid": key})


@contextmanager
def running_provider() -> Iterator[Provider]:
    running = Provider()
    yield running
    running.http.shutdown()
    running.http.server_close()


@pytest.fixture(scope="module")
def provider() -> Iterator[Provider]:
    with running_provider() as running:
        yield running


@pytest.fixture(scope="module")
def server_with_provider(provider: Provider, tmp_path_factory: pytest.TempPathFactory) -> Iterator[HttpServer]:
    folder = tmp_path_factory.mktemp("oidc")
    uri = make_graph(folder / "graph")
    arguments = (uri, "--oidc-issuer", provider.issuer, "--oidc-audience", AUDIENCE)
    variables = {"OMNIGRAPH_SERVER_BEARER_TOKEN": "own-token"}
    with serving(folder, *arguments, variables=variables, token="own-token") as server:
        yield server


def test_a_token_of_the_provider_and_one_of_the_server_are_both_accepted(
    provider: Provider, server_with_provider: HttpServer
) -> None:
    caller = server_with_provider.get("/whoami", token=provider.token()).json()
    assert (caller["actor_id"], caller["authentication"], caller["permission"]) == ("ann@example", "oidc", "read")
    assert server_with_provider.get("/whoami", token="own-token").json()["actor_id"] == "default"


def test_a_claim_grants_a_permission_and_the_commit_names_the_caller(
    provider: Provider, server_with_provider: HttpServer
) -> None:
    add = {"query": 'query add() { insert Person { name: "by-provider" } }'}
    denied = server_with_provider.post("/graphs/default/mutate", add, token=provider.token())
    assert denied.status == 403
    granted = provider.token(omnigraph_permission="write")
    commit = server_with_provider.post("/graphs/default/mutate", add, token=granted).json()["commit"]
    assert commit["actor_id"] == "ann@example"


def test_keys_are_read_once_for_many_requests(provider: Provider, server_with_provider: HttpServer) -> None:
    before = provider.fetches
    for number in range(10):
        assert server_with_provider.get("/whoami", token=provider.token(jti=str(number))).status == 200
    assert provider.fetches - before <= 1


@pytest.mark.parametrize(
    "claims",
    [
        {"exp": 1},
        {"exp": None},
        {"aud": "other"},
        {"aud": None},
        {"iss": "http://127.0.0.1:1"},
        {"sub": None},
        {"sub": " "},
        {"sub": "omnigraph:system"},
        {"omnigraph_permission": "root"},
        {"nbf": 32503680000},
    ],
)
def test_a_token_that_cannot_be_trusted_is_401(
    provider: Provider, server_with_provider: HttpServer, claims: dict[str, Any]
) -> None:
    assert server_with_provider.get("/whoami", token=provider.token(**claims)).status == 401


def test_forged_tokens_are_401(provider: Provider, server_with_provider: HttpServer) -> None:
    stranger = rsa.generate_private_key(65537, 2048)
    payload = {"iss": provider.issuer, "aud": AUDIENCE, "sub": "eve", "exp": int(time.time()) + 600}
    forged = [
        jwt.encode(payload, stranger, "RS256", headers={"kid": "k1"}),
        jwt.encode(payload, stranger, "RS256", headers={"kid": "unknown"}),
        jwt.encode(payload, None, "none", headers={"kid": "k1"}),  # type: ignore[arg-type]
        jwt.encode(payload, "a shared secret of enough bytes!", "HS256", headers={"kid": "k1"}),
        "a.b.c",
        "..",
    ]
    for token in forged:
        assert server_with_provider.get("/whoami", token=token).status == 401
    log = server_with_provider.log.read_text()
    assert not any(token in log for token in forged[:4])


def test_a_provider_without_tls_is_refused(tmp_path: Path) -> None:
    from omnigraph.errors import ConfigError
    from omnigraph.server.access.oidc import OidcSettings, make_verifier

    with pytest.raises(ConfigError, match="https"):
        make_verifier(OidcSettings("http://provider.example", AUDIENCE))


@pytest.fixture(scope="module")
def rotating_provider() -> Iterator[Provider]:
    """A provider whose keys the tests change; they leave one valid key, `k1`."""
    with running_provider() as running:
        yield running


@pytest.fixture(scope="module")
def eager_server(rotating_provider: Provider, tmp_path_factory: pytest.TempPathFactory) -> Iterator[HttpServer]:
    """A server that reads the keys again for every request."""
    folder = tmp_path_factory.mktemp("eager")
    uri = make_graph(folder / "graph")
    arguments = (uri, "--oidc-issuer", rotating_provider.issuer, "--oidc-audience", AUDIENCE, "--oidc-refresh", "0")
    with serving(folder, *arguments) as server:
        yield server


def status_of(server: HttpServer, token: str) -> int:
    return server.get("/whoami", token=token).status


def test_a_key_that_left_the_document_is_no_longer_trusted(
    rotating_provider: Provider, eager_server: HttpServer
) -> None:
    first_key, first_token = rotating_provider.keys["k1"], rotating_provider.token()
    assert status_of(eager_server, first_token) == 200
    rotating_provider.keys = {"k2": rsa.generate_private_key(65537, 2048)}
    assert status_of(eager_server, rotating_provider.token("k2")) == 200, "an unknown key id is looked up"
    assert status_of(eager_server, first_token) == 401, "the lookup dropped the other key and its verdicts"
    rotating_provider.keys = {"k1": first_key}
    wait_until(lambda: status_of(eager_server, first_token) == 200)


def test_a_key_is_dropped_without_a_token_of_an_unknown_key(
    rotating_provider: Provider, eager_server: HttpServer
) -> None:
    key, token = rotating_provider.keys["k1"], rotating_provider.token()
    wait_until(lambda: status_of(eager_server, token) == 200)
    rotating_provider.keys = {}
    wait_until(lambda: status_of(eager_server, token) == 401)
    rotating_provider.keys = {"k1": key}
    wait_until(lambda: status_of(eager_server, token) == 200)


def test_malformed_keys_do_not_hide_the_others(rotating_provider: Provider, eager_server: HttpServer) -> None:
    old, new = rotating_provider.keys["k1"], rsa.generate_private_key(65537, 2048)
    malformed = [None, 7, "text", ["list"], {}, {"kty": 5}, {"kty": "RSA", "n": 1, "e": []}, {"kty": "EC", "crv": {}}]
    rotating_provider.malformed_keys, rotating_provider.keys = malformed, {"k1": old, "k3": new}
    assert status_of(eager_server, rotating_provider.token("k3")) == 200
    rotating_provider.malformed_keys, rotating_provider.keys = [], {"k1": old}


@pytest.mark.parametrize("outage", [b"no JSON", b"[]", b"7", b'{"keys": {}}', b'{"jwks_uri": 7}', b"[" * 100_000])
def test_known_keys_survive_an_outage_of_the_provider(
    rotating_provider: Provider, eager_server: HttpServer, outage: bytes
) -> None:
    token = rotating_provider.token()
    wait_until(lambda: status_of(eager_server, token) == 200)
    rotating_provider.outage = outage
    assert [status_of(eager_server, token) for _ in range(5)] == [200] * 5
    unknown = jwt.encode({}, rsa.generate_private_key(65537, 2048), "RS256", headers={"kid": "unknown"})
    assert status_of(eager_server, unknown) == 401
    rotating_provider.outage = None


def test_keys_beyond_their_maximum_age_are_not_used(rotating_provider: Provider) -> None:
    from omnigraph.errors import Unauthenticated
    from omnigraph.server.access.oidc import OidcSettings, make_verifier

    settings = OidcSettings(rotating_provider.issuer, AUDIENCE, refresh_seconds=0, max_age_seconds=0)
    verifier, token = make_verifier(settings), rotating_provider.token()

    async def verify_during_outage() -> None:
        assert (await verifier.verify(token)).actor == "ann@example"
        rotating_provider.outage = b"no JSON"
        with pytest.raises(Unauthenticated):
            await verifier.verify(token)
        rotating_provider.outage = None
        assert (await verifier.verify(token)).actor == "ann@example"

    asyncio.run(verify_during_outage())


def test_a_token_with_a_deeply_nested_header_is_401(rotating_provider: Provider, eager_server: HttpServer) -> None:
    header = base64.urlsafe_b64encode(b"[" * 20_000).decode().rstrip("=")
    assert status_of(eager_server, f"{header}.e30.e30") == 401
