"""Small results kept as separate columns until a caller requests a table.

Building an Arrow table costs as much as finding a single row. A read therefore returns separate columns, from which a
table is built only on request. This module imports nothing from the engine, so that the results package can use it.
"""

from dataclasses import dataclass
from typing import Any

import pyarrow as pa


@dataclass(frozen=True, slots=True, eq=False)
class ProjectedRows:
    """The columns of a result, each in a single array.

    >>> rows = ProjectedRows(pa.schema({"n": pa.int64()}), [pa.array([1, 2])], 2)
    >>> rows.to_records(), rows.to_table().num_rows
    ([(1,), (2,)], 2)
    """

    schema: pa.Schema
    arrays: list[pa.Array]
    num_rows: int

    def to_table(self) -> pa.Table:
        """Return the rows as a table."""
        if not self.arrays:
            return pa.table({"_": pa.nulls(self.num_rows)}).select([])
        return pa.Table.from_arrays(self.arrays, schema=self.schema)

    def to_records(self) -> list[tuple[Any, ...]]:
        """Return each row as a tuple of Python values."""
        return list(zip(*[array.to_pylist() for array in self.arrays], strict=True))


def as_table(rows: pa.Table | ProjectedRows) -> pa.Table:
    """Return a result as a table, building the table if needed."""
    return rows.to_table() if isinstance(rows, ProjectedRows) else rows
