"""Exports of a graph on a server. The server sends NDJSON; this machine writes files in other formats.

The lines are streamed and are never all held in memory at once. An interrupted stream raises an error, and no file
appears.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import islice
from os import PathLike
from typing import Any

import pyarrow as pa

from omnigraph.api.export_files import ExportFormat, choose_export_format, require_single_type, write_entity_file
from omnigraph.api.output_files import write_export
from omnigraph.history.revisions import Revision
from omnigraph.lang.schema.catalog import EdgeType, NodeType
from omnigraph.lang.schema.type_names import select_declared_types
from omnigraph.values import ScalarType
from omnigraph.values.blobs import parse_blob

from .exchange import NDJSON, Exchange
from .handle import RemoteHandle, compile_ir

_ROWS_PER_TABLE = 8_192


def export(
    handle: RemoteHandle,
    path: str | PathLike[str] | None,
    types: Sequence[str] | None,
    *,
    iso_dates: bool,
    since: Revision | None,
    format: ExportFormat | None,
) -> Iterator[bytes] | int:
    """Return the lines of an export, or the number of entities that were written to a file. See `Graph.export`."""
    handle.require_open()
    file_format = choose_export_format(path, format)
    old_commit = None if since is None else handle.resolve(since)
    if path is None or file_format == "ndjson":
        lines = export_lines(handle.exchange, handle.position, types, iso_dates=iso_dates, since=old_commit)
        return lines if path is None else write_export(path, lines)
    handle = handle if handle.pinned else handle.pin(handle.head().id)
    return export_to_file(handle.exchange, handle.position, path, file_format, types, since=old_commit)


def export_lines(
    exchange: Exchange,
    position: Mapping[str, str],
    types: Sequence[str] | None,
    *,
    iso_dates: bool = False,
    since: str | None = None,
) -> Iterator[bytes]:
    """Yield the lines of an export, each with its newline."""
    body = export_body(position, types, iso_dates=iso_dates, since=since)
    return exchange.stream("POST", ("export",), {}, json_body=body, headers={"Accept": NDJSON}, is_read=True).lines()


def export_body(
    position: Mapping[str, str], types: Sequence[str] | None, *, iso_dates: bool, since: str | None
) -> dict[str, Any]:
    """Return the body of an export request. If `since` is None, it is left out, because older servers reject it."""
    body: dict[str, Any] = {"type_names": list(types or ()), "iso_dates": iso_dates, **position}
    return body if since is None else body | {"since": since}


def export_to_file(
    exchange: Exchange,
    position: Mapping[str, str],
    path: str | PathLike[str],
    file_format: ExportFormat,
    types: Sequence[str] | None,
    *,
    since: str | None = None,
) -> int:
    """Write the entities of one type at a commit to a Parquet, Arrow or CSV file, and return their number."""
    catalog = compile_ir(exchange.get("schema", **position)["schema_source"]).catalog
    entity_type = require_single_type(select_declared_types(catalog, types), file_format)
    read_lines = partial(export_lines, exchange, position, [entity_type.name], since=since)
    return write_entity_file(path, file_format, entity_type, _read_tables(entity_type, read_lines))


def _read_tables(entity_type: NodeType | EdgeType, read_lines: Callable[[], Iterator[bytes]]) -> Iterator[pa.Table]:
    """Convert the lines of an export to tables with the columns of `entity_schema`.

    The request is sent only when the first table is read, so the output file is opened before the request.
    """
    from omnigraph.ingest.entity_schema import entity_schema

    lines, schema = read_lines(), entity_schema(entity_type)
    blob_names = [prop.name for prop in entity_type.properties if prop.type.scalar is ScalarType.BLOB]
    while batch := [json.loads(line) for line in islice(lines, _ROWS_PER_TABLE)]:
        rows = [record | record["data"] for record in batch]
        for row in rows:
            row |= {name: parse_blob(row[name]) for name in blob_names if row[name] is not None}
        yield pa.Table.from_arrays([_make_column(rows, field) for field in schema], schema=schema)


def _make_column(rows: list[dict[str, Any]], field: pa.Field) -> pa.Array:
    """Return a column of a table. The export contains dates and times as numbers, which Arrow converts."""
    return pa.array([row[field.name] for row in rows], field.type)
