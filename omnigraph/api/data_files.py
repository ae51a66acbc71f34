"""The input of a load and the output of an export, with progress in bytes.

Files of several formats are opened by `ingest`; everything else is passed through unchanged. An
output file is either complete or absent. Values are never interpreted here.
"""

import os
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

import pyarrow as pa

from omnigraph.errors import InputError, UsageError
from omnigraph.ingest.table_files import rename_columns

_TABLE_FORMATS = ("csv", "parquet")
ProgressCallback = Callable[[int, int], None]
ProgressOption = ProgressCallback | bool | None


@contextmanager
def open_load_input(
    load_input: Any, file_format: str | None, column_mappings: Mapping[str, Mapping[str, str]], progress: ProgressOption
) -> Iterator[Any]:
    """Open the input of a load; close its files afterwards."""
    if file_format not in (None, "ndjson", *_TABLE_FORMATS):
        raise UsageError(reason=f"unknown format {file_format!r}; expected ndjson, csv or parquet")
    if hasattr(load_input, "take_into") or hasattr(load_input, "frames"):  # input files or Spark frames
        yield load_input
    elif isinstance(load_input, Mapping):
        yield {
            type_name: rename_columns(type_input, column_mappings.get(type_name, {}))
            for type_name, type_input in load_input.items()
        }
    elif file_format in _TABLE_FORMATS:
        raise InputError(f"a {file_format} file needs a type name", reason='give {"Type": path}')
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
    """Return the callback that receives the progress of a load, or None."""
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
    """A file that reports how many of its bytes were read."""

    def __init__(self, file: IO[bytes], total_bytes: int, callback: ProgressCallback) -> None:
        self.name = getattr(file, "name", "<data>")
        self._file, self._total_bytes, self._callback = file, total_bytes, callback
        self._bytes_read = 0

    def read(self, size: int = -1) -> bytes:
        """Read the next bytes and report the progress."""
        chunk = self._file.read(size)
        self._bytes_read += len(chunk)
        self._callback(self._bytes_read, max(self._total_bytes, self._bytes_read))
        return chunk


def write_lines(path: Path, lines: Iterable[bytes], *, durable: bool = False) -> int:
    """Write lines to a file, compressed if its suffix is .gz or .zst; return the line count.

    The lines go to a temporary file in the same folder, which is renamed once complete. With
    `durable`, the file survives a crash, and it is an error if the file is replaced concurrently.
    """
    try:
        file_descriptor, temporary_path = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    except OSError as error:
        raise unwritable_error(path, error) from error
    try:
        with os.fdopen(file_descriptor, "wb") as raw_file, _compress_by_suffix(raw_file, path.suffix) as output_file:
            line_count = _write_all(output_file, lines)
        Path(temporary_path).chmod(0o666 & ~read_umask())
        written_stat = _sync_file(Path(temporary_path)) if durable else None
        Path(temporary_path).replace(path)
        if written_stat is not None:
            _sync_rename(path, written_stat)
    except OSError as error:
        raise unwritable_error(path, error) from error
    finally:
        with suppress(FileNotFoundError):
            Path(temporary_path).unlink()
    return line_count


def _sync_file(path: Path) -> os.stat_result:
    with path.open("rb") as file:
        os.fsync(file.fileno())
        return os.fstat(file.fileno())


def _sync_rename(path: Path, written_stat: os.stat_result) -> None:
    """Make the rename of a file durable, and verify that the path still refers to the written file."""
    folder_descriptor = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder_descriptor)
    finally:
        os.close(folder_descriptor)
    if not os.path.samestat(path.stat(), written_stat):
        hint = "another process writes to this path: choose a different one"
        raise InputError(f"{path} was replaced concurrently", reason="replaced", hint=hint)


def _write_all(output_file: Any, lines: Iterable[bytes]) -> int:
    line_count = 0
    for line in lines:
        output_file.write(line)
        line_count += 1
    return line_count


@contextmanager
def _compress_by_suffix(raw_file: IO[bytes], suffix: str) -> Iterator[Any]:
    compression = {".gz": "gzip", ".zst": "zstd"}.get(suffix)
    if compression is None:
        yield raw_file
    else:
        with pa.CompressedOutputStream(pa.PythonFile(raw_file, "w"), compression) as output_file:
            yield output_file


def read_umask() -> int:
    """Return the permissions that new files of this process lack."""
    current_umask = os.umask(0)
    os.umask(current_umask)
    return current_umask


def unwritable_error(path: Path, error: OSError) -> InputError:
    """Return the error for a path that cannot be written."""
    hint = "check the folder's free space and permissions"
    return InputError(f"cannot write {path}: {error.strerror}", reason="unwritable", hint=hint)
