"""Read as many of the newest fragments as fit within a limit on the uncompressed size of their values.

The size of the values is known only after they have been read. This module remembers the sizes of fragments that
exceeded a limit, so that not every write has to read these fragments again. It never writes to a table.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from .fragments import read_fragments
from .store import Store
from .table import Table

_BATCH_ROWS = 256  # a batch must have less than 2 GiB of text, even if each text has several megabytes


def read_newest_rows(
    store: Store, table: Table, fragments: Sequence[Any], max_bytes: int
) -> tuple[Sequence[Any], pa.Table] | None:
    """Return the newest fragments whose values fit within `max_bytes`, and all of their rows, with row ids.

    The fragments and their rows stay in the order of `fragments`, which lists the oldest fragment first. The result is
    None if fewer than two fragments fit.
    """
    batches: list[pa.RecordBatch] = []
    sizes: dict[int, int] = {}
    for fragment in reversed(fragments):
        fragment_batches, size = _read_up_to(table, fragment, max_bytes - sum(sizes.values()))
        sizes[fragment.fragment_id] = size
        if fragment_batches is None:
            _remember_sizes(store, table, fragments, sizes)
            fragments = fragments[len(fragments) - len(sizes) + 1 :]
            break
        batches = fragment_batches + batches
    return (fragments, pa.Table.from_batches(batches)) if len(fragments) > 1 else None


def known_value_bytes(store: Store, table: Table, fragment: Any) -> int:
    """Return a lower bound on the size in bytes of the values in a fragment; 0 means that the size is unknown."""
    return store.object_cache.get(_cache_name(table, fragment)) or 0


def _read_up_to(table: Table, fragment: Any, max_bytes: int) -> tuple[list[pa.RecordBatch] | None, int]:
    """Return the rows in a fragment and their size in bytes, or None and a lower bound if they exceed `max_bytes`."""
    batches: list[pa.RecordBatch] = []
    size = 0
    columns = table.schema.names
    rows = read_fragments(
        table, [fragment.fragment_id], columns, with_row_ids=True, batch_rows=_BATCH_ROWS, batch_readahead=1
    )
    for batch in rows:
        size += batch.nbytes
        if size > max_bytes:
            return None, size
        batches.append(batch)
    return batches, size


def _remember_sizes(store: Store, table: Table, fragments: Sequence[Any], sizes: Mapping[int, int]) -> None:
    for fragment in fragments:
        if fragment.fragment_id in sizes:
            store.object_cache.put(_cache_name(table, fragment), sizes[fragment.fragment_id])


def _cache_name(table: Table, fragment: Any) -> str:
    """Return the cache key for a fragment's size, derived from the names of its immutable data files."""
    file_names = " ".join(data_file.path for data_file in fragment.metadata.files)
    return f"value bytes of {table.location} {file_names}"
