"""Export a snapshot as NDJSON: nodes before edges, types sorted by name, and each table in id order.

Exporting the same snapshot always yields the same bytes. If these bytes are loaded into an empty graph with the same
schema, exporting that graph yields the same bytes again. Only the ids of one table and the rows of one piece are held
in memory, and large blobs are streamed.
"""

from binascii import a2b_base64, b2a_base64
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

import orjson
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.history.diff import changed_table_keys, diff_snapshots
from omnigraph.history.snapshot import Snapshot
from omnigraph.lang.schema.catalog import EdgeType, NodeType
from omnigraph.lang.schema.type_names import select_declared_types
from omnigraph.storage.arrow import table_key
from omnigraph.storage.blob_pieces import MARKER_PREFIX, RowPiece, take_pieces, take_streamed_pieces
from omnigraph.storage.find_rows import read_rows
from omnigraph.storage.scan import ROW_ID
from omnigraph.storage.table import Table
from omnigraph.values import PropertyType, ScalarType, encode_export
from omnigraph.values.dates import format_date, format_datetime
from omnigraph.values.table_key import TableKey

from .entity_schema import entity_schema

EntityIds = Mapping[TableKey, pa.ChunkedArray]
_STORED_NAMES = {"from": "src", "to": "dst"}
_BASE64_BLOCK_BYTES = 3 << 18  # a multiple of three, so that the digits of a block need no padding
_MARKER_START = b2a_base64(MARKER_PREFIX, newline=False)
_INTEGER_TYPES = {ScalarType.DATE: pa.int32(), ScalarType.DATETIME: pa.int64()}


def export_lines(
    snapshot: Snapshot,
    type_names: Sequence[str] | None = None,
    *,
    iso_dates: bool = False,
    kinds: Collection[str] | None = None,
) -> Iterator[bytes]:
    """Yield the lines of an export, including newlines; `type_names` restricts which types are exported.

    A line contains the blobs of its entity; use `export_parts` to stream them.

    Dates are exported as numbers or, with `iso_dates`, as ISO 8601 strings; both forms can be loaded again. `kinds`
    restricts the export to entities of the kind `node` or `edge`.
    """
    yield from join_lines(export_parts(snapshot, type_names, iso_dates=iso_dates, kinds=kinds))


def join_lines(parts: Iterable[bytes]) -> Iterator[bytes]:
    r"""Join the parts of each line; only the last part of a line ends in a newline.

    >>> list(join_lines([b"a\n", b"b", b"c\n"]))
    [b'a\n', b'bc\n']
    """
    earlier_parts: list[bytes] = []
    for part in parts:
        if not part.endswith(b"\n"):
            earlier_parts.append(part)
        elif earlier_parts:
            yield b"".join((*earlier_parts, part))
            earlier_parts.clear()
        else:
            yield part


def export_parts(
    snapshot: Snapshot,
    type_names: Sequence[str] | None = None,
    *,
    iso_dates: bool = False,
    kinds: Collection[str] | None = None,
    entity_ids: EntityIds | None = None,
) -> Iterator[bytes]:
    """Yield the same export as `export_lines`, but split lines that contain large blobs into several parts.

    Only the last part of a line ends in a newline. `entity_ids` restricts the export to the given ids in the given
    tables.
    """
    for entity_type in select_types(snapshot, type_names):
        key = table_key(entity_type)
        is_selected = (kinds is None or entity_type.kind in kinds) and (entity_ids is None or key in entity_ids)
        if is_selected and snapshot.tables[key].row_count:
            selected_ids = None if entity_ids is None else entity_ids[key]
            yield from _export_type(entity_type, snapshot.table(key), iso_dates, selected_ids)


def export_tables(
    snapshot: Snapshot, entity_type: NodeType | EdgeType, entity_ids: EntityIds | None = None
) -> Iterator[pa.Table]:
    """Yield the entities of one type in id order, as tables with the columns of `entity_schema`."""
    key, schema = table_key(entity_type), entity_schema(entity_type)
    if not snapshot.tables[key].row_count or (entity_ids is not None and key not in entity_ids):
        return
    table = snapshot.table(key)
    stored_names = [_STORED_NAMES.get(name, name) for name in schema.names] if key.is_edge else schema.names
    for rows in take_pieces(table, _ordered_row_ids(table, None if entity_ids is None else entity_ids[key])):
        columns = [rows[name].cast(field.type) for name, field in zip(stored_names, schema, strict=True)]
        yield pa.Table.from_arrays(columns, schema=schema)


def changed_entity_ids(
    old_snapshot: Snapshot, new_snapshot: Snapshot, type_names: Sequence[str] | None = None
) -> EntityIds:
    """Return the ids of the entities that were added or changed between two snapshots, by table."""
    selected_keys = {table_key(entity_type) for entity_type in select_types(new_snapshot, type_names)}
    changed_keys = [key for key in changed_table_keys(old_snapshot, new_snapshot) if key in selected_keys]
    return {
        changes.key: pa.chunked_array(
            [*changes.inserted["id"].chunks, *changes.updated_after["id"].chunks], pa.string()
        )
        for changes in diff_snapshots(old_snapshot, new_snapshot, changed_keys)
    }


def select_types(snapshot: Snapshot, type_names: Sequence[str] | None) -> list[NodeType | EdgeType]:
    """Return the types with the given names (by default all types), nodes first; raise an error for unknown names."""
    return select_declared_types(snapshot.schema.ir.catalog, type_names)


def _ordered_row_ids(table: Table, selected_ids: pa.ChunkedArray | None) -> pa.Array:
    """Return the row ids of all entities, or only of the selected ones, in the order of their ids."""
    id_rows = read_rows(table, ["id"], with_row_ids=True).select(["id", ROW_ID])
    if selected_ids is not None:
        id_rows = id_rows.filter(pc.is_in(id_rows["id"], value_set=selected_ids))
    return id_rows[ROW_ID].take(pc.sort_indices(id_rows["id"])).combine_chunks()


def _export_type(
    entity_type: NodeType | EdgeType, table: Table, iso_dates: bool, selected_ids: pa.ChunkedArray | None
) -> Iterator[bytes]:
    for piece in take_streamed_pieces(table, _ordered_row_ids(table, selected_ids)):
        lines = lines_of_rows(entity_type, piece.rows, iso_dates=iso_dates)
        yield from (part for line in lines for part in _insert_blobs(line, piece)) if piece.streamed else lines


def _insert_blobs(line: bytes, piece: RowPiece) -> Iterator[bytes]:
    """Yield a line in parts, with the marker of each streamed blob replaced by base64 digits."""
    line_position = 0
    while (marker_position := line.find(_MARKER_START, line_position)) >= 0:
        marker_end = line.index(b'"', marker_position)
        yield line[line_position:marker_position]
        read_blocks = piece.streamed[a2b_base64(line[marker_position:marker_end])]
        yield from (b2a_base64(block, newline=False) for block in read_blocks(_BASE64_BLOCK_BYTES))
        line_position = marker_end
    yield line[line_position:]


def lines_of_rows(entity_type: NodeType | EdgeType, rows: pa.Table, *, iso_dates: bool = False) -> Iterator[bytes]:
    """Yield one line, including the newline, for each of the given rows, in row order."""
    values_by_column = {
        prop.name: _json_values(prop.type, rows[prop.name], iso_dates) for prop in entity_type.properties
    }
    values_by_column["id"] = rows["id"].to_pylist()
    property_names = list(values_by_column)
    endpoint_columns = (
        [rows[column_name].to_pylist() for column_name in ("src", "dst")] if isinstance(entity_type, EdgeType) else None
    )
    for row_number, row_values in enumerate(zip(*values_by_column.values(), strict=True)):
        record: dict[str, Any] = {"data": dict(zip(property_names, row_values, strict=True))}
        if endpoint_columns is None:
            record["type"] = entity_type.name
        else:
            record |= {
                "edge": entity_type.name,
                "from": endpoint_columns[0][row_number],
                "to": endpoint_columns[1][row_number],
            }
        yield orjson.dumps(record, option=orjson.OPT_SORT_KEYS | orjson.OPT_APPEND_NEWLINE)


def _json_values(property_type: PropertyType, column: pa.ChunkedArray, iso_dates: bool) -> list[Any]:
    """Convert a column's values to their JSON form for exports."""
    if property_type.scalar in _INTEGER_TYPES:
        integer_type = _INTEGER_TYPES[property_type.scalar]
        column = column.cast(pa.list_(integer_type) if property_type.is_list else integer_type)
        if iso_dates:
            format_value = format_date if property_type.scalar is ScalarType.DATE else format_datetime
            return [_format_nested(format_value, item) for item in column.to_pylist()]
    column_values: list[Any] = column.to_pylist()
    if property_type.scalar is ScalarType.BLOB:
        return [encode_export(property_type, value) for value in column_values]
    return column_values


def _format_nested(format_value: Callable[[int], str], value: Any) -> Any:
    if isinstance(value, list):
        return [_format_nested(format_value, item) for item in value]
    return None if value is None else format_value(value)
