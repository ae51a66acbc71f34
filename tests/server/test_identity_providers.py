"""Tokens of an identity provider, beside tokens of the server."""

import json
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import rsa

from tests.rig.http_server import HttpServer, serving
from tests.server.conftest import make_graph

AUDIENCE = "omnigraph-tests"


class Provider:
    """An identity provider: it publishes keys, and signs tokens."""

    def __init__(self) -> None:
        self.keys = {"k1": rsa.generate_private_key(65537, 2048)}
        self.fetches = 0
        provider = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                body = json.dumps(provider.document(self.path)).encode()
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
        return {
            "keys": [{**json.loads(algorithm.to_jwk(key.public_key())), "kid": name} for name, key in self.keys.items()]
        }

    def token(self, key: str = "k1", **claims: Any) -> str:
        payload = {"iss": self.issuer, "aud": AUDIENCE, "sub": "ann@example", "exp": int(time.time()) + 600, **claims}
        payload = {name: value for name, value in payload.items() if value is not None}
        return jwt.encode(payload, self.keys[key], "RS256", headers={"kid": key})


@pytest.fixture(scope="module")
def provider() -> Iterator[Provider]:
    running = Provider()
    yield running
    running.http.shutdown()
    running.http.server_close()


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
