"""A baseline of a branch on a server: all entities at one commit, and a cursor for later changes.

The entities arrive as a stream that can be read only once. An interrupted stream has no cursor. Both the Python client
and the command line use this module, so it imports neither Arrow nor the schema language.
"""

import json
from collections.abc import Iterator, Mapping
from os import PathLike
from pathlib import Path
from typing import Any

from omnigraph.api.change_feed.capture_lock import hold_capture_lock
from omnigraph.api.output_files import write_lines
from omnigraph.errors import ServerUnreachable

from .exchange import NDJSON, Exchange


class RemoteBaseline(Iterator[dict[str, Any]]):
    """The entities at one commit, as loadable records. `cursor` is set once all entities have been read."""

    def __init__(self, exchange: Exchange, branch: str, filters: Mapping[str, Any]) -> None:
        body = {"branch": branch, **filters}
        reply = exchange.stream(
            "POST", ("changes", "baseline"), {}, json_body=body, headers={"Accept": NDJSON}, is_read=True
        )
        self.commit_id = str(reply.headers["Omnigraph-Snapshot-Id"])
        self.count = 0
        self.cursor: str | None = None
        self._server, self._lines = str(exchange.server), reply.lines()
        self._entity_lines = self._read_entities()

    def __repr__(self) -> str:
        progress = "complete" if self.cursor else f"{self.count} entities read"
        return f"<Baseline of commit {self.commit_id}: {progress}>"

    def __next__(self) -> dict[str, Any]:
        record: dict[str, Any] = json.loads(next(self._entity_lines))
        return record

    def _read_entities(self) -> Iterator[bytes]:
        """Yield one line per entity, and read the cursor from the closing record."""
        for line in self._lines:
            if line.startswith(b'{"baseline"'):
                self.cursor = json.loads(line)["baseline"]["resume_cursor"]
            else:
                self.count += 1
                yield line
        if self.cursor is None:
            raise ServerUnreachable(server=self._server, reason="the end of the baseline is missing", effect="none")

    def lines(self) -> Iterator[bytes]:
        """Yield the remaining entities as NDJSON lines, then one record with the commit and the cursor."""
        yield from self._entity_lines
        yield json.dumps({"baseline": self.to_json()}, separators=(",", ":")).encode() + b"\n"

    def to_json(self) -> dict[str, Any]:
        """Return the closing record, with the commit and, once all entities have been read, the cursor."""
        return {"snapshot_commit_id": self.commit_id, "resume_cursor": self.cursor}

    def write(self, path: str | PathLike[str]) -> None:
        """Write the whole stream to a file, which appears only once it is complete.

        Concurrent calls for the same path wait for one another.
        """
        with hold_capture_lock(Path(path)):
            try:
                write_lines(Path(path), self.lines(), durable=True)
            except BaseException:
                self.cursor = None
                raise
