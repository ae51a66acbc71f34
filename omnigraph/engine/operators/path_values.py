"""Values derived from paths: length, node and edge ids, cost, and whole paths as structs.

This module defines how a path is represented in a result. Ids are read once per distinct node or edge, and only for the
requested paths.
"""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from omnigraph.engine.adjacency.neighbor_lists import expand_ranges
from omnigraph.engine.execution_context import ExecutionContext
from omnigraph.lang.query import plan_paths
from omnigraph.values.table_key import TableKey

from .fetch import RowSource, fetch_columns
from .path_table import PathTable
from .rows import NULL_ROW, IntArray, VariableBinding

_NODE_TYPE = pa.struct([pa.field("id", pa.string()), pa.field("type", pa.string())])
_EDGE_COLUMNS = {"id": "id", "from": "src", "to": "dst"}
_EDGE_TYPE = pa.struct([pa.field(name, pa.string()) for name in ("id", "type", "from", "to")])


def path_struct_type(path: plan_paths.PathEntity) -> pa.StructType:
    """Return the Arrow type of a whole path in a result."""
    fields = [("length", pa.int64()), ("nodes", pa.list_(_NODE_TYPE)), ("edges", pa.list_(_EDGE_TYPE))]
    return pa.struct([*fields, ("cost", pa.float64())] if path.has_cost else fields)


def path_column(source: RowSource, path: plan_paths.PathEntity) -> pa.Array:
    """Return whole paths as structs, or null where the variable is null."""
    binding = source.rows[path.variable]
    paths = binding.paths
    struct_type = path_struct_type(path)
    if paths is None:
        return pa.nulls(source.count, struct_type)
    names = [field.name for field in struct_type]
    children = [_path_column(source.context, paths, binding.row_ids, name, whole=True) for name in names]
    is_null = binding.row_ids == NULL_ROW
    return pa.StructArray.from_arrays(children, fields=list(struct_type), mask=pa.array(is_null))


def path_columns(
    context: ExecutionContext, paths: PathTable, path_numbers: IntArray, functions: Sequence[str]
) -> list[pa.Array]:
    """Return a column for each function, such as `length`. A value is null where the path number is null."""
    return [_path_column(context, paths, path_numbers, function) for function in functions]


def _path_column(
    context: ExecutionContext, paths: PathTable, path_numbers: IntArray, function: str, *, whole: bool = False
) -> pa.Array:
    is_null = path_numbers == NULL_ROW
    known_numbers = np.where(is_null, 0, path_numbers)
    if function in ("length", "cost"):
        values = paths.lengths if function == "length" else paths.costs
        if values is None or len(values) == 0:
            return pa.nulls(len(path_numbers), pa.int64() if function == "length" else pa.float64())
        return pa.array(values[known_numbers], mask=is_null)
    starts = paths.node_starts if function == "nodes" else paths.starts
    lengths = np.zeros(len(path_numbers), np.int64)
    lengths[~is_null] = np.diff(starts)[path_numbers[~is_null]]
    list_starts = np.zeros(len(path_numbers), np.int64)
    list_starts[~is_null] = starts[path_numbers[~is_null]]
    member_positions = expand_ranges(list_starts, lengths)
    members = _node_members if function == "nodes" else _edge_members
    offsets = pa.array(np.append(0, np.cumsum(lengths)).astype(np.int32))
    return pa.ListArray.from_arrays(
        offsets, members(context, paths, member_positions, whole), mask=pa.array(is_null) if is_null.any() else None
    )


def _node_members(context: ExecutionContext, paths: PathTable, positions: IntArray, whole: bool) -> pa.Array:
    ids = _read_columns(context, (paths.node_key,), paths.nodes[positions], None, ["id"])[0]
    type_names = pa.repeat(pa.scalar(paths.node_key.type_name), len(ids))
    return pa.StructArray.from_arrays([ids, type_names], fields=list(_NODE_TYPE)) if whole else ids


def _edge_members(context: ExecutionContext, paths: PathTable, positions: IntArray, whole: bool) -> pa.Array:
    edge_types = paths.edge_types[positions]
    columns = list(_EDGE_COLUMNS.values()) if whole else ["id"]
    edges = paths.edges[positions]
    values = _read_columns(context, paths.edge_keys, edges, edge_types, columns)
    if not whole:
        return values[0]
    type_names = pa.array([edge_key.type_name for edge_key in paths.edge_keys], pa.string()).take(pa.array(edge_types))
    return pa.StructArray.from_arrays([values[0], type_names, values[1], values[2]], fields=list(_EDGE_TYPE))


def _read_columns(
    context: ExecutionContext,
    table_keys: tuple[TableKey, ...],
    row_ids: IntArray,
    type_indexes: np.ndarray[tuple[int], np.dtype[np.int16]] | None,
    columns: list[str],
) -> list[pa.Array]:
    """Read columns once per distinct entity, and repeat the values for every occurrence."""
    entity_numbers = row_ids if type_indexes is None else row_ids * len(table_keys) + type_indexes
    _, first_positions, occurrences = np.unique(entity_numbers, return_index=True, return_inverse=True)
    distinct_types = type_indexes[first_positions] if type_indexes is not None and len(table_keys) > 1 else None
    binding = VariableBinding(table_keys, row_ids[first_positions], distinct_types)
    return [column.take(pa.array(occurrences)) for column in fetch_columns(context, binding, columns)]
