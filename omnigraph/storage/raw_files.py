"""Read raw Lance files, including deleted rows, independently of any table version.

This module is only for verification, because it returns rows that readers no longer see. It never writes.
"""

from collections.abc import Iterator

import pyarrow as pa
from lance.file import LanceFileReader

from .batch_sizes import read_batches_of_bounded_size
from .failures import panics_as_errors
from .store import Store


def read_raw_batches(store: Store, file_name: str) -> Iterator[pa.RecordBatch]:
    """Yield all rows in a file in batches; raise `ValueError` if Lance cannot read the file."""
    try:
        with panics_as_errors():
            reader = LanceFileReader(store.root.uri_of(file_name), storage_options=store.options)
            yield from read_batches_of_bounded_size(
                file_name, lambda batch_rows: reader.read_all(batch_size=batch_rows).to_batches()
            )
    except (OSError, RuntimeError, ValueError) as error:
        raise ValueError(f"{file_name} is not a readable Lance data file") from error


def read_row_count(store: Store, file_name: str) -> int:
    """Return the row count from the footer of a file; raise `ValueError` if the file is damaged."""
    try:
        with panics_as_errors():
            reader = LanceFileReader(store.root.uri_of(file_name), storage_options=store.options)
            return int(reader.metadata().num_rows)
    except (OSError, RuntimeError, ValueError) as error:
        raise ValueError(f"{file_name} is not a readable Lance data file") from error
