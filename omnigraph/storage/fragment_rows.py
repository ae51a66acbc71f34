"""Read the rows and row ids of selected fragments."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from .bounded_scans import scan_table
from .scan import ROW_ID
from .table import Table

StoredRowIds = npt.NDArray[np.uint64]


def read_fragments(table: Table, fragments: Sequence[Any], columns: Sequence[str]) -> pa.Table:
    """Return the given columns for all rows in the fragments, with `_rowid`."""
    if not fragments:
        column_fields = [table.schema.field(column_name) for column_name in columns]
        return pa.schema([*column_fields, pa.field(ROW_ID, pa.uint64())]).empty_table()
    return scan_table(table, columns, fragments=list(fragments), with_row_id=True)


def fragment_row_ids(table: Table, fragment: Any) -> StoredRowIds:
    """Return the row ids of one fragment, excluding deleted rows."""
    return read_row_ids(table, [fragment])


def read_row_ids(table: Table, fragments: Sequence[Any]) -> StoredRowIds:
    """Return the row ids of several fragments, excluding deleted rows."""
    row_ids: StoredRowIds = read_fragments(table, fragments, [])[ROW_ID].to_numpy()
    return row_ids
