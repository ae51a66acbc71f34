"""Estimate how many bytes of text the fragments of a table contain before compression.

Manifests record only the compressed size of a file, which can be several thousand times smaller. Small fragments are
therefore read completely, and large ones are sampled. Values of fixed size do not count. This module never writes.
"""

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from omnigraph.errors import StorageError

from .batch_sizes import has_long_values
from .blobs import is_blob_field
from .bounded_scans import scan_table_batches, take_from_fragment
from .failures import as_storage_errors
from .scan import ROW_ADDRESS
from .table import Table

UNMEASURED_ROWS = 256  # fewer rows than this are never too much text for a fragment, unless each has megabytes
_SAMPLE_ROWS = 128  # number of rows to read at the start, in the middle and at the end of a large fragment


def estimate_text_bytes(table: Table, fragments: Sequence[Any]) -> dict[int, int]:
    """Return the estimated size of the texts and lists in each fragment. Fragments that cannot be read count as empty.

    Nothing is read if the fragments have only a few rows altogether.
    """
    columns = _long_columns(table)
    if not columns or sum(fragment.physical_rows for fragment in fragments) <= UNMEASURED_ROWS:
        return {}
    small_fragments = [fragment for fragment in fragments if fragment.physical_rows <= UNMEASURED_ROWS]
    try:
        with as_storage_errors("none"):
            sizes = _measure_fragments(table, small_fragments, columns) if small_fragments else {}
            for fragment in fragments:
                if fragment.physical_rows > UNMEASURED_ROWS:
                    sizes[fragment.fragment_id] = _estimate_from_sample(table, fragment, columns)
    except (StorageError, pa.ArrowException, ValueError, RuntimeError):
        return {}  # damage must not make planning fail; it is reported when the files are verified or read
    return sizes


def _long_columns(table: Table) -> list[str]:
    schema = table.schema
    return [
        field.name for field in schema if not is_blob_field(field) and has_long_values(pa.schema([field]), [field.name])
    ]


def _measure_fragments(table: Table, fragments: Sequence[Any], columns: Sequence[str]) -> dict[int, int]:
    sizes: dict[int, int] = {}
    for batch in scan_table_batches(table, columns, fragments=list(fragments), with_row_address=True):
        fragment_id = batch[ROW_ADDRESS][0].as_py() >> 32  # a batch never spans fragments
        sizes[fragment_id] = sizes.get(fragment_id, 0) + batch.nbytes
    return sizes


def _estimate_from_sample(table: Table, fragment: Any, columns: Sequence[str]) -> int:
    row_count = fragment.count_rows()
    middle, last_start = row_count // 2, max(row_count - _SAMPLE_ROWS, 0)
    positions = sorted(
        {
            position
            for start in (0, middle, last_start)
            for position in range(start, min(start + _SAMPLE_ROWS, row_count))
        }
    )
    if not positions:
        return 0
    sample = take_from_fragment(table, fragment, positions, columns)
    return int(sample.nbytes * row_count // len(positions))
