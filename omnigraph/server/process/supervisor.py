"""The supervisor, which owns the listening socket and starts and replaces workers.

A worker that dies is replaced immediately. On SIGHUP, workers are replaced one at a time, each after its successor is
ready, so that new tokens, certificates and stored queries take effect. On SIGTERM or SIGINT, workers finish their
requests and the supervisor exits with code 0. A second signal stops all processes immediately.
"""

import os
import selectors
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

import msgspec

from omnigraph.errors import ConfigError
from omnigraph.server.access.shared_usage import clear_worker_row, create_usage_file
from omnigraph.server.job_records import fail_jobs_of_dead_worker, jobs_folder
from omnigraph.server.locations import name_graphs
from omnigraph.server.log_output import LOGGER
from omnigraph.server.settings import ServerSettings
from omnigraph.values import clock_and_ids

from .control_channel import split_messages
from .listener import announce_listener

_TICK_SECONDS = 1.0
_SILENCE_SECONDS = 60.0  # a call that holds the interpreter lock can delay a worker's heartbeats
_READY_SECONDS = 120.0
_MIN_BACKOFF_SECONDS = 0.5
_MAX_BACKOFF_SECONDS = 30.0
_EXTRA_GRACE_SECONDS = 5.0
_METRICS_VARIABLE = "PROMETHEUS_MULTIPROC_DIR"  # where the metrics of all workers are collected
_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGCHLD)


@dataclass(slots=True, eq=False)
class WorkerProcess:
    """A worker process and its state in the supervisor."""

    process: "subprocess.Popen[bytes]"
    channel: socket.socket
    index: int
    started_at: float
    last_heard: float
    is_ready: bool = False
    failure: str | None = None
    stop_deadline: float | None = None
    replaces: "WorkerProcess | None" = None
    buffer: bytes = b""


@dataclass(slots=True)
class _Requests:
    """The actions that signals have requested."""

    stop_count: int = 0
    wants_reload: bool = False


class Supervisor:
    """Starts and replaces the workers of one server."""

    def __init__(self, settings: ServerSettings, listener: socket.socket) -> None:
        self._settings, self._listener = settings, listener
        # During a reload, a worker and its successor run at the same time, so each needs its own row.
        self._row_count = settings.workers * 2
        self._usage_fd = create_usage_file(self._row_count)
        self._workers: list[WorkerProcess] = []
        self._to_replace: list[WorkerProcess] = []
        self._selector = selectors.DefaultSelector()
        self._requests = _Requests()
        self._backoff = 0.0
        self._next_start = 0.0
        self._has_announced = False

    def run(self) -> int:
        """Run until the server is stopped; return the exit code. Raises `ConfigError` if no worker can start."""
        with tempfile.TemporaryDirectory(prefix="omnigraph-server-") as runtime_directory, self._handle_signals():
            self._settings = msgspec.structs.replace(self._settings, runtime_directory=runtime_directory)
            os.environ[_METRICS_VARIABLE] = runtime_directory
            try:
                for _ in range(self._settings.workers):
                    self._start_worker()
                self._run_loop()
            finally:
                self._kill_all()
                os.environ.pop(_METRICS_VARIABLE, None)
        return 0

    # The loop -----------------------------------------------------------------------------------

    def _run_loop(self) -> None:
        while self._workers or not self._requests.stop_count:
            self._read_messages()
            self._reap_workers()
            if self._requests.stop_count:
                self._stop_all()
            else:
                self._replace_workers()
                self._fill_up()
            self._end_overdue()

    def _read_messages(self) -> None:
        """Wait for a message from a worker, the end of a worker, or a signal."""
        for key, _ in self._selector.select(_TICK_SECONDS):
            worker = key.data
            if worker is None:
                self._wakeup_reader.recv(4096)
                continue
            try:
                data = worker.channel.recv(65536)
            except OSError:
                data = b""
            if not data:
                self._selector.unregister(worker.channel)
                continue
            self._take_messages(worker, data)

    def _take_messages(self, worker: WorkerProcess, data: bytes) -> None:
        messages, worker.buffer = split_messages(worker.buffer + data)
        worker.last_heard = clock_and_ids.monotonic()
        for message in messages:
            if message.kind == "ready":
                worker.is_ready, self._backoff = True, 0.0
                self._announce_when_ready()
            elif message.kind == "failed":
                worker.failure = message.reason

    def _announce_when_ready(self) -> None:
        if not self._has_announced and all(worker.is_ready for worker in self._workers):
            self._has_announced = True
            announce_listener(self._listener)

    def _reap_workers(self) -> None:
        for worker in [worker for worker in self._workers if worker.process.poll() is not None]:
            self._workers.remove(worker)
            self._forget_worker(worker)
            if not self._has_announced and not self._requests.stop_count:
                reason = worker.failure or f"a worker exited with code {worker.process.returncode} during startup"
                raise ConfigError(reason=reason)
            if not worker.is_ready:
                self._delay_next_start(was_killed=worker.process.returncode < 0)
            self._log_end(worker)

    def _log_end(self, worker: WorkerProcess) -> None:
        """Log a warning if the worker exited unexpectedly."""
        if worker.stop_deadline is None and self._has_announced:
            delay = 0.0 if worker.is_ready else self._backoff
            reason = name_graphs(worker.failure or "", self._settings.graphs) or None
            facts = {"worker": worker.process.pid, "code": worker.process.returncode, "reason": reason}
            facts["restart_delay"] = delay
            LOGGER.warning("a worker exited unexpectedly and is being replaced", extra={"facts": facts})

    def _forget_worker(self, worker: WorkerProcess) -> None:
        if worker.channel in self._selector.get_map():
            self._selector.unregister(worker.channel)
        worker.channel.close()
        clear_worker_row(self._usage_fd, worker.index)
        runtime_directory = self._settings.runtime_directory or ""
        for gauge_file in Path(runtime_directory).glob(f"gauge_live*_{worker.process.pid}.db"):
            gauge_file.unlink()  # live gauges must not outlive the worker
        fail_jobs_of_dead_worker(jobs_folder(runtime_directory), worker.process.pid)
        if worker in self._to_replace:
            self._to_replace.remove(worker)
        for successor in self._workers:
            if successor.replaces is worker:
                successor.replaces = None  # there is no worker left to stop once the successor is ready

    def _delay_next_start(self, *, was_killed: bool) -> None:
        """Wait longer after each worker that fails to start, so that a broken store is not accessed in a loop.

        A worker that was killed by a signal does not increase the delay. If it did, a few kills in a row would leave
        the server without workers for a long time.
        """
        backoff = self._backoff if was_killed else self._backoff * 2
        self._backoff = min(max(backoff, _MIN_BACKOFF_SECONDS), _MAX_BACKOFF_SECONDS)
        self._next_start = clock_and_ids.monotonic() + self._backoff

    # Starting and replacing -----------------------------------------------------------------------

    def _fill_up(self) -> None:
        """Start workers to replace those that died."""
        running = [worker for worker in self._workers if worker.stop_deadline is None and worker.replaces is None]
        if clock_and_ids.monotonic() >= self._next_start:
            for _ in range(self._settings.workers - len(running)):
                self._start_worker()

    def _replace_workers(self) -> None:
        """Continue a reload: start the successor of one worker, and stop the worker when its successor is ready."""
        if self._requests.wants_reload:
            self._requests.wants_reload = False
            self._to_replace = [worker for worker in self._workers if worker.stop_deadline is None]
        for successor in [worker for worker in self._workers if worker.replaces is not None and worker.is_ready]:
            replaced, successor.replaces = successor.replaces, None
            if replaced is not None:
                self._stop_worker(replaced)
        is_busy = any(worker.replaces is not None or worker.stop_deadline is not None for worker in self._workers)
        # A worker stays in the list until its successor is ready, so that a successor that cannot start is retried.
        if self._to_replace and not is_busy and clock_and_ids.monotonic() >= self._next_start:
            self._start_worker(replaces=self._to_replace[0])

    def _start_worker(self, replaces: WorkerProcess | None = None) -> None:
        own_end, worker_end = socket.socketpair()
        index = self._free_row()
        inherited = (worker_end.fileno(), self._listener.fileno(), self._usage_fd)
        command = [sys.executable, "-m", "omnigraph.server.process.worker", *map(str, inherited), str(index)]
        process = subprocess.Popen(command, stdin=subprocess.PIPE, pass_fds=inherited)  # noqa: S603 - our own program
        worker_end.close()
        assert process.stdin is not None  # noqa: S101 - it is a pipe
        with suppress(BrokenPipeError):  # a worker that is already dead is reaped like any other
            process.stdin.write(msgspec.json.encode(self._settings))
            process.stdin.close()
        now = clock_and_ids.monotonic()
        worker = WorkerProcess(process, own_end, index, now, now, replaces=replaces)
        self._workers.append(worker)
        self._selector.register(own_end, selectors.EVENT_READ, worker)

    def _free_row(self) -> int:
        taken = {worker.index for worker in self._workers}
        return next(index for index in range(self._row_count) if index not in taken)

    # Stopping -------------------------------------------------------------------------------------

    def _stop_all(self) -> None:
        if self._requests.stop_count > 1:
            self._kill_all()
        for worker in self._workers:
            if worker.stop_deadline is None:
                self._stop_worker(worker)

    def _stop_worker(self, worker: WorkerProcess) -> None:
        if worker in self._to_replace:
            self._to_replace.remove(worker)
        grace = self._settings.shutdown_grace + _EXTRA_GRACE_SECONDS
        worker.stop_deadline = clock_and_ids.monotonic() + grace
        worker.process.terminate()

    def _end_overdue(self) -> None:
        """Kill workers that do not stop or become ready in time, or whose event loop no longer runs."""
        now = clock_and_ids.monotonic()
        for worker in self._workers:
            if _deadline_of(worker) <= now:
                worker.process.kill()

    def _kill_all(self) -> None:
        for worker in self._workers:
            worker.process.kill()
        for worker in self._workers:
            worker.process.wait()
            self._forget_worker(worker)
        self._workers = []

    # Signals --------------------------------------------------------------------------------------

    @contextmanager
    def _handle_signals(self) -> Iterator[None]:
        """Record signals and wake the loop, and restore the previous handlers at the end."""
        self._wakeup_reader, wakeup_writer = socket.socketpair()
        wakeup_writer.setblocking(False)
        self._selector.register(self._wakeup_reader, selectors.EVENT_READ, None)
        previous_fd = signal.set_wakeup_fd(wakeup_writer.fileno())
        previous = {number: signal.signal(number, self._note_signal) for number in _SIGNALS}
        try:
            yield
        finally:
            signal.set_wakeup_fd(previous_fd)
            for number, handler in previous.items():
                signal.signal(number, handler)
            self._selector.close()
            self._wakeup_reader.close()
            wakeup_writer.close()

    def _note_signal(self, number: int, _: FrameType | None) -> None:
        if number == signal.SIGHUP:
            self._requests.wants_reload = True
        elif number != signal.SIGCHLD:  # SIGCHLD only wakes the loop, which then reaps the worker
            self._requests.stop_count += 1


def _deadline_of(worker: WorkerProcess) -> float:
    """Return the time at which a worker is killed unless it has stopped, become ready or sent a heartbeat by then."""
    if worker.stop_deadline is not None:
        return worker.stop_deadline
    return worker.last_heard + _SILENCE_SECONDS if worker.is_ready else worker.started_at + _READY_SECONDS
