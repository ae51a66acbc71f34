"""A worker process of a query pool: `python -m omnigraph.api.pool_worker DESCRIPTOR`.

A worker opens the graph, handles one request at a time, and exits when its connection is closed, so no worker outlives
the program that started it. A large result is written to an anonymous in-memory file, whose descriptor is sent to the
pool, so that the rows are not copied. A worker never writes to the graph.
"""

import os
import pickle
import signal
import sys
import tempfile
from multiprocessing.connection import Connection
from multiprocessing.reduction import send_handle
from typing import Any

import pyarrow as pa

from omnigraph.api.results.result import Result
from omnigraph.errors import InternalError

_MAX_INLINE_BYTES = 256 << 10  # larger results are sent as in-memory files


def main(descriptor: int) -> None:
    """Handle requests until the connection is closed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the program that owns the pool decides when to stop
    with Connection(descriptor) as connection:
        try:
            graph = _open_graph(connection)
            while True:
                source, options = connection.recv()
                _answer(connection, graph, source, options)
        except (EOFError, BrokenPipeError, ConnectionResetError):
            return  # the pool has been closed


def _open_graph(connection: Connection) -> Any:
    """Open the graph that the first message describes, and report the outcome."""
    from omnigraph.api.graph import Graph
    from omnigraph.api.handle import reopen_handle

    try:
        graph = Graph(reopen_handle(*connection.recv()))
    except Exception as error:
        _send_error(connection, error)
        raise EOFError from error
    connection.send(None)
    return graph


def _send_error(connection: Connection, error: Exception) -> None:
    try:
        connection.send(error)
    except (TypeError, AttributeError, pickle.PicklingError):
        connection.send(InternalError(reason=f"{type(error).__name__}: {error}"))


def _answer(connection: Connection, graph: Any, source: Any, options: dict[str, Any]) -> None:
    try:
        result = graph.query(source, **options)
        table = result.table
    except Exception as error:
        _send_error(connection, error)
        return
    facts = {name: getattr(result, name) for name in RESULT_FACTS}
    if table.nbytes <= _MAX_INLINE_BYTES:
        sink = pa.BufferOutputStream()
        _write_stream(sink, table)
        connection.send((facts, sink.getvalue().to_pybytes()))
        return
    with _open_memory_file() as file:
        _write_stream(file, table)
        file.flush()
        connection.send((facts, None))
        send_handle(connection, file.fileno(), os.getppid())


RESULT_FACTS = ("query_name", "target", "commit_id", "elapsed", "stats", "warnings", "diagnostics")


def _write_stream(sink: Any, table: pa.Table) -> None:
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)


def _open_memory_file() -> Any:
    if hasattr(os, "memfd_create"):
        return os.fdopen(os.memfd_create("omnigraph-result"), "wb")
    return tempfile.TemporaryFile()


def read_stream(content: Any, facts: dict[str, Any], params: dict[str, Any]) -> Result:
    """Return the result that a worker has sent."""
    with pa.ipc.open_stream(content) as reader:
        return Result(reader.read_all(), params=params, **facts)


if __name__ == "__main__":
    main(int(sys.argv[1]))
