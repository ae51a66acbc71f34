"""A minimal Starlette application, with which `bench.server` compares the server.

`python -m bench.echo_app [FILE]` listens on a free port and prints it. `POST /echo` returns the request body, and
`GET /file` returns the bytes of the file.
"""

import socket
import sys
from pathlib import Path

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route


def make_app(content: bytes) -> Starlette:
    """Return the application. `content` is what `GET /file` returns."""

    async def echo(request: Request) -> Response:
        return Response(await request.body(), media_type="application/json")

    async def send_file(_: Request) -> Response:
        return Response(content, media_type="application/octet-stream")

    return Starlette(routes=[Route("/echo", echo, methods=["POST"]), Route("/file", send_file)])


def main(arguments: list[str]) -> None:
    """Serve until the process is stopped."""
    content = Path(arguments[0]).read_bytes() if arguments else b""
    listener = socket.create_server(("127.0.0.1", 0))
    print(listener.getsockname()[1], flush=True)
    config = uvicorn.Config(make_app(content), loop="uvloop", http="httptools", access_log=False, log_level="critical")
    uvicorn.Server(config).run([listener])


if __name__ == "__main__":
    main(sys.argv[1:])
