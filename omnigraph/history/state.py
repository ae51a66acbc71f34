"""The state of one branch: which tables, which schema, which head, the newest commits.

Owns the record and its rows in the manifest. A state is read whole and written whole; what a
publish folded in memory and what a fresh read gives are the same value. One row is the checksum of
all others and of the manifest version that they belong to: rows of another version are refused.
"""

import json
import zlib
from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa

from omnigraph.errors import InternalError

from .commit import Commit, SchemaRow, TableEntry
from .origin import Origin

# Lance trains a compressor on more than 32 KiB of text, which takes longer than writing it.
_UNCOMPRESSED = {"lance-encoding:compression": "none"}
ROWS = pa.schema(
    [
        pa.field("object_id", pa.string(), nullable=False),
        pa.field("object_type", pa.string(), nullable=False),
        pa.field("location", pa.string()),
        pa.field("metadata", pa.string(), metadata=_UNCOMPRESSED),
        pa.field("base_objects", pa.list_(pa.string())),
        pa.field("table_key", pa.string(), nullable=False),
        pa.field("table_version", pa.uint64()),
        pa.field("table_branch", pa.string()),
        pa.field("row_count", pa.uint64()),
    ]
)
READ = [name for name in ROWS.names if name != "base_objects"]
_CHECKSUM = "checksum"
_ROW_END = "\x1e"


class StateMismatch(ValueError):  # noqa: N818 - a reader turns it into a typed failure
    """The rows of a manifest are not those that were written for its version."""


@dataclass(frozen=True, slots=True)
class Head:
    """Where a branch stands, and the commit it was forked from.

    `nonce` marks publishes that have no commit of their own: a fence, the closing one.
    """

    commit_id: str
    ulid: str
    gc_epoch: int = 0
    closed: bool = False
    nonce: str | None = None
    fork: str | None = None


@dataclass(frozen=True, slots=True)
class Chunk:
    """A sealed piece of the log: how many commits, and the last on the first-parent line."""

    name: str
    count: int
    end: str


@dataclass(frozen=True, slots=True)
class State:
    """All rows of a manifest. `tail` is in log order, oldest first; the head's commit is last.

    `origin` is None for main, and where an older release created the branch.
    """

    head: Head
    schema: SchemaRow
    tables: Mapping[str, TableEntry]
    tail: tuple[Commit, ...] = ()
    chunks: tuple[Chunk, ...] = ()
    streams: Mapping[str, str] = field(default_factory=dict)
    origin: Origin | None = None

    def closing(self, nonce: str) -> "State":
        """The last state of a branch: the same, closed."""
        return replace(self, head=replace(self.head, closed=True, nonce=nonce))


def to_rows(state: State, version: int) -> pa.Table:
    """The rows of a state for one manifest version."""
    rows = [_head_row(state.head), _schema_row(state.schema)]
    rows += [_table_row(one) for _, one in sorted(state.tables.items())]
    tail = [_cached_row(one) for one in state.tail]
    last = [_chunk_row(one) for one in state.chunks]
    last += [_stream_row(name, token) for name, token in sorted(state.streams.items())]
    last += [_row("origin", "origin", state.origin.to_json())] if state.origin else []
    lines = [*map(_line_of, rows), *(line for _, line in tail), *map(_line_of, last)]
    checksum = _row(_CHECKSUM, _CHECKSUM, {"crc32": _checksum_lines(lines, version)})
    return pa.Table.from_pylist([*rows, *(row for row, _ in tail), *last, checksum], schema=ROWS)


def from_rows(rows: Sequence[Mapping[str, Any]], version: int) -> State:
    """The state that the rows of a manifest version hold; unknown kinds of rows are skipped.

    Raises `StateMismatch` when the rows do not match their checksum; old manifests have none.
    """
    recorded = [row for row in rows if row["object_type"] == _CHECKSUM]
    covered = [row for row in rows if row["object_type"] != _CHECKSUM]
    lines = map(_line_of, covered)
    if recorded and _facts(recorded[0])["crc32"] != _checksum_lines(lines, version):
        raise StateMismatch(f"the rows of version {version} do not match their checksum")
    by_type: dict[str, list[Mapping[str, Any]]] = {}
    for row in rows:
        by_type.setdefault(row["object_type"], []).append(row)
    heads, schemas = by_type.get("graph_head", []), by_type.get("schema", [])
    if len(heads) != 1 or len(schemas) != 1:
        raise InternalError("the manifest does not have exactly one head and one schema")
    tables = [_table(row) for row in by_type.get("table", [])]
    origins = [Origin.from_json(_facts(row)) for row in by_type.get("origin", [])]
    return State(
        head=_head(heads[0]),
        schema=SchemaRow(_facts(schemas[0])["hash"], schemas[0]["location"]),
        tables={one.key: one for one in tables},
        tail=tuple(commit_of(row) for row in by_type.get("graph_commit", [])),
        chunks=tuple(_chunk(row) for row in by_type.get("commit_chunk", [])),
        streams={r["object_id"][7:]: _facts(r)["token"] for r in by_type.get("stream", [])},
        origin=origins[0] if origins else None,
    )


def _line_of(row: Mapping[str, Any]) -> str:
    """A row as the text that the checksum covers."""
    return "\x1f".join([str(row.get(name)) for name in READ])


def _checksum_lines(lines: Iterable[str], version: int) -> str:
    """The checksum of rows, in their order, and of the manifest version that they belong to."""
    return f"{zlib.crc32(_ROW_END.join([str(version), *lines]).encode()):08x}"


# Every publish writes some hundred commits again that never change.
_rows_of_commits: OrderedDict[int, tuple[Commit, dict[str, Any], str]] = OrderedDict()
_CACHED_ROWS = 4096


def _cached_row(commit: Commit) -> tuple[dict[str, Any], str]:
    """The row of a commit and its text, remembered for the next publish."""
    known = _rows_of_commits.get(id(commit))
    if known is None or known[0] is not commit:
        row = _commit_row(commit)
        known = _rows_of_commits[id(commit)] = commit, row, _line_of(row)
        if len(_rows_of_commits) > _CACHED_ROWS:
            with suppress(KeyError):  # another thread was faster
                _rows_of_commits.popitem(last=False)
    return known[1], known[2]


def commit_rows(commits: Iterable[Commit]) -> pa.Table:
    """Commits in the nine columns, for a chunk of the log."""
    return pa.Table.from_pylist([_commit_row(one) for one in commits], schema=ROWS)


def commit_of(row: Mapping[str, Any]) -> Commit:
    """The commit of a `graph_commit` row."""
    facts = _facts(row)
    return Commit.from_json(row["object_id"], row["table_branch"], row["table_version"], facts)


def _row(object_id: str, object_type: str, metadata: Any, **columns: Any) -> dict[str, Any]:
    text = json.dumps(metadata, ensure_ascii=False, separators=(",", ":"))
    return {
        "object_id": object_id,
        "object_type": object_type,
        "metadata": text,
        "table_key": "",
    } | columns


def _facts(row: Mapping[str, Any]) -> dict[str, Any]:
    if row["metadata"] is None:
        raise InternalError(f"manifest row {row['object_id']} has no metadata")
    facts: dict[str, Any] = json.loads(row["metadata"])
    return facts


def _head_row(head: Head) -> dict[str, Any]:
    facts = {
        "commit_id": head.commit_id,
        "ulid": head.ulid,
        "gc_epoch": head.gc_epoch,
        "closed": head.closed,
        "nonce": head.nonce,
        "fork": head.fork,
    }
    return _row("graph_head", "graph_head", facts)


def _head(row: Mapping[str, Any]) -> Head:
    facts = _facts(row)
    names = ("commit_id", "ulid", "gc_epoch", "closed", "nonce", "fork")
    return Head(**{name: facts[name] for name in names})


def _schema_row(schema: SchemaRow) -> dict[str, Any]:
    return _row("schema", "schema", {"hash": schema.hash}, location=schema.location)


def _table_row(one: TableEntry) -> dict[str, Any]:
    facts = {
        "lance_version": str(one.lance_version),
        "content_id": one.content_id,
        "max_field_id": one.max_field_id,
    }
    return _row(
        one.key,
        "table",
        facts,
        location=one.location,
        table_key=one.key,
        table_version=one.version,
        table_branch=one.branch,
        row_count=one.rows,
    )


def _table(row: Mapping[str, Any]) -> TableEntry:
    facts = _facts(row)
    return TableEntry(
        row["table_key"],
        row["location"],
        row["table_version"],
        int(facts["lance_version"]),
        facts["content_id"],
        row["row_count"],
        row["table_branch"],
        facts["max_field_id"],
    )


def _commit_row(one: Commit) -> dict[str, Any]:
    return _row(
        one.id,
        "graph_commit",
        one.to_json(),
        table_version=one.manifest_version,
        table_branch=one.branch,
    )


def _chunk_row(one: Chunk) -> dict[str, Any]:
    facts = {"count": one.count, "end": one.end}
    return _row(one.name, "commit_chunk", facts, location=one.name)


def _chunk(row: Mapping[str, Any]) -> Chunk:
    facts = _facts(row)
    return Chunk(row["location"], facts["count"], facts["end"])


def _stream_row(name: str, token: str) -> dict[str, Any]:
    return _row(f"stream:{name}", "stream", {"token": token})
