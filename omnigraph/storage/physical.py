"""Files of Lance as they are on the store, whatever version names them and whatever is deleted.

For proofs only: it sees rows that no reader sees any more. It never writes.
"""

from collections.abc import Iterator

import pyarrow as pa
from lance.file import LanceFileReader

from .failures import unpanicked
from .store import Store

_ROWS = 8_192


def stored_batches(store: Store, name: str) -> Iterator[pa.RecordBatch]:
    """All rows of one file, in batches; a file that Lance cannot read raises `ValueError`."""
    try:
        with unpanicked():
            reader = LanceFileReader(store.root.at(name), storage_options=store.options)
            yield from reader.read_all(batch_size=_ROWS).to_batches()
    except (OSError, RuntimeError, ValueError) as error:
        raise ValueError(f"{name} is no file of rows") from error


def open_file(store: Store, name: str) -> int:
    """Read what stands at the end of a file; gives its rows. Damage raises `ValueError`."""
    try:
        with unpanicked():
            reader = LanceFileReader(store.root.at(name), storage_options=store.options)
            return int(reader.metadata().num_rows)
    except (OSError, RuntimeError, ValueError) as error:
        raise ValueError(f"{name} is no file of rows") from error
