"""`graph.scan()`: one type at one commit as a polars LazyFrame.

Polars requests the columns and the number of rows that it needs. Only these columns and rows are read, one batch at a
time. Polars itself applies filters to each batch.
"""

from collections.abc import Iterator
from typing import Any

from omnigraph.api.handle import Handle
from omnigraph.api.optional_imports import import_optional
from omnigraph.history.revisions import Revision
from omnigraph.lang.schema.type_names import resolve_type
from omnigraph.storage.blobs import columns_without_blobs
from omnigraph.storage.scan import scan_batches
from omnigraph.values.table_key import TableKey

_BATCH_ROWS = 65_536


def scan(
    handle: Handle,
    type_name: str,
    /,
    *,
    kind: str | None = None,
    branch: str | None = None,
    at: Revision | None = None,
) -> Any:
    """Return a type as a polars LazyFrame. Its columns are `id`, the properties and, for edges, `src` and `dst`.

    The frame is pinned to one commit. A node type takes precedence over an edge type with the same name, unless `kind`
    is `edge`. Blob properties are not included.

    >>> from omnigraph import testing
    >>> with testing.graph("node Person { name: String @key  age: I32? }") as graph:
    ...     _ = graph.insert("Person", {"name": "ada", "age": 36}, {"name": "bob", "age": 25})
    ...     graph.scan("Person").sort("age").select("name").collect().to_dicts()
    [{'name': 'bob'}, {'name': 'ada'}]

    Raises `ImportError` if polars is not installed, and `InputError` for an unknown type.
    """
    polars = import_optional("polars")
    from polars.io.plugins import register_io_source

    snapshot = handle.for_read(branch, at).latest_snapshot()
    entity_type = resolve_type(snapshot.schema.ir.catalog, type_name, kind)
    table = snapshot.table(TableKey.of(entity_type.kind, type_name))
    columns = columns_without_blobs(table.schema)
    empty_table = table.schema.empty_table().select(columns)

    def read_frames(
        with_columns: list[str] | None, predicate: Any, n_rows: int | None, batch_size: int | None
    ) -> Iterator[Any]:
        batches = scan_batches(table, with_columns or columns, batch_rows=batch_size or _BATCH_ROWS)
        frames = (polars.from_arrow(batch) for batch in batches)
        filtered_frames = frames if predicate is None else (frame.filter(predicate) for frame in frames)
        yield from filtered_frames if n_rows is None else _limit_rows(filtered_frames, n_rows)

    return register_io_source(io_source=read_frames, schema=polars.from_arrow(empty_table).schema)


def _limit_rows(frames: Iterator[Any], row_limit: int) -> Iterator[Any]:
    """Yield frames with at most `row_limit` rows in total. The last frame is truncated to fit."""
    remaining_rows = row_limit
    for frame in frames:
        if remaining_rows <= 0:
            return
        yield frame.head(remaining_rows)
        remaining_rows -= frame.height
