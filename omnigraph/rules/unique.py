"""The `@key` and `@unique` rules: after an operation, no two entities may share the same tuple of values.

Rows with a null in the tuple are exempt. An operation may reuse a value that it removes from another entity. A keyed
entity's id is derived from its key, so a stored row with the same key is the same entity, and no lookup by key is
needed.
"""

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.lang.schema.catalog import EdgeType, Key, NodeType, Unique
from omnigraph.values import PropertyType, ScalarType, canonical_spelling

from .delta import Positions, TableDelta, as_single_array
from .lookup import Lookup
from .violation import Violation

_STRING_TYPE = PropertyType(ScalarType.STRING)
# Names of temporary columns. They cannot clash with a schema's columns, whose names never contain `#`.
_POSITION, _HOLDER = "#at", "#holder"
_FIRST_POSITION, _POSITION_COUNT = f"{_POSITION}_min", f"{_POSITION}_count"


def repeated_records(entity_type: NodeType | EdgeType, table_delta: TableDelta) -> Iterator[Violation]:
    """Yield violations for input records that repeat a tuple, even if they have the same id."""
    if table_delta.from_records and table_delta.row_versions.num_rows > 1:
        for unique_columns in _unique_column_groups(entity_type):
            yield from _find_repeated(
                entity_type, table_delta, table_delta.row_versions, unique_columns, table_delta.input_lines
            )


def unique_violations(entity_type: NodeType | EdgeType, table_delta: TableDelta, lookup: Lookup) -> Iterator[Violation]:
    """Yield violations for written rows that share a tuple with another written row or with a stored row."""
    for unique_columns in _unique_column_groups(entity_type):
        if table_delta.rows.num_rows > 1 and not table_delta.from_records:
            latest_lines = (
                None if table_delta.input_lines is None else table_delta.input_lines[table_delta.latest_positions]
            )
            yield from _find_repeated(entity_type, table_delta, table_delta.rows, unique_columns, latest_lines)
        if not table_delta.replaces_table and entity_type.key != unique_columns:
            yield from _find_stored_holders(entity_type, table_delta, unique_columns, lookup)


def rule_columns(entity_type: NodeType | EdgeType) -> list[str]:
    """Return the columns read by rules that span several rows: ids, endpoints, keys and `@unique` members."""
    endpoint_columns = ["src", "dst"] if isinstance(entity_type, EdgeType) else []
    return list(
        dict.fromkeys(
            [
                "id",
                *endpoint_columns,
                *(
                    column_name
                    for unique_columns in _unique_column_groups(entity_type)
                    for column_name in unique_columns
                ),
            ]
        )
    )


def _unique_column_groups(entity_type: NodeType | EdgeType) -> list[tuple[str, ...]]:
    return [constraint.columns for constraint in entity_type.constraints if isinstance(constraint, Key | Unique)]


def _find_repeated(
    entity_type: NodeType | EdgeType,
    table_delta: TableDelta,
    rows: pa.Table,
    unique_columns: Sequence[str],
    input_lines: Positions | None,
) -> Iterator[Violation]:
    tuples = _complete_tuples(rows, unique_columns)
    grouped = tuples.group_by(list(unique_columns), use_threads=False)
    counted_tuples = grouped.aggregate([(_POSITION, "min"), (_POSITION, "count")])
    if counted_tuples.num_rows == tuples.num_rows:
        return
    repeated_tuples = counted_tuples.filter(pc.greater(counted_tuples[_POSITION_COUNT], 1))
    repeated_rows = tuples.join(repeated_tuples, list(unique_columns), join_type="inner", use_threads=False)
    position_pairs = repeated_rows.select([_POSITION, _FIRST_POSITION]).sort_by(_POSITION)
    for position, first_position in zip(
        position_pairs[_POSITION].to_pylist(), position_pairs[_FIRST_POSITION].to_pylist(), strict=True
    ):
        if position != first_position:
            yield Violation(
                "@unique",
                table_delta.table_key,
                rows["id"][position].as_py(),
                _column_label(unique_columns),
                input_line=None if input_lines is None else int(input_lines[position]),
                value=_format_tuple(entity_type, rows, unique_columns, position),
                conflicting_id=rows["id"][first_position].as_py(),
                conflicting_line=None if input_lines is None else int(input_lines[first_position]),
            )


def _find_stored_holders(
    entity_type: NodeType | EdgeType, table_delta: TableDelta, unique_columns: Sequence[str], lookup: Lookup
) -> Iterator[Violation]:
    tuples = _complete_tuples(table_delta.rows, unique_columns)
    if not tuples.num_rows:
        return
    values_by_column = {
        column_name: _lookup_values(as_single_array(tuples[column_name])) for column_name in unique_columns
    }
    stored_rows = lookup.find(table_delta.table_key, values_by_column, list(dict.fromkeys(["id", *unique_columns])))
    stored_rows = stored_rows.filter(pc.invert(pc.is_in(stored_rows["id"], value_set=table_delta.ids)))
    stored_rows = stored_rows.filter(pc.invert(pc.is_in(stored_rows["id"], value_set=table_delta.removed_ids)))
    if not stored_rows.num_rows:
        return
    holders = _complete_tuples(stored_rows, unique_columns).append_column(
        _HOLDER, stored_rows["id"].take(_tuple_positions(stored_rows, unique_columns))
    )
    joined = tuples.join(holders.drop_columns([_POSITION]), list(unique_columns), join_type="inner")
    for position, holder_id in sorted(zip(joined[_POSITION].to_pylist(), joined[_HOLDER].to_pylist(), strict=True)):
        yield Violation(
            "@unique",
            table_delta.table_key,
            table_delta.ids[position].as_py(),
            _column_label(unique_columns),
            input_line=table_delta.input_line(int(table_delta.latest_positions[position])),
            value=_format_tuple(entity_type, table_delta.rows, unique_columns, position),
            conflicting_id=holder_id,
        )


def _complete_tuples(rows: pa.Table, unique_columns: Sequence[str]) -> pa.Table:
    """Return the tuples that contain no nulls, with their positions. 0.0 and -0.0 count as the same value."""
    normalized = {column_name: _normalize_zeros(as_single_array(rows[column_name])) for column_name in unique_columns}
    tuples = pa.table({**normalized, _POSITION: np.arange(rows.num_rows, dtype=np.int64)})
    for column_name in unique_columns:
        if tuples[column_name].null_count:
            tuples = tuples.filter(pc.is_valid(tuples[column_name]))
    return tuples


def _tuple_positions(rows: pa.Table, unique_columns: Sequence[str]) -> pa.Array:
    return as_single_array(_complete_tuples(rows, unique_columns)[_POSITION])


def _normalize_zeros(column: pa.Array) -> pa.Array:
    floating = pa.types.is_floating(column.type)
    return pc.add(column, pa.scalar(0.0, column.type)) if floating else column


def _lookup_values(values: pa.Array) -> pa.Array:
    """Return the distinct values to look up. A zero is included with both signs, because either may be stored."""
    distinct_values = values.unique()
    if not pa.types.is_floating(values.type):
        return distinct_values
    is_zero = pc.is_in(distinct_values, value_set=pa.array([0.0], values.type))
    with_negative_zero = (
        [distinct_values, pa.array([-0.0], values.type)] if pc.any(is_zero).as_py() else [distinct_values]
    )
    return pa.concat_arrays(with_negative_zero)


def _column_label(unique_columns: Sequence[str]) -> str | tuple[str, ...]:
    return unique_columns[0] if len(unique_columns) == 1 else tuple(unique_columns)


def _format_tuple(
    entity_type: NodeType | EdgeType, rows: pa.Table, unique_columns: Sequence[str], position: int
) -> str:
    return ", ".join(_format_value(entity_type, rows, column_name, position) for column_name in unique_columns)


def _format_value(entity_type: NodeType | EdgeType, rows: pa.Table, column_name: str, position: int) -> str:
    declared_property = entity_type.property(column_name)
    property_type = declared_property.type if declared_property is not None else _STRING_TYPE
    stored_scalar = rows[column_name][position]
    is_temporal = property_type.scalar in (ScalarType.DATE, ScalarType.DATETIME)
    return canonical_spelling(property_type, stored_scalar.value if is_temporal else stored_scalar.as_py())
