"""Process in-memory rows that may contain more than 2 GiB of text in a column.

Arrow joins the chunks of a column to take or compare its values, and fails if the result does not fit into one array.
The functions in this module process pieces of bounded size. Rows of ordinary size are always processed in a single
piece.
"""

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.types as kinds

MAX_JOINED_BYTES = 512 << 20  # values up to this size are joined into one array
_LARGE_TYPES = {pa.string(): pa.large_string(), pa.binary(): pa.large_binary()}


def split_by_size(rows: pa.Table, max_bytes: int) -> Iterator[pa.Table]:
    """Yield the rows in slices of at most `max_bytes`; a slice with a single row may be larger.

    >>> [piece.num_rows for piece in split_by_size(pa.table({"n": pa.array(range(8), pa.int64())}), 24)]
    [2, 2, 2, 2]
    """
    if rows.num_rows < 2 or rows.nbytes <= max_bytes:
        yield rows
        return
    middle = rows.num_rows // 2
    yield from split_by_size(rows.slice(0, middle), max_bytes)
    yield from split_by_size(rows.slice(middle), max_bytes)


def matching_slices(*row_tables: pa.Table) -> Iterator[tuple[pa.Table, ...]]:
    """Split all tables at the same positions, and yield each range of rows as a tuple with one slice per table.

    A range takes up at most `MAX_JOINED_BYTES` across all tables, unless it consists of a single row.
    """
    row_count = row_tables[0].num_rows
    if row_count < 2 or sum(rows.nbytes for rows in row_tables) <= MAX_JOINED_BYTES:
        yield row_tables
        return
    middle = row_count // 2
    yield from matching_slices(*(rows.slice(0, middle) for rows in row_tables))
    yield from matching_slices(*(rows.slice(middle) for rows in row_tables))


def take_positions(rows: pa.Table, positions: pa.Array) -> pa.Table:
    """Return the rows at these positions, like `rows.take`, but with as many chunks as their size requires."""
    if rows.nbytes <= MAX_JOINED_BYTES:
        return rows.take(positions)
    if _is_ascending(positions):
        is_taken = np.zeros(rows.num_rows, np.bool_)
        is_taken[positions.to_numpy()] = True
        return rows.filter(pa.array(is_taken))
    large_rows = rows.cast(_large_schema(rows.schema)).combine_chunks()
    piece_rows = max(1, MAX_JOINED_BYTES * rows.num_rows // rows.nbytes)
    pieces = [
        piece.cast(rows.schema)
        for start in range(0, len(positions), piece_rows)
        for piece in split_by_size(large_rows.take(positions.slice(start, piece_rows)), MAX_JOINED_BYTES)
    ]
    return pa.concat_tables(pieces) if pieces else rows.slice(0, 0)


def sort_by_id(rows: pa.Table) -> pa.Table:
    """Return the rows sorted by id."""
    if rows.nbytes <= MAX_JOINED_BYTES:
        return rows.sort_by("id")
    import pyarrow.compute as pc

    return take_positions(rows, pc.sort_indices(rows.select(["id"]), sort_keys=[("id", "ascending")]))


def _is_ascending(positions: pa.Array) -> bool:
    if positions.null_count:
        return False
    values = positions.to_numpy()
    return bool((values[1:] > values[:-1]).all())


def _large_schema(schema: pa.Schema) -> pa.Schema:
    return pa.schema([field.with_type(_large_type(field.type)) for field in schema])


def _large_type(data_type: pa.DataType) -> pa.DataType:
    if kinds.is_list(data_type):
        return pa.large_list(_large_type(data_type.value_type))
    return _LARGE_TYPES.get(data_type, data_type)
