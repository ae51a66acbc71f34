"""Open the input to a load, and report progress in bytes.

Inputs that `ingest` opens itself, such as lists of files, are passed through unchanged.
This module never interprets values.
"""

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from omnigraph.errors import InputError, UsageError
from omnigraph.ingest.table_files import rename_columns

_TABLE_FORMATS = ("csv", "parquet")
ProgressCallback = Callable[[int, int], None]
ProgressOption = ProgressCallback | bool | None


@contextmanager
def open_load_input(
    load_input: Any, file_format: str | None, column_mappings: Mapping[str, Mapping[str, str]], progress: ProgressOption
) -> Iterator[Any]:
    """Open the input to a load, and close its files at the end of the block."""
    if file_format not in (None, "ndjson", *_TABLE_FORMATS):
        raise UsageError(reason=f"unknown format {file_format!r}; expected ndjson, csv or parquet")
    if hasattr(load_input, "take_into") or hasattr(load_input, "input_files"):  # the load opens these files
        yield load_input
    elif isinstance(load_input, Mapping):
        yield {
            type_name: rename_columns(type_input, column_mappings.get(type_name, {}))
            for type_name, type_input in load_input.items()
        }
    elif file_format in _TABLE_FORMATS:
        raise InputError(f"a {file_format} file requires a type name", reason='expected {"Type": path}')
    elif isinstance(load_input, str | os.PathLike) and progress:
        with _open_for_reading(Path(load_input)) as file:
            yield ProgressReader(file, Path(load_input).stat().st_size, _make_progress_callback(progress))
    else:
        yield load_input


def _open_for_reading(input_path: Path) -> IO[bytes]:
    try:
        return input_path.open("rb")
    except OSError as error:
        raise InputError(f"cannot read {input_path}: {error.strerror}", reason="unreadable") from error


def progress_callback(progress: ProgressOption) -> ProgressCallback | None:
    """Return the callback for a `progress` option, or None if the option is not set."""
    return _make_progress_callback(progress) if progress else None


def _make_progress_callback(progress: ProgressOption) -> ProgressCallback:
    if callable(progress):
        return progress
    tqdm_callback = _tqdm_callback()
    return tqdm_callback if tqdm_callback is not None else lambda bytes_read, total_bytes: None


def _tqdm_callback() -> ProgressCallback | None:
    """Return a callback that updates a tqdm bar, or None if tqdm is not installed."""
    try:
        from importlib import import_module

        progress_bar = import_module("tqdm").tqdm(unit="B", unit_scale=True)
    except ImportError:
        return None

    def update_bar(bytes_read: int, total_bytes: int) -> None:
        progress_bar.total = total_bytes
        progress_bar.update(bytes_read - progress_bar.n)

    return update_bar


class ProgressReader:
    """A file that reports how many of its bytes have been read."""

    def __init__(self, file: IO[bytes], total_bytes: int, callback: ProgressCallback) -> None:
        self.name = getattr(file, "name", "<data>")
        self._file, self._total_bytes, self._callback = file, total_bytes, callback
        self._bytes_read = 0

    def read(self, size: int = -1) -> bytes:
        """Read the next bytes and report progress."""
        chunk = self._file.read(size)
        self._bytes_read += len(chunk)
        self._callback(self._bytes_read, max(self._total_bytes, self._bytes_read))
        return chunk
