"""Result: the rows that a read returns. Data stay in Arrow until another form is requested.

Owns the conversions and the ways to read rows. A result is immutable and holds no file, lock or
connection; `ResultStream` is the counterpart for results that need not fit in memory.
"""

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from os import PathLike
from typing import Any, Literal, overload

import pyarrow as pa

from omnigraph import formats
from omnigraph.boundary import Guarded
from omnigraph.encode import json_rows
from omnigraph.errors import InputError, UsageError
from omnigraph.extras import extra
from omnigraph.formats import Form, Page, Style
from omnigraph.row import Row

Path = str | PathLike[str]
_SHOWN = 10


@dataclass(frozen=True, slots=True, eq=False)
class Result:
    """The rows of one query, at one commit.

    >>> people = Result(pa.table({"p.name": ["Ada", "Bob"], "p.age": [36, None]}))
    >>> people[0].name, people.scalars("p.age"), len(people)
    ('Ada', [36, None], 2)
    """

    table: pa.Table = field(repr=False)
    query_name: str = "query"
    params: Mapping[str, Any] = field(default_factory=dict)
    target: Mapping[str, Any] = field(default_factory=lambda: {"branch": "main", "snapshot": None})
    commit_id: str | None = None
    elapsed: float = 0.0
    stats: Mapping[str, Any] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()

    # Content ------------------------------------------------------------------------------------

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns, in the order of the query."""
        return tuple(self.table.column_names)

    @property
    def schema(self) -> pa.Schema:
        """The Arrow schema."""
        return self.table.schema

    @property
    def num_rows(self) -> int:
        """The number of rows."""
        return int(self.table.num_rows)

    def __len__(self) -> int:
        return self.num_rows

    def __bool__(self) -> bool:
        return self.num_rows > 0

    def __iter__(self) -> Iterator[Row]:
        for batch in self.table.to_batches(max_chunksize=8192):
            for values in zip(*(column.to_pylist() for column in batch.columns), strict=True):
                yield Row(self.columns, values)

    @overload
    def __getitem__(self, wanted: int) -> Row: ...
    @overload
    def __getitem__(self, wanted: slice) -> "Result": ...
    @overload
    def __getitem__(self, wanted: str) -> pa.ChunkedArray: ...
    def __getitem__(self, wanted: int | slice | str) -> Any:
        """Return a row by number, rows by slice, or a column by name."""
        if isinstance(wanted, str):
            return self.table.column(self._place(wanted))
        if isinstance(wanted, slice):
            kept = range(self.num_rows)[wanted]
            plain = kept.step == 1
            rows = self.table.slice(kept.start, len(kept)) if plain else self.table.take(list(kept))
            return self._with(rows)
        at = range(self.num_rows)[wanted]
        return Row(self.columns, [column[at].as_py() for column in self.table.columns])

    def one(self) -> Row:
        """Return the only row; raise if there is not exactly one."""
        self._count("exactly one row", (1,))
        return self[0]

    def one_or_none(self) -> Row | None:
        """Return the only row, or None if there is none; raise if there are several."""
        self._count("at most one row", (0, 1))
        return self.first()

    def first(self) -> Row | None:
        """Return the first row, or None."""
        return self[0] if self.num_rows else None

    def scalar(self) -> Any:
        """Return the only value: one row of one column."""
        self._count("exactly one row", (1,))
        self._single("scalar()")
        return self.table.column(0)[0].as_py()

    def scalars(self, column: str | None = None) -> list[Any]:
        """Return the values of one column; the name is optional if there is only one."""
        if column is None:
            self._single("scalars()")
        place = 0 if column is None else self._place(column)
        values: list[Any] = self.table.column(place).to_pylist()
        return values

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
        """Return the Arrow stream that polars, duckdb, pandas and others read without copying."""
        return self.table.__arrow_c_stream__(requested_schema)

    def to_pandas(self, types: Literal["arrow", "numpy"] = "arrow") -> Any:
        """Return a pandas DataFrame, with Arrow types or with numpy types."""
        pandas = extra("pandas")
        if types not in ("arrow", "numpy"):
            raise UsageError(reason=f"types must be 'arrow' or 'numpy', not {types!r}")
        return self.table.to_pandas(types_mapper=pandas.ArrowDtype if types == "arrow" else None)

    def to_polars(self) -> Any:
        """Return a polars DataFrame."""
        return extra("polars").from_arrow(self.table)

    def to_numpy(self, column: str) -> Any:
        """Return one column as a numpy array; vectors become a matrix."""
        chunks = self[column].combine_chunks()
        if pa.types.is_fixed_size_list(chunks.type) and not chunks.null_count:
            width = chunks.type.list_size
            return chunks.flatten().to_numpy(zero_copy_only=False).reshape(-1, width)
        return chunks.to_numpy(zero_copy_only=False)

    def to_dicts(self) -> list[dict[str, Any]]:
        """Return each row as a dict of Python values."""
        return [dict(zip(self.columns, row, strict=True)) for row in self.to_records()]

    def to_lists(self) -> list[list[Any]]:
        """Return each row as a list of Python values."""
        return [list(row) for row in self.to_records()]

    def to_records(self) -> list[tuple[Any, ...]]:
        """Return each row as a tuple of Python values."""
        return list(zip(*(column.to_pylist() for column in self.table.columns), strict=True))

    # Files and display --------------------------------------------------------------------------

    def write_parquet(self, path: Path) -> None:
        """Write a Parquet file."""
        import pyarrow.parquet

        pyarrow.parquet.write_table(self.table, path)

    def write_ipc(self, path: Path) -> None:
        """Write an Arrow IPC file."""
        with pa.OSFile(str(path), "wb") as out, pa.ipc.new_file(out, self.schema) as writer:
            writer.write_table(self.table)

    def write_csv(self, path: Path) -> None:
        """Write a CSV file, as the command line prints it."""
        self._write(path, self.render("csv"))

    def write_ndjson(self, path: Path) -> None:
        """Write one JSON object per row."""
        self._write(path, map(formats.compact, json_rows(self.table)))

    def render(self, form: Form = "table", style: Style | None = None) -> Iterator[str]:
        """Yield the result as text, line by line: table, kv, csv, jsonl, json or md."""
        return formats.render(self._page(), form, style)

    def show(self, n: int = 20) -> None:
        """Print the first rows as a table."""
        import sys

        page = formats.render(Page(self.table.slice(0, n), self.query_name, self.target), "table")
        lines = [self._page().headline(), *list(page)[1:]]
        more = [f"… {self.num_rows - n} more"] if self.num_rows > n else []
        sys.stdout.write("\n".join([*lines, *more, ""]))

    def __repr__(self) -> str:
        rows = formats.grid(self.table.slice(0, _SHOWN), Style(widest=32))
        left = self.num_rows - _SHOWN
        more = [f"… {left} more"] if left > 0 else []
        return "\n".join([f"<Result: {self._page().headline()}>", *rows, *more])

    def _repr_html_(self) -> str:
        from omnigraph.notebook import table_card

        told = [
            self._page().headline(),
            f"commit {self.commit_id}",
            f"{self.elapsed * 1000:.1f} ms",
        ]
        return table_card(self.table, " · ".join(told if self.commit_id else told[:1]))

    def _repr_mimebundle_(self, **_: Any) -> dict[str, str]:
        return {"text/plain": repr(self), "text/html": self._repr_html_()}

    # Helpers ------------------------------------------------------------------------------------

    def _page(self) -> Page:
        return Page(self.table, self.query_name, self.target, self.commit_id)

    def _with(self, table: pa.Table) -> "Result":
        from dataclasses import replace

        return replace(self, table=table)

    @staticmethod
    def _write(path: Path, lines: Iterator[str]) -> None:
        with open(path, "w", encoding="utf-8", newline="") as out:  # noqa: PTH123
            out.writelines(f"{line}\n" for line in lines)

    def _place(self, name: str) -> int:
        return place_of(name, self.columns)

    def _single(self, what: str) -> None:
        if self.table.num_columns != 1:
            count = self.table.num_columns
            raise InputError(f"{what} needs exactly one column; the result has {count}")

    def _count(self, wanted: str, allowed: Sequence[int]) -> None:
        if self.num_rows not in allowed:
            raise InputError(f"expected {wanted}, found {self.num_rows}", reason="row count")


def place_of(name: str, columns: Sequence[str]) -> int:
    """Return the index of a column by its name, or by an unambiguous last part of its name.

    >>> place_of("age", ("p.name", "p.age"))
    1
    """
    if name in columns:
        return columns.index(name)
    last = [at for at, one in enumerate(columns) if one.rpartition(".")[2] == name]
    if len(last) == 1:
        return last[0]
    known = ", ".join(columns)
    message = f"unknown column '{name}'; the columns are {known}"
    raise InputError(message, reason="unknown column")


class ResultStream(Guarded):
    """Record batches of one snapshot that need not fit in memory. Close it, or use `with`.

    Each batch can be read once.
    """

    def __init__(
        self,
        schema: pa.Schema,
        batches: Iterator[pa.RecordBatch],
        *,
        query_name: str = "query",
        target: Mapping[str, Any] | None = None,
        commit_id: str | None = None,
        done: Callable[[int], None] | None = None,
    ) -> None:
        self.schema = schema
        self.query_name = query_name
        self.target = dict(target or {"branch": "main", "snapshot": None})
        self.commit_id = commit_id
        self.rows = 0
        self._batches: Iterator[pa.RecordBatch] | None = batches
        self._done = done

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns."""
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
        """Yield row by row."""
        for batch in self:
            for values in zip(*(column.to_pylist() for column in batch.columns), strict=True):
                yield Row(self.columns, values)

    def to_reader(self) -> pa.RecordBatchReader:
        """Return the remaining batches as an Arrow reader."""
        return pa.RecordBatchReader.from_batches(self.schema, self)

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Return the remaining batches as an Arrow stream."""
        return self.to_reader().__arrow_c_stream__(requested_schema)

    def close(self) -> None:
        """Close the stream; remaining batches are not read."""
        batches, self._batches = self._batches, None
        if batches is not None:
            close = getattr(batches, "close", None)
            if close is not None:
                close()
            if self._done is not None:
                self._done(self.rows)

    def __enter__(self) -> "ResultStream":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:
        if getattr(self, "_batches", None) is not None:
            warnings.warn(f"unclosed {self!r}", ResourceWarning, source=self, stacklevel=2)
            self.close()

    def __repr__(self) -> str:
        state = "closed" if self._batches is None else "open"
        return f"<ResultStream: {self.query_name}, {state}, {self.rows} rows read>"
