"""Encode the rows of a query as NDJSON, Arrow IPC or CSV, one batch at a time."""

from collections.abc import Generator, Iterator, Mapping

import pyarrow as pa

from omnigraph.errors import NotAcceptable
from omnigraph.server import engine_access
from omnigraph.server.route_model import ARROW

from .media_types import accept_parameter

_CODECS = ("lz4", "zstd")
_MAX_BATCH_ROWS = 16_384


def arrow_codec(headers: Mapping[str, str]) -> str | None:
    """Return the compression that the client requests for Arrow batches: `lz4`, `zstd` or None."""
    codec = accept_parameter(headers.get("accept"), ARROW, "codec")
    if codec in (None, "", "none", "uncompressed"):
        return None
    if codec not in _CODECS:
        raise NotAcceptable(media_types=", ".join(f"{ARROW}; codec={name}" for name in _CODECS))
    return codec


class _ChunkSink:
    """A file object that Arrow writes to, and from which `take` returns the bytes written since the last call."""

    closed = False

    def __init__(self) -> None:
        self._parts: list[bytes] = []

    def write(self, data: bytes) -> int:
        self._parts.append(bytes(data))
        return len(data)

    def flush(self) -> None:
        return

    def writable(self) -> bool:
        return True

    def readable(self) -> bool:
        return False

    def seekable(self) -> bool:
        return False

    def close(self) -> None:
        return

    def take(self) -> bytes:
        parts, self._parts = self._parts, []
        return b"".join(parts)


def arrow_chunks(
    schema: pa.Schema, batches: Iterator[pa.RecordBatch], codec: str | None
) -> Generator[bytes, None, None]:
    """Yield an Arrow IPC stream: the schema, then one message per batch."""
    sink = _ChunkSink()
    options = pa.ipc.IpcWriteOptions(compression=codec)
    with pa.ipc.new_stream(pa.PythonFile(sink, mode="w"), schema, options=options) as writer:
        for batch in batches:
            for start in range(0, batch.num_rows, _MAX_BATCH_ROWS):
                writer.write_batch(batch.slice(start, _MAX_BATCH_ROWS))
                yield sink.take()
    yield sink.take()


def ndjson_chunks(batches: Iterator[pa.RecordBatch], *, integers_as_text: bool = False) -> Generator[bytes, None, None]:
    """Yield the rows as JSON objects, one per line."""
    for batch in batches:
        if batch.num_rows:
            yield engine_access.encode_row_lines(batch, integers_as_text=integers_as_text)


def csv_chunks(schema: pa.Schema, batches: Iterator[pa.RecordBatch]) -> Generator[bytes, None, None]:
    """Yield the rows as CSV with a header line. Lists and entities are encoded as JSON."""
    from omnigraph.api.results.formats import PrintableResult, render

    header = render(PrintableResult(schema.empty_table(), "query"), "csv")
    yield "".join(f"{line}\r\n" for line in header).encode()
    for batch in batches:
        lines = list(render(PrintableResult(pa.Table.from_batches([batch]), "query"), "csv"))[1:]
        if lines:
            yield "".join(f"{line}\r\n" for line in lines).encode()
