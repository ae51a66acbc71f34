"""One branch's state (tables, schema, head and newest commits), and its encoding as manifest rows.

A state is always read and written as a whole. The state that a publish computes in memory equals the state that a fresh
read returns. One row contains a checksum of all other rows and of their manifest version, so rows that were written for
a different version are rejected.
"""

import json
import zlib
from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import field, replace
from functools import cache
from typing import TYPE_CHECKING, Any

from omnigraph.errors import InternalError
from omnigraph.records.frozen import record
from omnigraph.values.table_key import TableKey

from .commit import Commit, SchemaRow, TableEntry
from .origin_record import Origin

if TYPE_CHECKING:
    import pyarrow as pa

READ_COLUMNS = [
    "object_id",
    "object_type",
    "location",
    "metadata",
    "table_key",
    "table_version",
    "table_branch",
    "row_count",
]
_CHECKSUM_TYPE = "checksum"
_ROW_END = "\x1e"


class StateMismatch(ValueError):  # noqa: N818 - callers convert it into a typed error
    """The rows in a manifest version were written for a different version."""


@record
class BranchHead:
    """A branch's head commit, and the commit that the branch was forked from.

    `nonce` identifies a publish that adds no commit, such as a fence or the closing version. The field names are the
    member names of the stored row.
    """

    commit_id: str
    ulid: str
    gc_epoch: int = 0
    closed: bool = False
    nonce: str | None = None
    fork: str | None = None


@record
class LogChunk:
    """A sealed log chunk, with its commit count and its last commit on the first-parent chain."""

    name: str
    commit_count: int
    last_commit_id: str


@record
class GraphState:
    """The content of a manifest. `tail` is in log order, from the oldest commit to the head commit.

    `origin` is None for main and for branches created by an older release.
    """

    head: BranchHead
    schema: SchemaRow
    tables: Mapping[TableKey, TableEntry]
    tail: tuple[Commit, ...] = ()
    chunks: tuple[LogChunk, ...] = ()
    streams: Mapping[str, str] = field(default_factory=dict)
    origin: Origin | None = None

    def as_closed(self, nonce: str) -> "GraphState":
        """Return a copy of this state that is marked as closed, to be published as the branch's final state."""
        return replace(self, head=replace(self.head, closed=True, nonce=nonce))


@cache
def manifest_schema() -> "pa.Schema":
    """Return the Arrow schema for the rows: the columns in `READ_COLUMNS`, and the unused column `base_objects`."""
    import pyarrow as pa

    # Lance trains a compressor on strings above 32 KiB, which takes longer than writing them.
    no_compression = {"lance-encoding:compression": "none"}
    return pa.schema(
        [
            pa.field("object_id", pa.string(), nullable=False),
            pa.field("object_type", pa.string(), nullable=False),
            pa.field("location", pa.string()),
            pa.field("metadata", pa.string(), metadata=no_compression),
            pa.field("base_objects", pa.list_(pa.string())),
            pa.field("table_key", pa.string(), nullable=False),
            pa.field("table_version", pa.uint64()),
            pa.field("table_branch", pa.string()),
            pa.field("row_count", pa.uint64()),
        ]
    )


def to_rows(state: GraphState, manifest_version: int) -> "pa.Table":
    """Encode a state as the rows for one manifest version."""
    import pyarrow as pa

    first_rows = [_build_head_row(state.head), _build_schema_row(state.schema)]
    first_rows += [_build_table_row(entry) for _, entry in sorted(state.tables.items())]
    tail_rows = [_cached_commit_row(commit) for commit in state.tail]
    last_rows = [_build_chunk_row(chunk) for chunk in state.chunks]
    last_rows += [_build_stream_row(stream_name, token) for stream_name, token in sorted(state.streams.items())]
    last_rows += [_build_row("origin", "origin", state.origin.to_json())] if state.origin else []
    encoded_rows = [
        *map(_encode_for_checksum, first_rows),
        *(encoded_row for _, encoded_row in tail_rows),
        *map(_encode_for_checksum, last_rows),
    ]
    checksum_row = _build_row(_CHECKSUM_TYPE, _CHECKSUM_TYPE, {"crc32": _checksum_rows(encoded_rows, manifest_version)})
    return pa.Table.from_pylist(
        [*first_rows, *(row for row, _ in tail_rows), *last_rows, checksum_row], schema=manifest_schema()
    )


def from_rows(manifest_rows: Sequence[Mapping[str, Any]], manifest_version: int) -> GraphState:
    """Decode the rows in a manifest version, skipping unknown row types.

    Raises `StateMismatch` if the rows do not match their checksum. Older manifests have no checksum.
    """
    without_checksum(manifest_rows, manifest_version)
    rows_by_type: dict[str, list[Mapping[str, Any]]] = {}
    for row in manifest_rows:
        rows_by_type.setdefault(row["object_type"], []).append(row)
    head_rows, schema_rows = rows_by_type.get("graph_head", []), rows_by_type.get("schema", [])
    if len(head_rows) != 1 or len(schema_rows) != 1:
        raise InternalError("the manifest does not have exactly one head and one schema")
    table_entries = [_parse_table_row(row) for row in rows_by_type.get("table", [])]
    origins = [Origin.from_json(_parse_metadata(row)) for row in rows_by_type.get("origin", [])]
    return GraphState(
        head=_parse_head_row(head_rows[0]),
        schema=SchemaRow(_parse_metadata(schema_rows[0])["hash"], schema_rows[0]["location"]),
        tables={entry.key: entry for entry in table_entries},
        tail=tuple(parse_commit_row(row) for row in rows_by_type.get("graph_commit", [])),
        chunks=tuple(_parse_chunk_row(row) for row in rows_by_type.get("commit_chunk", [])),
        streams={
            stream_row["object_id"][7:]: _parse_metadata(stream_row)["token"]
            for stream_row in rows_by_type.get("stream", [])
        },
        origin=origins[0] if origins else None,
    )


def without_checksum(manifest_rows: Sequence[Mapping[str, Any]], manifest_version: int) -> list[Mapping[str, Any]]:
    """Verify the checksum and return the rows that it covers; raise `StateMismatch` if the checksum differs."""
    checksum_rows = [row for row in manifest_rows if row["object_type"] == _CHECKSUM_TYPE]
    covered_rows = [row for row in manifest_rows if row["object_type"] != _CHECKSUM_TYPE]
    encoded_rows = map(_encode_for_checksum, covered_rows)
    if checksum_rows and _parse_metadata(checksum_rows[0])["crc32"] != _checksum_rows(encoded_rows, manifest_version):
        raise StateMismatch(f"the rows in version {manifest_version} do not match their checksum")
    return covered_rows


def has_checksum(manifest_rows: Sequence[Mapping[str, Any]]) -> bool:
    """Return whether rows include their checksum, which only older manifests lack."""
    return any(row["object_type"] == _CHECKSUM_TYPE for row in manifest_rows)


def _encode_for_checksum(row: Mapping[str, Any]) -> str:
    """Return the string from which a row's checksum is computed."""
    return "\x1f".join([str(row.get(column_name)) for column_name in READ_COLUMNS])


def _checksum_rows(encoded_rows: Iterable[str], manifest_version: int) -> str:
    """Return one checksum for the manifest version and its rows, which must be in their stored order."""
    return f"{zlib.crc32(_ROW_END.join([str(manifest_version), *encoded_rows]).encode()):08x}"


# Every publish rewrites up to a hundred or so commits, which never change, so their rows are cached.
_commit_row_cache: OrderedDict[int, tuple[Commit, dict[str, Any], str]] = OrderedDict()
_COMMIT_ROW_CACHE_SIZE = 1024


def _cached_commit_row(commit: Commit) -> tuple[dict[str, Any], str]:
    """Return a commit's row and its checksum string, and cache both for the next publish."""
    cached = _commit_row_cache.get(id(commit))
    if cached is None or cached[0] is not commit:
        row = _build_commit_row(commit)
        cached = _commit_row_cache[id(commit)] = commit, row, _encode_for_checksum(row)
        if len(_commit_row_cache) > _COMMIT_ROW_CACHE_SIZE:
            with suppress(KeyError):  # another thread has already removed the entry
                _commit_row_cache.popitem(last=False)
    return cached[1], cached[2]


def commit_rows(commits: Iterable[Commit]) -> "pa.Table":
    """Encode commits in the manifest columns, for use in a log chunk."""
    import pyarrow as pa

    return pa.Table.from_pylist([_build_commit_row(commit) for commit in commits], schema=manifest_schema())


def parse_commit_row(row: Mapping[str, Any]) -> Commit:
    """Decode a `graph_commit` row."""
    metadata = _parse_metadata(row)
    return Commit.from_json(row["object_id"], row["table_branch"], row["table_version"], metadata)


def _build_row(object_id: str, object_type: str, metadata: Any, **columns: Any) -> dict[str, Any]:
    metadata_json = json.dumps(metadata, ensure_ascii=False, separators=(",", ":"))
    return {"object_id": object_id, "object_type": object_type, "metadata": metadata_json, "table_key": ""} | columns


def _parse_metadata(row: Mapping[str, Any]) -> dict[str, Any]:
    if row["metadata"] is None:
        raise InternalError(f"manifest row {row['object_id']} has no metadata")
    metadata: dict[str, Any] = json.loads(row["metadata"])
    return metadata


def _build_head_row(head: BranchHead) -> dict[str, Any]:
    metadata = {
        "commit_id": head.commit_id,
        "ulid": head.ulid,
        "gc_epoch": head.gc_epoch,
        "closed": head.closed,
        "nonce": head.nonce,
        "fork": head.fork,
    }
    return _build_row("graph_head", "graph_head", metadata)


def _parse_head_row(row: Mapping[str, Any]) -> BranchHead:
    metadata = _parse_metadata(row)
    field_names = ("commit_id", "ulid", "gc_epoch", "closed", "nonce", "fork")
    return BranchHead(**{field_name: metadata[field_name] for field_name in field_names})


def _build_schema_row(schema: SchemaRow) -> dict[str, Any]:
    return _build_row("schema", "schema", {"hash": schema.hash}, location=schema.location)


def _build_table_row(table_entry: TableEntry) -> dict[str, Any]:
    metadata = {
        "lance_version": str(table_entry.lance_version),
        "content_id": table_entry.content_id,
        "max_field_id": table_entry.max_field_id,
    }
    return _build_row(
        table_entry.key,
        "table",
        metadata,
        location=table_entry.location,
        table_key=table_entry.key,
        table_version=table_entry.version,
        table_branch=table_entry.branch,
        row_count=table_entry.row_count,
    )


def _parse_table_row(row: Mapping[str, Any]) -> TableEntry:
    metadata = _parse_metadata(row)
    return TableEntry(
        TableKey(row["table_key"]),
        row["location"],
        row["table_version"],
        int(metadata["lance_version"]),
        metadata["content_id"],
        row["row_count"],
        row["table_branch"],
        metadata["max_field_id"],
    )


def _build_commit_row(commit: Commit) -> dict[str, Any]:
    return _build_row(
        commit.id, "graph_commit", commit.to_json(), table_version=commit.manifest_version, table_branch=commit.branch
    )


def _build_chunk_row(chunk: LogChunk) -> dict[str, Any]:
    metadata = {"count": chunk.commit_count, "end": chunk.last_commit_id}
    return _build_row(chunk.name, "commit_chunk", metadata, location=chunk.name)


def _parse_chunk_row(row: Mapping[str, Any]) -> LogChunk:
    metadata = _parse_metadata(row)
    return LogChunk(row["location"], metadata["count"], metadata["end"])


def _build_stream_row(stream_name: str, token: str) -> dict[str, Any]:
    return _build_row(f"stream:{stream_name}", "stream", {"token": token})
