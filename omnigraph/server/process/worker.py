"""A worker process: `python -m omnigraph.server.process.worker`, started by the supervisor.

The worker opens its graphs, serves requests on the inherited socket, and reports to the supervisor. On SIGTERM, it
finishes running requests and maintenance jobs, and exits with code 0.
"""

import asyncio
import contextlib
import math
import os
import signal
import socket
import sys
import tempfile
import threading
from collections.abc import Callable, Generator, Sequence
from types import FrameType
from typing import TYPE_CHECKING

import msgspec
import uvicorn

from omnigraph.errors import ConfigError, OmnigraphError
from omnigraph.server.access.admission import Admission
from omnigraph.server.access.authentication import Authenticator, load_authenticator
from omnigraph.server.access.shared_usage import SharedUsage
from omnigraph.server.app import ServerApp
from omnigraph.server.graphs import GraphRegistry
from omnigraph.server.job_records import jobs_folder
from omnigraph.server.jobs import JobStore
from omnigraph.server.lanes import Lanes
from omnigraph.server.log_output import configure_logging
from omnigraph.server.metrics import ServerMetrics
from omnigraph.server.routes import ROUTES
from omnigraph.server.settings import ServerSettings
from omnigraph.server.worker_state import WorkerState
from omnigraph.values import clock_and_ids

from .control_channel import WorkerMessage, send_message
from .http_protocol import LimitedProtocol
from .tls import make_tls_context

if TYPE_CHECKING:
    from omnigraph.server.tracing import RequestTracer

STARTUP_FAILED = 3  # exit code of a worker that could not start
_QUERY_MEMORY_VARIABLE = "OMNIGRAPH_QUERY_MEMORY"
_HEARTBEAT_TICKS = 20  # uvicorn ticks ten times per second
_DRAIN_SECONDS = 0.5
_REOPEN_SECONDS = 5.0


def build_state(settings: ServerSettings, usage: SharedUsage) -> WorkerState:
    """Open the graphs and read the tokens of a worker."""
    authenticator = load_authenticator(settings, os.environ)
    graphs = GraphRegistry(settings)
    graphs.open_all()
    return assemble_state(settings, usage, graphs, authenticator)


def assemble_state(
    settings: ServerSettings, usage: SharedUsage, graphs: GraphRegistry, authenticator: Authenticator
) -> WorkerState:
    """Return the state of a worker that serves these graphs."""
    admission = Admission(usage, settings.limits)
    jobs = JobStore(jobs_folder(settings.runtime_directory or tempfile.gettempdir()))
    metrics, tracer = ServerMetrics(), _make_tracer(settings)
    lanes = Lanes(settings.lanes, metrics.observe_lane)
    return WorkerState(settings, graphs, lanes, authenticator, admission, metrics, jobs, tracer)


def _make_tracer(settings: ServerSettings) -> "RequestTracer | None":
    if not settings.tracing:
        return None
    from omnigraph.server.tracing import start_tracing

    return start_tracing()


class WorkerServer(uvicorn.Server):
    """A uvicorn server that reports to the supervisor. On a signal, it finishes its requests and exits with code 0."""

    def __init__(self, config: uvicorn.Config, state: WorkerState, channel: socket.socket) -> None:
        super().__init__(config)
        self._state, self._channel = state, channel
        self.stop_deadline = 0.0  # the time until which running requests and jobs may finish

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        """Handle SIGINT and SIGTERM with `handle_exit`. Unlike uvicorn, do not raise the signal again at the end."""
        signals = (signal.SIGINT, signal.SIGTERM)
        previous_handlers = {number: signal.signal(number, self.handle_exit) for number in signals}
        try:
            yield
        finally:
            for number, handler in previous_handlers.items():
                signal.signal(number, handler)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Begin the shutdown. Ignore the SIGINT that a terminal sends to workers, because the supervisor stops them."""
        if sig == signal.SIGTERM:
            self.should_exit = True

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start accepting connections, and report that the worker is ready."""
        await super().startup(sockets)
        if self.started:
            send_message(self._channel, WorkerMessage("ready"))

    async def on_tick(self, counter: int) -> bool:
        """Report that the event loop is running, measure this worker's memory, and retry quarantined graphs."""
        if counter % _HEARTBEAT_TICKS == 0:
            send_message(self._channel, WorkerMessage("alive"))
            self._state.metrics.observe_memory()
        if counter % int(_REOPEN_SECONDS * 10) == 0 and self._state.graphs.quarantined:
            asyncio.get_running_loop().run_in_executor(None, self._state.graphs.reopen_due)
        return await super().on_tick(counter)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Stop accepting connections, and finish running requests.

        Clients with idle connections are told that these will be closed.
        """
        self.stop_deadline = clock_and_ids.monotonic() + self._state.settings.shutdown_grace
        self._state.is_draining = True
        self._state.stopping.set()
        for server in self.servers:
            server.close()
        if self.server_state.connections:
            await asyncio.sleep(_DRAIN_SECONDS)
        await super().shutdown(sockets)


def run_worker(settings: ServerSettings, listener: socket.socket, channel: socket.socket, usage: SharedUsage) -> None:
    """Serve until the supervisor stops this worker."""
    configure_logging(settings)
    os.environ[_QUERY_MEMORY_VARIABLE] = str(settings.limits.query_memory_bytes)  # read by the engine for each query
    state = build_state(settings, usage)
    LimitedProtocol.limits = settings.limits
    config = uvicorn.Config(
        ServerApp(state, ROUTES),
        loop="uvloop",
        http=LimitedProtocol,
        lifespan="off",
        ws="none",
        access_log=False,
        log_config=None,
        log_level="critical",
        server_header=False,
        proxy_headers=settings.forwarded_allow_ips is not None,
        forwarded_allow_ips=settings.forwarded_allow_ips,
        timeout_keep_alive=int(settings.limits.keep_alive_seconds),
        timeout_graceful_shutdown=max(math.ceil(settings.shutdown_grace), 1),
        backlog=2048,
    )
    config.load()
    if settings.tls is not None:
        config.ssl = make_tls_context(settings.tls)
    server = WorkerServer(config, state, channel)
    _watch_supervisor(channel, lambda: server.handle_exit(signal.SIGTERM, None))
    server.run([listener])
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # a repeated signal must not end the jobs
    state.jobs.close(server.stop_deadline)
    state.lanes.close()
    if state.tracer is not None:
        state.tracer.close()


def _watch_supervisor(channel: socket.socket, stop: Callable[[], None]) -> None:
    """Stop the worker when the supervisor's end of the channel closes, which means that the supervisor has died."""

    def wait_for_end() -> None:
        with contextlib.suppress(OSError):
            while channel.recv(4096):
                pass
        stop()

    threading.Thread(target=wait_for_end, name="omnigraph-supervisor-watch", daemon=True).start()


def _describe_failure(error: OmnigraphError) -> str:
    """Return the text to send to the supervisor, which raises a `ConfigError` with it."""
    return error.reason or error.message if isinstance(error, ConfigError) else error.message


def main(arguments: Sequence[str]) -> int:
    """Start a worker with inherited file descriptors, and read its settings from standard input."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    channel_fd, listener_fd, usage_fd, worker_index = map(int, arguments)
    channel, listener = socket.socket(fileno=channel_fd), socket.socket(fileno=listener_fd)
    settings = msgspec.json.decode(sys.stdin.buffer.read(), type=ServerSettings)
    try:
        run_worker(settings, listener, channel, SharedUsage(usage_fd, worker_index))
    except OmnigraphError as error:
        send_message(channel, WorkerMessage("failed", _describe_failure(error)))
        return STARTUP_FAILED
    return 0


if __name__ == "__main__":
    exit_code = main(sys.argv[1:])
    sys.stdout.flush()
    # Threads of the storage engine may still be running, and waiting for them would delay the exit.
    os._exit(exit_code)
