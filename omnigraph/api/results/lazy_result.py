"""The base class for query builders, which run their query when rows are needed.

The base class has the same methods as `Result`. Each method runs the query and delegates to its result.
"""

from collections.abc import Iterator
from typing import Any, Literal

import pyarrow as pa

from omnigraph.api.error_boundary import Guarded
from omnigraph.api.results.result import FilePath, Result
from omnigraph.api.results.row import Row


class LazyResult(Guarded):
    """Rows that have not been read yet. Every method of this class runs the query."""

    __slots__ = ()

    def result(self) -> Result:
        """Run the query."""
        raise NotImplementedError

    def to_arrow(self) -> pa.Table:
        """Return an Arrow table."""
        return self.result().to_arrow()

    def to_batches(self, rows: int | None = None) -> list[pa.RecordBatch]:
        """Return record batches of at most `rows` rows."""
        return self.result().to_batches(rows)

    def to_reader(self) -> pa.RecordBatchReader:
        """Return an Arrow reader."""
        return self.result().to_reader()

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Return an Arrow stream for polars, duckdb, pandas and other libraries."""
        return self.result().__arrow_c_stream__(requested_schema)

    def to_pandas(self, types: Literal["arrow", "numpy"] = "arrow") -> Any:
        """Return a pandas DataFrame."""
        return self.result().to_pandas(types)

    def to_polars(self) -> Any:
        """Return a polars DataFrame."""
        return self.result().to_polars()

    def to_numpy(self, column: str) -> Any:
        """Return one column as a NumPy array."""
        return self.result().to_numpy(column)

    def to_dicts(self) -> list[dict[str, Any]]:
        """Return each row as a dict."""
        return self.result().to_dicts()

    def to_lists(self) -> list[list[Any]]:
        """Return each row as a list."""
        return self.result().to_lists()

    def to_records(self) -> list[tuple[Any, ...]]:
        """Return each row as a tuple."""
        return self.result().to_records()

    def __iter__(self) -> Iterator[Row]:
        return iter(self.result())

    def one(self) -> Row:
        """Return the only row."""
        return self.result().one()

    def one_or_none(self) -> Row | None:
        """Return the only row, or None."""
        return self.result().one_or_none()

    def first(self) -> Row | None:
        """Return the first row, or None."""
        return self.result().first()

    def scalar(self) -> Any:
        """Return the only value."""
        return self.result().scalar()

    def scalars(self, column: str | None = None) -> list[Any]:
        """Return the values in one column."""
        return self.result().scalars(column)

    def write_parquet(self, path: FilePath) -> None:
        """Write a Parquet file."""
        self.result().write_parquet(path)

    def write_csv(self, path: FilePath) -> None:
        """Write a CSV file."""
        self.result().write_csv(path)

    def write_ndjson(self, path: FilePath) -> None:
        """Write an NDJSON file with one object per row."""
        self.result().write_ndjson(path)

    def write_ipc(self, path: FilePath) -> None:
        """Write an Arrow IPC file."""
        self.result().write_ipc(path)

    def show(self, n: int = 20) -> None:
        """Print the first rows as a table."""
        self.result().show(n)

    def _repr_html_(self) -> str:
        return self.result()._repr_html_()
