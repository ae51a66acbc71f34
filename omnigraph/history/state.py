"""The state of one branch: tables, schema, head and newest commits, and its rows in the manifest.

A state is always read and written as a whole. The state that a publish computed in memory equals
the one that a fresh read returns. One row is a checksum of all other rows and of the manifest
version they belong to: rows that were written for another version are refused.
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

# Lance trains a compressor on texts above 32 KiB, which takes longer than writing them.
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
    """The head commit of a branch, and the commit that the branch was forked from.

    `nonce` identifies publishes without a commit of their own: a fence, or the closing version.
    The field names are the member names of the stored row.
    """

    commit_id: str
    ulid: str
    gc_epoch: int = 0
    closed: bool = False
    nonce: str | None = None
    fork: str | None = None


@dataclass(frozen=True, slots=True)
class Chunk:
    """A sealed log chunk: its commit count, and its last commit on the first-parent chain."""

    name: str
    count: int
    end: str


@dataclass(frozen=True, slots=True)
class State:
    """All rows of a manifest. `tail` is in log order, oldest first; the head commit is last.

    `origin` is None for main, and for branches that an older release created.
    """

    head: Head
    schema: SchemaRow
    tables: Mapping[str, TableEntry]
    tail: tuple[Commit, ...] = ()
    chunks: tuple[Chunk, ...] = ()
    streams: Mapping[str, str] = field(default_factory=dict)
    origin: Origin | None = None

    def closing(self, nonce: str) -> "State":
        """Return the final state of a branch: the same, closed."""
        return replace(self, head=replace(self.head, closed=True, nonce=nonce))


def to_rows(state: State, version: int) -> pa.Table:
    """Encode a state as the rows of one manifest version."""
    rows = [_head_row(state.head), _schema_row(state.schema)]
    rows += [_table_row(entry) for _, entry in sorted(state.tables.items())]
    tail = [_cached_row(commit) for commit in state.tail]
    last = [_chunk_row(chunk) for chunk in state.chunks]
    last += [_stream_row(name, token) for name, token in sorted(state.streams.items())]
    last += [_row("origin", "origin", state.origin.to_json())] if state.origin else []
    lines = [*map(_line_of, rows), *(line for _, line in tail), *map(_line_of, last)]
    checksum = _row(_CHECKSUM, _CHECKSUM, {"crc32": _checksum_lines(lines, version)})
    return pa.Table.from_pylist([*rows, *(row for row, _ in tail), *last, checksum], schema=ROWS)


def from_rows(rows: Sequence[Mapping[str, Any]], version: int) -> State:
    """Decode the rows of a manifest version; unknown row types are skipped.

    Raises `StateMismatch` if the rows do not match their checksum; old manifests have none.
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
        tables={entry.key: entry for entry in tables},
        tail=tuple(commit_of(row) for row in by_type.get("graph_commit", [])),
        chunks=tuple(_chunk(row) for row in by_type.get("commit_chunk", [])),
        streams={r["object_id"][7:]: _facts(r)["token"] for r in by_type.get("stream", [])},
        origin=origins[0] if origins else None,
    )


def _line_of(row: Mapping[str, Any]) -> str:
    """Return the text of a row that the checksum covers."""
    return "\x1f".join([str(row.get(name)) for name in READ])


def _checksum_lines(lines: Iterable[str], version: int) -> str:
    """Return the checksum of rows in their order, and of the manifest version they belong to."""
    return f"{zlib.crc32(_ROW_END.join([str(version), *lines]).encode()):08x}"


# Every publish writes up to some hundred commits again that never change, so their rows are cached.
_rows_of_commits: OrderedDict[int, tuple[Commit, dict[str, Any], str]] = OrderedDict()
_CACHED_ROWS = 4096


def _cached_row(commit: Commit) -> tuple[dict[str, Any], str]:
    """Return the row of a commit and its checksum text, cached for the next publish."""
    known = _rows_of_commits.get(id(commit))
    if known is None or known[0] is not commit:
        row = _commit_row(commit)
        known = _rows_of_commits[id(commit)] = commit, row, _line_of(row)
        if len(_rows_of_commits) > _CACHED_ROWS:
            with suppress(KeyError):  # another thread removed it first
                _rows_of_commits.popitem(last=False)
    return known[1], known[2]


def commit_rows(commits: Iterable[Commit]) -> pa.Table:
    """Encode commits in the manifest columns, for a chunk of the log."""
    return pa.Table.from_pylist([_commit_row(one) for one in commits], schema=ROWS)


def commit_of(row: Mapping[str, Any]) -> Commit:
    """Decode a `graph_commit` row."""
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
