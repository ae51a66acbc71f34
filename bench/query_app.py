"""The smallest application that answers a query over HTTP, with which `bench.server` compares the server.

`python -m bench.query_app GRAPH` listens on a free port and prints it. `POST /graphs/default/query` checks a bearer
token if there is one, decodes the body, runs the query in a thread with a handle of its own, and encodes the rows. It
has no limits, conditions, metrics or logs, so the difference is what those cost.
"""

import asyncio
import hashlib
import hmac
import secrets
import socket
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import msgspec
import orjson
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

import omnigraph

THREADS = 8
TOKEN_HASHES = [hashlib.sha256(f"token-{number}".encode()).digest() for number in range(20)]


class QueryBody(msgspec.Struct):
    """The body of a query request."""

    query: str
    name: str | None = None
    params: dict[str, Any] | None = None


def is_allowed(authorization: str) -> bool:
    """Compare a token with all known ones. A request without a token is allowed."""
    token_hash = hashlib.sha256(authorization.removeprefix("Bearer ").encode()).digest()
    matches = [hmac.compare_digest(token_hash, known_hash) for known_hash in TOKEN_HASHES]
    return not authorization or any(matches)


def run_query(graph: omnigraph.Graph, body: QueryBody) -> bytes:
    """Return the response to a query."""
    result = graph.acting(None).query(body.query, name=body.name, params=body.params)
    document = {
        "query_name": result.query_name,
        "row_count": result.num_rows,
        "columns": list(result.columns),
        "rows": [dict(zip(result.columns, record, strict=True)) for record in result.to_records()],
        "graph_commit_id": result.commit_id,
    }
    return orjson.dumps(document)


def make_app(root: str) -> Starlette:
    """Return the application for one graph."""
    graph, pool, decoder = omnigraph.open(root), ThreadPoolExecutor(THREADS), msgspec.json.Decoder(QueryBody)

    async def query(request: Request) -> Response:
        if not is_allowed(request.headers.get("authorization", "")):
            return Response(status_code=401)
        body = decoder.decode(await request.body())
        content = await asyncio.get_running_loop().run_in_executor(pool, run_query, graph, body)
        headers = {"Omnigraph-Request-Id": secrets.token_hex(8)}
        return Response(content, media_type="application/json", headers=headers)

    return Starlette(routes=[Route("/graphs/default/query", query, methods=["POST"])])


def main(root: str) -> None:
    """Serve until the process is stopped."""
    listener = socket.create_server(("127.0.0.1", 0))
    print(listener.getsockname()[1], flush=True)
    config = uvicorn.Config(make_app(root), loop="uvloop", http="httptools", access_log=False, log_level="critical")
    uvicorn.Server(config).run([listener])


if __name__ == "__main__":
    main(sys.argv[1])
