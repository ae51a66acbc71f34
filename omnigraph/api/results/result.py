"""`Result`: the rows that a read returns, which stay in Arrow format until another form is requested.

A result is immutable and holds no file, lock or connection. Use `ResultStream` for results that may not fit in memory.
"""

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field
from os import PathLike
from typing import Any, Literal, overload

import pyarrow as pa

from omnigraph.api.error_boundary import Guarded
from omnigraph.api.optional_imports import import_optional
from omnigraph.api.results import formats
from omnigraph.api.results.formats import PrintableResult, ResultFormat, TextStyle
from omnigraph.api.results.json_encoding import iter_json_rows
from omnigraph.api.results.row import Row
from omnigraph.engine.result_rows import ProjectedRows
from omnigraph.errors import InputError, UsageError
from omnigraph.errors.diagnostics import Diagnostic
from omnigraph.records.frozen import record

FilePath = str | PathLike[str]
_REPR_ROWS = 10


@record(eq=False)
class Result:
    """The rows that one query returned at one commit.

    >>> people = Result(pa.table({"p.name": ["Ada", "Bob"], "p.age": [36, None]}))
    >>> people[0].name, people.scalars("p.age"), len(people)
    ('Ada', [36, None], 2)
    """

    _rows: pa.Table | ProjectedRows = field(repr=False)
    query_name: str = "query"
    params: Mapping[str, Any] = field(default_factory=dict)
    target: Mapping[str, Any] = field(default_factory=lambda: {"branch": "main", "snapshot": None})
    commit_id: str | None = None
    elapsed: float = 0.0
    stats: Mapping[str, Any] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()
    diagnostics: tuple[Diagnostic, ...] = field(default=(), repr=False)

    # Content ------------------------------------------------------------------------------------

    @property
    def table(self) -> pa.Table:
        """The rows as an Arrow table, which is assembled on first access."""
        rows = self._rows
        if isinstance(rows, ProjectedRows):
            rows = rows.to_table()
            object.__setattr__(self, "_rows", rows)
        return rows

    @property
    def columns(self) -> tuple[str, ...]:
        """The column names, in query order."""
        return tuple(self.schema.names)

    @property
    def schema(self) -> pa.Schema:
        """The Arrow schema."""
        return self._rows.schema

    @property
    def num_rows(self) -> int:
        """The number of rows."""
        return int(self._rows.num_rows)

    def __len__(self) -> int:
        return self.num_rows

    def __bool__(self) -> bool:
        return self.num_rows > 0

    def __iter__(self) -> Iterator[Row]:
        for batch in self.table.to_batches(max_chunksize=8192):
            for row_values in zip(*(column.to_pylist() for column in batch.columns), strict=True):
                yield Row(self.columns, row_values)

    @overload
    def __getitem__(self, selection: int) -> Row: ...
    @overload
    def __getitem__(self, selection: slice) -> "Result": ...
    @overload
    def __getitem__(self, selection: str) -> pa.ChunkedArray: ...
    def __getitem__(self, selection: int | slice | str) -> Any:
        """Return a row by number, rows by slice, or a column by name."""
        if isinstance(selection, str):
            return self.table.column(self._column_index(selection))
        if isinstance(selection, slice):
            selected_range = range(self.num_rows)[selection]
            is_contiguous = selected_range.step == 1
            selected_rows = (
                self.table.slice(selected_range.start, len(selected_range))
                if is_contiguous
                else self.table.take(list(selected_range))
            )
            return self._replace_table(selected_rows)
        row_index = range(self.num_rows)[selection]
        return Row(self.columns, [column[row_index].as_py() for column in self.table.columns])

    def one(self) -> Row:
        """Return the only row. Raise an error unless there is exactly one."""
        self._require_row_count("exactly one row", (1,))
        return self[0]

    def one_or_none(self) -> Row | None:
        """Return the only row, or None if there are no rows. Raise an error if there are several."""
        self._require_row_count("at most one row", (0, 1))
        return self.first()

    def first(self) -> Row | None:
        """Return the first row, or None."""
        return self[0] if self.num_rows else None

    def scalar(self) -> Any:
        """Return the only value in a result with one row and one column."""
        self._require_row_count("exactly one row", (1,))
        self._require_single_column("scalar()")
        return self.table.column(0)[0].as_py()

    def scalars(self, column: str | None = None) -> list[Any]:
        """Return the values in one column. The name is optional if the result has only one column."""
        if column is None:
            self._require_single_column("scalars()")
        column_index = 0 if column is None else self._column_index(column)
        column_values: list[Any] = self.table.column(column_index).to_pylist()
        return column_values

    # Conversions --------------------------------------------------------------------------------

    def to_arrow(self) -> pa.Table:
        """Return the Arrow table itself."""
        return self.table

    def to_batches(self, rows: int | None = None) -> list[pa.RecordBatch]:
        """Return record batches of at most `rows` rows."""
        batches: list[pa.RecordBatch] = self.table.to_batches(max_chunksize=rows)
        return batches

    def to_reader(self) -> pa.RecordBatchReader:
        """Return a reader over the batches."""
        return self.table.to_reader()

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Return the Arrow stream that polars, duckdb, pandas and other libraries read without copying."""
        return self.table.__arrow_c_stream__(requested_schema)

    def to_pandas(self, types: Literal["arrow", "numpy"] = "arrow") -> Any:
        """Return a pandas DataFrame with Arrow types or NumPy types."""
        pandas = import_optional("pandas")
        if types not in ("arrow", "numpy"):
            raise UsageError(reason=f"`types` must be 'arrow' or 'numpy', not {types!r}")
        return self.table.to_pandas(types_mapper=pandas.ArrowDtype if types == "arrow" else None)

    def to_polars(self) -> Any:
        """Return a polars DataFrame."""
        return import_optional("polars").from_arrow(self.table)

    def to_numpy(self, column: str) -> Any:
        """Return one column as a NumPy array.

        A vector column without nulls becomes a matrix with one row per vector.
        """
        column_values = self[column].combine_chunks()
        if pa.types.is_fixed_size_list(column_values.type) and not column_values.null_count:
            dimension = column_values.type.list_size
            return column_values.flatten().to_numpy(zero_copy_only=False).reshape(-1, dimension)
        return column_values.to_numpy(zero_copy_only=False)

    def to_dicts(self) -> list[dict[str, Any]]:
        """Return each row as a dict of Python values."""
        return [dict(zip(self.columns, row, strict=True)) for row in self.to_records()]

    def to_lists(self) -> list[list[Any]]:
        """Return each row as a list of Python values."""
        return [list(row) for row in self.to_records()]

    def to_records(self) -> list[tuple[Any, ...]]:
        """Return each row as a tuple of Python values."""
        rows = self._rows
        if isinstance(rows, ProjectedRows):
            return rows.to_records()
        return list(zip(*(column.to_pylist() for column in rows.columns), strict=True))

    # Files and display --------------------------------------------------------------------------

    def write_parquet(self, path: FilePath) -> None:
        """Write a Parquet file."""
        import pyarrow.parquet

        pyarrow.parquet.write_table(self.table, path)

    def write_ipc(self, path: FilePath) -> None:
        """Write an Arrow IPC file."""
        with pa.OSFile(str(path), "wb") as output_file, pa.ipc.new_file(output_file, self.schema) as writer:
            writer.write_table(self.table)

    def write_csv(self, path: FilePath) -> None:
        """Write a CSV file in the format that the command line prints."""
        self._write_lines(path, self.render("csv"))

    def write_ndjson(self, path: FilePath) -> None:
        """Write an NDJSON file with one object per row."""
        self._write_lines(path, map(formats.compact_json, iter_json_rows(self.table)))

    def render(self, form: ResultFormat = "table", style: TextStyle | None = None) -> Iterator[str]:
        """Yield the result as lines of text. The format is `table`, `kv`, `csv`, `jsonl`, `ndjson`, `json` or `md`."""
        return formats.render(self._to_printable(), form, style)

    def show(self, n: int = 20) -> None:
        """Print the first rows as a table."""
        import sys

        rendered_lines = formats.render(PrintableResult(self.table.slice(0, n), self.query_name, self.target), "table")
        shown_lines = [self._to_printable().headline(), *list(rendered_lines)[1:]]
        footer = [f"… {self.num_rows - n} more"] if self.num_rows > n else []
        sys.stdout.write("\n".join([*shown_lines, *footer, ""]))

    def __repr__(self) -> str:
        grid_lines = formats.render_grid(self.table.slice(0, _REPR_ROWS), TextStyle(max_column_width=32))
        hidden_count = self.num_rows - _REPR_ROWS
        footer = [f"… {hidden_count} more"] if hidden_count > 0 else []
        return "\n".join([f"<Result: {self._to_printable().headline()}>", *grid_lines, *footer])

    def _repr_html_(self) -> str:
        from omnigraph.api.graph_drawing.card import graph_card
        from omnigraph.api.graph_drawing.drawn_graph import draw_table
        from omnigraph.api.results.notebook_cards import table_card

        caption_parts = [self._to_printable().headline(), f"commit {self.commit_id}", f"{self.elapsed * 1000:.1f} ms"]
        drawn_graph = draw_table(self.table)
        drawing = "" if drawn_graph is None else graph_card(drawn_graph)
        return table_card(self.table, " · ".join(caption_parts if self.commit_id else caption_parts[:1])) + drawing

    def _repr_mimebundle_(self, **_: Any) -> dict[str, str]:
        return {"text/plain": repr(self), "text/html": self._repr_html_()}

    # Helpers ------------------------------------------------------------------------------------

    def _to_printable(self) -> PrintableResult:
        return PrintableResult(self.table, self.query_name, self.target, self.commit_id)

    def _replace_table(self, table: pa.Table) -> "Result":
        from dataclasses import replace

        return replace(self, _rows=table)

    @staticmethod
    def _write_lines(path: FilePath, lines: Iterator[str]) -> None:
        with open(path, "w", encoding="utf-8", newline="") as output_file:  # noqa: PTH123
            output_file.writelines(f"{line}\n" for line in lines)

    def _column_index(self, column_name: str) -> int:
        return find_column_index(column_name, self.columns)

    def _require_single_column(self, method_name: str) -> None:
        if self.table.num_columns != 1:
            column_count = self.table.num_columns
            raise InputError(f"{method_name} requires exactly one column; the result has {column_count}")

    def _require_row_count(self, expectation: str, allowed_counts: Sequence[int]) -> None:
        if self.num_rows not in allowed_counts:
            raise InputError(f"expected {expectation}, found {self.num_rows}", reason="row count")


def find_column_index(column_name: str, columns: Sequence[str]) -> int:
    """Find a column by name, or by the last part of its name if that is unambiguous, and return its index.

    >>> find_column_index("age", ("p.name", "p.age"))
    1
    """
    if column_name in columns:
        return columns.index(column_name)
    matching_indexes = [
        column_index
        for column_index, candidate_name in enumerate(columns)
        if candidate_name.rpartition(".")[2] == column_name
    ]
    if len(matching_indexes) == 1:
        return matching_indexes[0]
    known_names = ", ".join(columns)
    message = f"unknown column '{column_name}'; available columns: {known_names}"
    raise InputError(message, reason="unknown column")


class ResultStream(Guarded):
    """A stream of record batches, for results that may not fit in memory. Close it, or use it in a `with` block.

    Each batch can be read only once.
    """

    def __init__(
        self,
        schema: pa.Schema,
        batches: Iterator[pa.RecordBatch],
        *,
        query_name: str = "query",
        target: Mapping[str, Any] | None = None,
        commit_id: str | None = None,
        on_close: Callable[[int], None] | None = None,
    ) -> None:
        self.schema = schema
        self.query_name = query_name
        self.target = dict(target or {"branch": "main", "snapshot": None})
        self.commit_id = commit_id
        self.rows = 0
        self._batches: Iterator[pa.RecordBatch] | None = batches
        self._on_close = on_close

    @property
    def columns(self) -> tuple[str, ...]:
        """The column names."""
        return tuple(self.schema.names)

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        return self

    def __next__(self) -> pa.RecordBatch:
        if self._batches is None:
            raise StopIteration
        try:
            batch = next(self._batches)
        except StopIteration:
            self.close()
            raise
        self.rows += batch.num_rows
        return batch

    def iter_rows(self) -> Iterator[Row]:
        """Yield the rows one at a time."""
        for batch in self:
            for row_values in zip(*(column.to_pylist() for column in batch.columns), strict=True):
                yield Row(self.columns, row_values)

    def to_reader(self) -> pa.RecordBatchReader:
        """Return the remaining batches as an Arrow reader."""
        return pa.RecordBatchReader.from_batches(self.schema, self)

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Return the remaining batches as an Arrow stream."""
        return self.to_reader().__arrow_c_stream__(requested_schema)

    def close(self) -> None:
        """Close the stream without reading the remaining batches."""
        batches, self._batches = self._batches, None
        if batches is not None:
            close_batches = getattr(batches, "close", None)
            if close_batches is not None:
                close_batches()
            if self._on_close is not None:
                self._on_close(self.rows)

    def __enter__(self) -> "ResultStream":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:
        if getattr(self, "_batches", None) is not None:
            warnings.warn(f"unclosed {self!r}", ResourceWarning, source=self, stacklevel=2)
            self.close()

    def __repr__(self) -> str:
        stream_state = "closed" if self._batches is None else "open"
        return f"<ResultStream: {self.query_name}, {stream_state}, {self.rows} rows read>"
