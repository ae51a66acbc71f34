"""Write 32-bit floats with the fewest digits that identify them: `24.1` instead of `24.100000381469727`.

In JSON results, 32-bit floats are widened to 64 bits, and clients rely on this. CSV is text for people and
spreadsheets, so the digits that widening adds would be noise.
"""

from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from omnigraph.api.results.json_encoding import iter_json_rows

_ROWS_PER_BATCH = 8_192


def iter_short_rows(table: pa.Table) -> Iterator[dict[str, Any]]:
    """Yield each row as JSON values. Replace each 32-bit float with the 64-bit float that is written the same way.

    >>> list(iter_short_rows(pa.table({"x": pa.array([24.1, None], pa.float32())})))
    [{'x': 24.1}, {'x': None}]
    """
    if not any(_contains_short_floats(field.type) for field in table.schema):
        yield from iter_json_rows(table)
        return
    for batch in table.to_batches(max_chunksize=_ROWS_PER_BATCH):
        yield from iter_json_rows(_widen_spelling(pa.Table.from_batches([batch])))


def _widen_spelling(table: pa.Table) -> pa.Table:
    """Convert 32-bit floats to 64-bit floats through their shortest text, which Arrow's casts to strings produce."""
    columns = [_widen_column(column) for column in table.columns]
    return pa.table(columns, names=table.column_names)


def _widen_column(column: pa.ChunkedArray) -> pa.ChunkedArray:
    if not _contains_short_floats(column.type):
        return column
    text = column.cast(_replace_floats(column.type, pa.string()))
    return text.cast(_replace_floats(column.type, pa.float64()))


def _contains_short_floats(arrow_type: pa.DataType) -> bool:
    return not arrow_type.equals(_replace_floats(arrow_type, pa.float64()))


def _replace_floats(arrow_type: pa.DataType, replacement: pa.DataType) -> pa.DataType:
    """Return a type with its 32-bit floats, including those in lists and structs, replaced by another type."""
    if pa.types.is_float32(arrow_type):
        return replacement
    if pa.types.is_struct(arrow_type):
        return pa.struct([field.with_type(_replace_floats(field.type, replacement)) for field in arrow_type])
    is_fixed = pa.types.is_fixed_size_list(arrow_type)
    if not (is_fixed or pa.types.is_list(arrow_type) or pa.types.is_large_list(arrow_type)):
        return arrow_type
    item = arrow_type.value_field.with_type(_replace_floats(arrow_type.value_type, replacement))
    if is_fixed:
        return pa.list_(item, arrow_type.list_size)
    return pa.large_list(item) if pa.types.is_large_list(arrow_type) else pa.list_(item)
