"""Read tables from Parquet files in batches, with columns renamed.

This is the only module that reads a load's Parquet input. It keeps the file's column types; `frames` casts the columns
to the schema's types. Callers add the file name to errors.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO, Any

import pyarrow as pa

TableSource = Path | IO[bytes]
_BATCH_ROWS = 65_536


def iter_tables(
    source: TableSource, column_mapping: Mapping[str, str], first_group: int = 0, end_group: int | None = None
) -> Iterator[pa.Table]:
    """Yield, in batches, the rows from a range of row groups in a Parquet file."""
    import pyarrow.parquet as pq

    parquet_file = pq.ParquetFile(source)
    groups = range(first_group, parquet_file.num_row_groups if end_group is None else end_group)
    for batch in parquet_file.iter_batches(_BATCH_ROWS, row_groups=list(groups)):
        yield rename_columns(pa.Table.from_batches([batch]), column_mapping)


def read_group_sizes(source: TableSource) -> list[int]:
    """Return the size in bytes of each row group in a Parquet file."""
    import pyarrow.parquet as pq

    metadata = pq.read_metadata(source)
    return [metadata.row_group(group).total_byte_size for group in range(metadata.num_row_groups)]


def count_rows(source: TableSource) -> int:
    """Return the number of rows in a Parquet file, without reading them."""
    import pyarrow.parquet as pq

    return int(pq.read_metadata(source).num_rows)


def rename_columns(table: Any, column_mapping: Mapping[str, str]) -> Any:
    """Rename the columns that the mapping contains; all others keep their names.

    >>> rename_columns(pa.table({"a": [1], "b": [2]}), {"a": "x"}).column_names
    ['x', 'b']
    """
    if not column_mapping:
        return table
    arrow_table = table if isinstance(table, pa.Table) else pa.table(table)
    return arrow_table.rename_columns([column_mapping.get(name, name) for name in arrow_table.column_names])
