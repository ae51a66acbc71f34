"""A baseline: all entities on a branch at one commit, and a cursor to continue from there.

This module streams the entities, ends the stream with a closing record, and can write it to a file. An interrupted
stream has no cursor, and a baseline file is either complete or absent.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson

from omnigraph.api.change_feed.capture_lock import hold_capture_lock
from omnigraph.api.change_feed.feed import (
    ChangeFilterRequest,
    build_cursor_binding,
    encode_cursor,
    resolve_change_filter,
)
from omnigraph.api.error_boundary import Guarded
from omnigraph.api.output_files import write_lines
from omnigraph.history.branch_state import BranchState
from omnigraph.history.missing_files import explain_missing_batches
from omnigraph.history.snapshot import Snapshot
from omnigraph.ingest.export import export_parts, join_lines
from omnigraph.publish.read_lease import protect_while_reading


class Baseline(Guarded, Iterator[dict[str, Any]]):
    """The entities at one commit, as loadable records. `cursor` is set once all entities have been read.

    `lines()` returns the same records as NDJSON, followed by the closing record.
    """

    def __init__(self, snapshot: Snapshot, branch_state: BranchState, filter_request: ChangeFilterRequest) -> None:
        change_filter = resolve_change_filter(snapshot, filter_request, None)
        self.commit_id = snapshot.commit_id
        self.count = 0
        self.cursor: str | None = None
        self._resume_cursor = encode_cursor(
            build_cursor_binding(snapshot, branch_state, change_filter), snapshot.commit_id
        )
        type_names = None if filter_request.types is None else _as_name_list(filter_request.types)
        parts = explain_missing_batches(snapshot, export_parts(snapshot, type_names, kinds=change_filter.kinds))
        self._entity_parts = self._count_entities(protect_while_reading(branch_state, snapshot, parts))
        self._entity_lines = join_lines(self._entity_parts)

    def __repr__(self) -> str:
        progress_text = "complete" if self.cursor else f"{self.count} entities read"
        return f"<Baseline of commit {self.commit_id}: {progress_text}>"

    def __next__(self) -> dict[str, Any]:
        record: dict[str, Any] = orjson.loads(next(self._entity_lines))
        return record

    def lines(self) -> Iterator[bytes]:
        """Yield the remaining entities as NDJSON lines, then one record with the commit and the cursor."""
        yield from self._entity_lines
        yield self._closing_line()

    def _parts_with_cursor(self) -> Iterator[bytes]:
        """Yield the same text as `lines`, but a line that contains large blobs may be split into several parts."""
        yield from self._entity_parts
        yield self._closing_line()

    def to_json(self) -> dict[str, Any]:
        """Return the closing record, with the commit and, once all entities have been read, the cursor."""
        return {"snapshot_commit_id": self.commit_id, "resume_cursor": self.cursor}

    def _count_entities(self, parts: Iterator[bytes]) -> Iterator[bytes]:
        """Yield the parts of all entities, and set the cursor at the end."""
        for part in parts:
            self.count += part.endswith(b"\n")
            yield part
        self.cursor = self._resume_cursor

    def _closing_line(self) -> bytes:
        return orjson.dumps({"baseline": self.to_json()}, option=orjson.OPT_APPEND_NEWLINE)

    def write(self, path: Path) -> None:
        """Write the whole stream durably to a file. Concurrent calls for the same path wait for one another.

        If another process replaces the file in the meantime, the write fails and no cursor is set.
        """
        with hold_capture_lock(path):
            try:
                write_lines(path, self._parts_with_cursor(), durable=True)
            except BaseException:
                self.cursor = None
                raise


def _as_name_list(type_names: Any) -> list[str]:
    return [type_names] if isinstance(type_names, str) else list(type_names)
