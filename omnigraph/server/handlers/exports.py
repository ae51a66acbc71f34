"""Export a branch or a revision as a stream of NDJSON."""

from collections.abc import Iterator

from omnigraph.server import engine_access
from omnigraph.server.call import ServerCall
from omnigraph.server.models.requests import ExportRequest
from omnigraph.server.route_model import NDJSON
from omnigraph.server.wire.answer import StreamAnswer
from omnigraph.values.table_key import TableKey

from .reads import SNAPSHOT_HEADER

NDJSON_UTF8 = f"{NDJSON}; charset=utf-8"


def export(call: ServerCall) -> StreamAnswer:
    """Export a branch or a revision."""
    body = call.body_as(ExportRequest)
    graph = call.graph_for_read(body.branch, body.snapshot)
    pinned = graph.revisions.pin()
    type_names = [*body.type_names, *(TableKey(key).type_name for key in body.table_keys or ())]
    parts = engine_access.export_parts(pinned, type_names or None, iso_dates=body.iso_dates, since=body.since)
    return StreamAnswer(ExportChunks(call, parts), NDJSON_UTF8, headers={SNAPSHOT_HEADER: pinned.head.id})


class ExportChunks(Iterator[bytes]):
    """Joins small parts into chunks, and occupies an export slot of the graph until it is closed."""

    def __init__(self, call: ServerCall, parts: Iterator[bytes]) -> None:
        self._admission, self._graph_id = call.state.admission, call.graph.graph_id
        self._parts, self._chunk_bytes = parts, call.state.settings.limits.stream_bytes
        self._admission.open_export(self._graph_id)
        self._holds_slot = True

    def __next__(self) -> bytes:
        parts, size = [], 0
        for part in self._parts:
            parts.append(part)
            size += len(part)
            if size >= self._chunk_bytes:
                break
        if not parts:
            raise StopIteration
        return b"".join(parts)

    def close(self) -> None:
        """Close the export and release its slot."""
        close = getattr(self._parts, "close", None)
        try:
            if close is not None:
                close()
        finally:
            if self._holds_slot:
                self._holds_slot = False
                self._admission.close_export(self._graph_id)
