"""Read tables from Parquet and CSV files, whole or in batches, with columns renamed.

This is the only module that reads a load's Parquet input. The column types of the file are kept;
`frames` casts them to those of the schema. Callers add the file name to errors.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO

import pyarrow as pa

TableSource = Path | IO[bytes]
TABLE_FORMATS = ("csv", "parquet")
_BATCH_ROWS = 65_536


def read_table(source: TableSource, table_format: str, column_mapping: Mapping[str, str]) -> pa.Table:
    """Read a whole file."""
    if table_format == "csv":
        return rename_columns(_read_csv(source), column_mapping)
    import pyarrow.parquet as pq

    return rename_columns(pq.read_table(source), column_mapping)


def iter_tables(
    source: TableSource,
    table_format: str,
    column_mapping: Mapping[str, str],
    first_group: int = 0,
    end_group: int | None = None,
) -> Iterator[pa.Table]:
    """Yield the rows of the given row groups of a Parquet file in batches; a CSV file is one batch."""
    if table_format == "csv":
        yield rename_columns(_read_csv(source), column_mapping)
        return
    import pyarrow.parquet as pq

    parquet_file = pq.ParquetFile(source)
    groups = range(first_group, parquet_file.num_row_groups if end_group is None else end_group)
    for batch in parquet_file.iter_batches(_BATCH_ROWS, row_groups=list(groups)):
        yield rename_columns(pa.Table.from_batches([batch]), column_mapping)


def read_group_sizes(source: TableSource) -> list[int]:
    """Return the size in bytes of each row group of a Parquet file."""
    import pyarrow.parquet as pq

    metadata = pq.read_metadata(source)
    return [metadata.row_group(group).total_byte_size for group in range(metadata.num_row_groups)]


def count_rows(source: TableSource) -> int:
    """Return the number of rows in a Parquet file, without reading them."""
    import pyarrow.parquet as pq

    return int(pq.read_metadata(source).num_rows)


def rename_columns(table: pa.Table, column_mapping: Mapping[str, str]) -> pa.Table:
    """Rename the columns that the mapping contains; all others keep their names.

    >>> rename_columns(pa.table({"a": [1], "b": [2]}), {"a": "x"}).column_names
    ['x', 'b']
    """
    if not column_mapping:
        return table
    return table.rename_columns([column_mapping.get(name, name) for name in table.column_names])


def _read_csv(source: TableSource) -> pa.Table:
    import pyarrow.csv

    return pyarrow.csv.read_csv(source)
