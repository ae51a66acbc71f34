"""A baseline: all entities of a branch at one commit, and the cursor that continues from there.

Owns the stream with its closing record, and the file that the stream is written to. An interrupted
stream has no cursor, and a file appears complete or not at all.
"""

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import orjson

from omnigraph.boundary import Guarded
from omnigraph.errors import InputError
from omnigraph.feed import Wanted, bound, cursor_at, scope_for
from omnigraph.history.line import Line
from omnigraph.history.snapshot import Snapshot
from omnigraph.ingest.export import export_lines
from omnigraph.sources import write_lines


class Baseline(Guarded, Iterator[dict[str, Any]]):
    """The entities of one commit as loadable records; `cursor` is set once all are read.

    `lines()` returns the same as NDJSON, with the closing record.
    """

    def __init__(self, shown: Snapshot, line: Line, wanted: Wanted) -> None:
        scope = scope_for(shown, wanted, None)
        self.commit_id = shown.commit_id
        self.count = 0
        self.cursor: str | None = None
        self._resume = cursor_at(bound(shown, line, scope), shown.commit_id)
        types = None if wanted.types is None else _listed(wanted.types)
        self._lines = export_lines(shown, types, kinds=scope.kinds)

    def __repr__(self) -> str:
        read = "complete" if self.cursor else f"{self.count} entities read"
        return f"<Baseline of commit {self.commit_id}: {read}>"

    def __next__(self) -> dict[str, Any]:
        record: dict[str, Any] = orjson.loads(self._next())
        return record

    def lines(self) -> Iterator[bytes]:
        """Yield the remaining entities as NDJSON lines, then one record with commit and cursor."""
        try:
            while True:
                yield self._next()
        except StopIteration:
            yield orjson.dumps({"baseline": self.to_json()}, option=orjson.OPT_APPEND_NEWLINE)

    def to_json(self) -> dict[str, Any]:
        """Return the closing record: the commit, and the cursor once all entities were read."""
        return {"snapshot_commit_id": self.commit_id, "resume_cursor": self.cursor}

    def _next(self) -> bytes:
        line = next(self._lines, None)
        if line is None:
            self.cursor = self._resume
            raise StopIteration
        self.count += 1
        return line

    def write(self, path: Path) -> None:
        """Write the whole stream to a file durably; other captures to the same path wait.

        If another process replaces the file meanwhile, the write fails and there is no cursor.
        """
        with _alone(path):
            try:
                write_lines(path, self.lines(), durable=True)
            except BaseException:
                self.cursor = None
                raise


def _listed(names: Any) -> list[str]:
    return [names] if isinstance(names, str) else list(names)


@contextmanager
def _alone(path: Path) -> Iterator[None]:
    """Hold the lock that serializes captures to one file; the lock file stays next to it."""
    lock = path.with_name(f"{path.name}.lock")
    try:
        held = lock.open("ab")
    except OSError as error:
        raise InputError(f"cannot write {lock}: {error.strerror}", reason="unwritable") from error
    with held:
        fcntl.flock(held, fcntl.LOCK_EX)
        yield
