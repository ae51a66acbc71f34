"""The HTTP server in a thread of the tests, on a real socket, to which tests add graphs while it runs.

The application, the protocol and the handlers are those of `omnigraph serve`. What is missing is the supervisor with
its worker processes: a test that needs them starts `tests.rig.http_server`. A token is the name of its actor.
"""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import uvicorn

import omnigraph
from omnigraph.errors import GraphNotFound
from omnigraph.server.access.authentication import Authenticator
from omnigraph.server.access.permissions import ANONYMOUS, Principal
from omnigraph.server.access.shared_usage import SharedUsage, create_usage_file
from omnigraph.server.access.tokens import TokenTable, read_bearer_token
from omnigraph.server.app import ServerApp
from omnigraph.server.graphs import GraphRegistry, ServedGraph
from omnigraph.server.process.http_protocol import LimitedProtocol
from omnigraph.server.process.worker import assemble_state
from omnigraph.server.routes import ROUTES
from omnigraph.server.settings import GraphLocation, ServerSettings
from omnigraph.server.stored_queries import ServedQueries
from omnigraph.server.worker_state import WorkerState
from tests.rig.timeouts import PATIENCE


class _Graphs(GraphRegistry):
    """The graphs that tests added."""

    def __init__(self, settings: ServerSettings) -> None:
        super().__init__(settings)
        self.served: dict[str, ServedGraph] = {}

    def find(self, graph_id: str) -> ServedGraph:
        if graph_id not in self.served:
            raise GraphNotFound(graph=graph_id)
        return self.served[graph_id]

    def __iter__(self) -> Iterator[ServedGraph]:
        return iter(self.served.values())

    def __len__(self) -> int:
        return len(self.served)


class _Authenticator(Authenticator):
    """Accept every token as the name of an administrator, and requests without a token as anonymous."""

    async def authenticate(self, authorization: str | None) -> Principal:
        return ANONYMOUS if authorization is None else Principal(read_bearer_token(authorization), "admin")


class ThreadServer:
    """A running server: its address, and the graphs that it serves."""

    def __init__(self, folder: Path) -> None:
        self._count = 0
        self._graphs = _Graphs(ServerSettings(graphs=()))
        self._state = _make_state(self._graphs, folder)
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self._socket.getsockname()[1]}"
        self._server = uvicorn.Server(_make_config(self._state))
        self._thread = threading.Thread(target=self._server.run, args=([self._socket],), name="test-server")

    def serve(self, root: Path) -> str:
        """Serve a graph, and return its URL."""
        self._count += 1
        name = f"g{self._count}"
        opened = omnigraph.open(root, durability="os")
        self._graphs.served[name] = ServedGraph(GraphLocation(name, str(root)), opened, str(root), ServedQueries())
        return f"http://{self.address}/graphs/{name}"

    def forget(self, url: str) -> None:
        """Serve a graph no longer."""
        self._graphs.served.pop(url.rpartition("/")[2]).opened.close()

    def start(self) -> None:
        """Start accepting connections; those that come earlier wait in the socket."""
        self._thread.start()

    def stop(self) -> None:
        """Finish the running requests, and close all graphs."""
        self._state.stopping.set()
        self._server.should_exit = True
        self._thread.join(PATIENCE)
        self._state.lanes.close()
        self._socket.close()
        for served in self._graphs:
            served.opened.close()


@contextmanager
def thread_server(folder: Path) -> Iterator[ThreadServer]:
    """A server that is stopped at the end."""
    server = ThreadServer(folder)
    server.start()
    try:
        yield server
    finally:
        server.stop()


def _make_state(graphs: GraphRegistry, folder: Path) -> WorkerState:
    settings = ServerSettings(graphs=(), runtime_directory=str(folder))
    usage = SharedUsage(create_usage_file(1), 0)
    return assemble_state(settings, usage, graphs, _Authenticator(TokenTable()))


def _make_config(state: WorkerState) -> uvicorn.Config:
    return uvicorn.Config(
        ServerApp(state, ROUTES),
        loop="uvloop",
        http=LimitedProtocol,
        lifespan="off",
        ws="none",
        access_log=False,
        log_config=None,
        log_level="critical",
        timeout_graceful_shutdown=1,
    )
