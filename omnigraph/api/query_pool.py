"""`graph.pool()`: processes that run queries in parallel.

Python runs one thread at a time, so several threads do not run more queries per second than one thread. Each process
in a pool opens the graph and runs queries on the newest commit, or on the commit that the graph is pinned to. This
module starts, replaces and stops the processes, which run `pool_worker`.
"""

import mmap
import os
import socket
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from itertools import islice
from multiprocessing.connection import Connection
from multiprocessing.reduction import ForkingPickler, recv_handle
from pathlib import Path
from typing import Any, Self

import pyarrow as pa

from omnigraph.api.builders.prepared_queries import QuerySource
from omnigraph.api.error_boundary import Guarded
from omnigraph.api.handle import Handle
from omnigraph.api.log_events import LOGGER
from omnigraph.api.pool_worker import read_stream
from omnigraph.api.queries import Params, combine_arguments
from omnigraph.api.results.result import Result
from omnigraph.errors import InputError, QueryProcessDied, UsageError
from omnigraph.history.revisions import Revision
from omnigraph.storage.store import Store

DEFAULT_PROCESSES = 2
_MAX_PROCESSES = 256
_STOP_SECONDS = 5.0  # a process that has not ended after this time is killed


@dataclass(slots=True, eq=False)
class _PoolWorker:
    """A process and the connection to it. `is_ready` is set once the process has opened the graph."""

    process: subprocess.Popen[bytes]
    connection: Connection
    is_ready: bool = False

    def ask(self, request: Any) -> tuple[dict[str, Any], Any] | Exception:
        """Send a pickled request and return the reply: the result's metadata and content, or the query's error."""
        if not self.is_ready:
            opening_error: Exception | None = self.connection.recv()
            if opening_error is not None:
                return opening_error
            self.is_ready = True
        self.connection.send_bytes(request)
        reply = self.connection.recv()
        if isinstance(reply, Exception):
            return reply
        facts, content = reply
        return facts, _map_file(recv_handle(self.connection)) if content is None else content

    def stop(self, *, kill: bool = False) -> int:
        """Stop the process and return its exit code."""
        self.connection.close()
        if kill:
            self.process.kill()
        try:
            return self.process.wait(_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self.process.kill()
            return self.process.wait()


class QueryPool(Guarded):
    """Processes that run queries on a graph in parallel. See `Graph.pool`.

    A pool is thread-safe: as many queries run at the same time as there are processes, and further queries wait.
    """

    def __init__(self, handle: Handle, processes: int) -> None:
        self._handle = handle
        self._is_free = threading.Condition()
        self._is_closed = False
        self._busy: set[_PoolWorker] = set()
        self._idle: deque[_PoolWorker | None] = deque()  # None stands for a process that could not be started
        self._size = processes
        try:
            for _ in range(processes):
                self._idle.append(_start_worker(handle))
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        state = "closed" if self._is_closed else f"{self._size} processes"
        return f"<QueryPool of {self._handle.uri}: {state}>"

    def _guarded_store(self) -> Store:
        return self._handle.store

    @property
    def process_ids(self) -> tuple[int, ...]:
        """The ids of the processes."""
        with self._is_free:
            return tuple(sorted(worker.process.pid for worker in (*self._idle, *self._busy) if worker is not None))

    def query(  # noqa: PLR0913 - all but the first are keywords
        self,
        source: QuerySource,
        /,
        *,
        name: str | None = None,
        params: Params = None,
        branch: str | None = None,
        at: Revision | None = None,
        timeout: float | None = None,
        assume_utc: bool = False,
        **values: Any,
    ) -> Result:
        """Run a query in one of the processes, with the arguments and errors of `Graph.query`.

        If the process exits before returning a result, raise `QueryProcessDied` and start another process.
        """
        arguments = combine_arguments(params, values)
        options = {"name": name, "branch": branch, "at": at, "timeout": timeout, "assume_utc": assume_utc}
        facts, content = self._ask(_with_absolute_path(source), {**options, "params": arguments})
        return read_stream(content, facts, dict(arguments))

    def map(
        self, source: QuerySource, params: Iterable[Mapping[str, Any]], /, *, name: str | None = None, **options: Any
    ) -> Iterator[Result]:
        """Run one query for each set of parameters, and yield the results in the order of the parameters.

        Further queries are sent only as results are read, so that at most two queries per process are pending at any
        time. `options` are the same as for `query`.
        """
        ask, parameters = partial(self.query, source, name=name, **options), iter(params)
        with ThreadPoolExecutor(self._size, "omnigraph-pool") as threads:
            pending = deque(threads.submit(ask, params=each) for each in islice(parameters, self._size * 2))
            while pending:
                result = pending.popleft().result()
                pending.extend(threads.submit(ask, params=each) for each in islice(parameters, 1))
                yield result

    def close(self) -> None:
        """End all processes. Running queries raise `QueryProcessDied`."""
        with self._is_free:
            self._is_closed = True
            workers = [*self._idle, *self._busy]
            self._idle.clear()
            self._is_free.notify_all()
        for worker in workers:
            if worker is not None:
                worker.stop(kill=worker in self._busy)

    def _ask(self, source: Any, options: dict[str, Any]) -> tuple[dict[str, Any], Any]:
        request = ForkingPickler.dumps((source, options))  # raises any pickling error before a process is chosen
        worker = self._take_worker()
        try:
            reply = worker.ask(request)
        except (EOFError, OSError) as error:
            raise QueryProcessDied(process_exit_code=self._replace(worker)) from error
        except BaseException:
            self._replace(worker)  # otherwise, the process would return this result for the next request
            raise
        if worker.is_ready:
            self._put_back(worker)
        else:
            self._replace(worker)
        if isinstance(reply, Exception):
            raise reply
        return reply

    def _take_worker(self) -> _PoolWorker:
        with self._is_free:
            while not self._idle and not self._is_closed:
                self._is_free.wait()
            if self._is_closed:
                raise UsageError(reason="this query pool is closed", hint="open a new pool with `graph.pool()`")
            try:
                worker = self._running_worker(self._idle.popleft())
            except BaseException:
                self._idle.append(None)
                self._is_free.notify()
                raise
            self._busy.add(worker)
            return worker

    def _running_worker(self, worker: _PoolWorker | None) -> _PoolWorker:
        """Return the given process, or a new process if none is given or the given one has exited."""
        if worker is not None and worker.process.poll() is None:
            return worker
        if worker is not None:
            LOGGER.warning("an idle query pool process exited with code %d", worker.process.returncode)
            worker.connection.close()
        try:
            return _start_worker(self._handle)
        except OSError as error:
            hint = f"another process cannot be started: {error}"
            raise QueryProcessDied(process_exit_code=worker and worker.process.returncode, hint=hint) from error

    def _put_back(self, worker: _PoolWorker) -> None:
        with self._is_free:
            self._busy.discard(worker)
            if not self._is_closed:
                self._idle.append(worker)
                self._is_free.notify()

    def _replace(self, worker: _PoolWorker) -> int:
        """Replace a process that has died or was interrupted, and return the exit code of the replaced process.

        If no other process can be started, a later query tries again.
        """
        exit_code = worker.stop(kill=True)
        with self._is_free:
            self._busy.discard(worker)
            if not self._is_closed:
                replacement = None
                try:
                    replacement = _start_worker(self._handle)
                except OSError as error:
                    LOGGER.warning("a query pool process cannot be started: %s", error)
                finally:
                    self._idle.append(replacement)
                    self._is_free.notify()
        return exit_code


def pool(handle: Handle, processes: int = DEFAULT_PROCESSES) -> QueryPool:
    """Start processes that run queries on this graph in parallel, for programs that mostly read.

    Several threads in one process do not run more queries per second than one thread, because Python runs one thread at
    a time. If queries take a few milliseconds, two processes on two cores can run more of them per second than one
    process. If queries take less than one millisecond, `query` itself is faster than a pool, because sending a query to
    a process and getting its result back takes about 0.4 ms. Each process opens the graph and has its own caches.
    Queries in a pool see the same commits as `query` on this graph, but later writes do not check whether the data that
    these queries read has changed. Close the pool, or use it as a context manager.

    >>> from omnigraph import testing
    >>> with testing.graph("node Person { name: String @key  age: I32? }") as graph:
    ...     _ = graph.insert("Person", {"name": "ada", "age": 36}, {"name": "bob", "age": 25})
    ...     with graph.pool(processes=1) as pool:
    ...         text = "query older($than: I32) { match { $p: Person  $p.age > $than } return { $p.name } }"
    ...         [result.scalars() for result in pool.map(text, [{"than": 20}, {"than": 30}])]
    [['ada', 'bob'], ['ada']]
    """
    handle.require_open()
    if not 1 <= processes <= _MAX_PROCESSES:
        raise InputError(f"a pool cannot have {processes} processes", reason=f"expected 1 to {_MAX_PROCESSES}")
    return QueryPool(handle, processes)


def _start_worker(handle: Handle) -> _PoolWorker:
    """Start a process without waiting for it to open the graph.

    The process imports only this package, never the program's main module, so programs need no `__main__` guard.
    """
    ours, theirs = socket.socketpair()
    connection = Connection(ours.detach())
    try:
        with theirs:
            process = subprocess.Popen(  # noqa: S603 - the command contains no input
                [sys.executable, "-m", "omnigraph.api.pool_worker", str(theirs.fileno())],
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                env={**os.environ, "PYTHONPATH": os.pathsep.join(path or os.curdir for path in sys.path)},
            )
    except BaseException:
        connection.close()
        raise
    worker = _PoolWorker(process, connection)
    try:
        connection.send(handle.reader_arguments())
    except BaseException:
        worker.stop(kill=True)
        raise
    return worker


def _with_absolute_path(source: QuerySource) -> QuerySource:
    """Return a source that has the same meaning in a process with another working directory."""
    return Path(source).absolute() if isinstance(source, os.PathLike) else source


def _map_file(descriptor: int) -> pa.Buffer:
    """Map an in-memory file that a process has sent, so that its rows are read without being copied."""
    try:
        return pa.py_buffer(mmap.mmap(descriptor, 0, access=mmap.ACCESS_READ))
    finally:
        os.close(descriptor)
