"""Write a result to a file, as Arrow, Parquet, CSV, NDJSON or text.

The file's suffix determines the format. A regular file is replaced atomically. Pipes and devices are written to
directly.
"""

import io
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Literal

import pyarrow as pa

from omnigraph.api.output_files import open_output, unwritable_error, write_lines
from omnigraph.api.results.formats import ResultFormat, TextStyle
from omnigraph.api.results.result import Result
from omnigraph.errors import InputError

ResultFileFormat = ResultFormat | Literal["arrow", "parquet", "ndjson"]
BINARY_FORMATS = ("arrow", "parquet")
_FORMATS_BY_SUFFIX: dict[str, ResultFileFormat] = {
    ".arrow": "arrow",
    ".feather": "arrow",
    ".parquet": "parquet",
    ".csv": "csv",
    ".ndjson": "ndjson",
    ".jsonl": "ndjson",
    ".json": "json",
    ".md": "md",
}
_COMPRESSION_SUFFIXES = (".gz", ".zst")


def choose_file_format(path: Path) -> ResultFileFormat | None:
    """Return the format that a file name implies, or None.

    >>> choose_file_format(Path("people.csv.gz")), choose_file_format(Path("people"))
    ('csv', None)
    """
    suffix = path.suffix.lower()
    if suffix in _COMPRESSION_SUFFIXES:
        suffix = path.with_suffix("").suffix.lower()
    return _FORMATS_BY_SUFFIX.get(suffix)


def write_result_file(result: Result, path: Path, form: ResultFileFormat, style: TextStyle | None = None) -> None:
    """Write a result to a file. Text formats are compressed if the suffix is .gz or .zst."""
    if form not in BINARY_FORMATS:
        write_lines(path, (f"{line}\n".encode() for line in render_lines(result, form, style)))
        return
    if path.suffix in _COMPRESSION_SUFFIXES:
        reason = f"{form} files are already compressed; omit the suffix {path.suffix}"
        raise InputError(f"cannot write {path}: {reason}", reason=reason)
    try:
        with open_output(path) as output_file:
            copy_binary(result, form, output_file)
    except OSError as error:
        raise unwritable_error(path, error) from error


def render_lines(result: Result, form: ResultFileFormat, style: TextStyle | None = None) -> Iterator[str]:
    """Yield a result as lines of text. The format `ndjson` has one object per row, without metadata."""
    return result.render(form, style)  # type: ignore[arg-type]


def copy_binary(result: Result, form: ResultFileFormat, output_file: IO[bytes]) -> None:
    """Write a result in Arrow or Parquet format to an open file, which may be a pipe."""
    if isinstance(output_file, io.BufferedWriter) and output_file.seekable():
        _write_binary(result.table, form, output_file)
        return
    with tempfile.TemporaryFile() as temporary_file:
        _write_binary(result.table, form, temporary_file)
        temporary_file.seek(0)
        shutil.copyfileobj(temporary_file, output_file)


def _write_binary(table: pa.Table, form: ResultFileFormat, output_file: IO[bytes]) -> None:
    if form == "parquet":
        import pyarrow.parquet

        pyarrow.parquet.write_table(table, output_file)
        return
    with pa.ipc.new_file(output_file, table.schema) as writer:
        writer.write_table(table)
