"""The input of a load and the output of an export: files by suffix, with progress in bytes.

Turns CSV and Parquet into Arrow tables by type; NDJSON, records and frames pass through. An output
file appears complete or not at all. Never interprets values.
"""

import os
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

import pyarrow as pa

from omnigraph.errors import InputError, UsageError

Told = Callable[[int, int], None]
Progress = Told | bool | None
_TABLES = ("csv", "parquet")


@contextmanager
def opened(
    data: Any, form: str | None, mapping: Mapping[str, Mapping[str, str]], progress: Progress
) -> Iterator[Any]:
    """Open the input of a load; files are closed afterwards."""
    if form not in (None, "ndjson", *_TABLES):
        raise UsageError(reason=f"unknown format {form!r}; expected ndjson, csv or parquet")
    if hasattr(data, "take_into") or hasattr(data, "frames"):  # input files or Spark frames
        yield data
    elif isinstance(data, Mapping):
        yield {name: _table(one, form, mapping.get(name, {})) for name, one in data.items()}
    elif form in _TABLES:
        raise InputError(f"a {form} file needs a type name", reason='give {"Type": path}')
    elif isinstance(data, str | os.PathLike) and progress:
        with _reading(Path(data)) as file:
            yield Counted(file, Path(data).stat().st_size, _told(progress))
    else:
        yield data


def _table(one: Any, form: str | None, names: Mapping[str, str]) -> Any:
    if isinstance(one, str | os.PathLike):
        one = _read(Path(one), form or Path(one).suffix.lstrip("."))
    if not names:
        return one
    table = one if isinstance(one, pa.Table) else pa.table(one)
    return table.rename_columns([names.get(name, name) for name in table.column_names])


def _read(path: Path, form: str) -> pa.Table:
    if form not in _TABLES:
        raise InputError(f"{path}: expected a CSV or Parquet file", reason="unknown format")
    try:
        if form == "csv":
            import pyarrow.csv

            return pyarrow.csv.read_csv(path)
        import pyarrow.parquet

        return pyarrow.parquet.read_table(path)
    except (OSError, pa.ArrowInvalid) as error:
        raise InputError(f"cannot read {path}: {error}", reason="unreadable") from error


def _reading(path: Path) -> IO[bytes]:
    try:
        return path.open("rb")
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}", reason="unreadable") from error


def teller(progress: Progress) -> Told | None:
    """Return the callback that receives the progress of a load, if any."""
    return _told(progress) if progress else None


def _told(progress: Progress) -> Told:
    if callable(progress):
        return progress
    tqdm = _tqdm()
    return tqdm if tqdm is not None else lambda done, total: None


def _tqdm() -> Told | None:
    """Return a callback that updates a tqdm bar, or None if tqdm is not installed."""
    try:
        from importlib import import_module

        bar = import_module("tqdm").tqdm(unit="B", unit_scale=True)
    except ImportError:
        return None

    def tell(done: int, total: int) -> None:
        bar.total = total
        bar.update(done - bar.n)

    return tell


class Counted:
    """A file that reports how many of its bytes were read."""

    def __init__(self, file: IO[bytes], total: int, told: Told) -> None:
        self.name = getattr(file, "name", "<data>")
        self._file, self._total, self._told = file, total, told
        self._done = 0

    def read(self, size: int = -1) -> bytes:
        """Read the next bytes and report the progress."""
        found = self._file.read(size)
        self._done += len(found)
        self._told(self._done, max(self._total, self._done))
        return found


def write_lines(path: Path, lines: Iterable[bytes], *, durable: bool = False) -> int:
    """Write lines to a file, compressed if its suffix is .gz or .zst; return the line count.

    The lines go to a temporary file in the same folder, which is renamed once complete. With
    `durable` the file survives a crash, and a concurrent replacement of it is an error.
    """
    try:
        handle, scratch = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    except OSError as error:
        raise _unwritable(path, error) from error
    try:
        with os.fdopen(handle, "wb") as raw, _packing(raw, path.suffix) as out:
            count = _write(out, lines)
        Path(scratch).chmod(0o666 & ~_umask())
        made = _synced(Path(scratch)) if durable else None
        Path(scratch).replace(path)
        if made is not None:
            _settle(path, made)
    except OSError as error:
        raise _unwritable(path, error) from error
    finally:
        with suppress(FileNotFoundError):
            Path(scratch).unlink()
    return count


def _synced(path: Path) -> os.stat_result:
    with path.open("rb") as file:
        os.fsync(file.fileno())
        return os.fstat(file.fileno())


def _settle(path: Path, made: os.stat_result) -> None:
    """Make the rename of a file durable, and verify that the path still holds the written file."""
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
    if not os.path.samestat(path.stat(), made):
        hint = "another process writes to this path: choose another one"
        raise InputError(f"{path} was replaced concurrently", reason="replaced", hint=hint)


def _write(out: Any, lines: Iterable[bytes]) -> int:
    count = 0
    for line in lines:
        out.write(line)
        count += 1
    return count


@contextmanager
def _packing(raw: IO[bytes], suffix: str) -> Iterator[Any]:
    kind = {".gz": "gzip", ".zst": "zstd"}.get(suffix)
    if kind is None:
        yield raw
    else:
        with pa.CompressedOutputStream(pa.PythonFile(raw, "w"), kind) as out:
            yield out


def _umask() -> int:
    now = os.umask(0)
    os.umask(now)
    return now


def _unwritable(path: Path, error: OSError) -> InputError:
    hint = "check the free space and the permissions of the folder"
    return InputError(f"cannot write {path}: {error.strerror}", reason="unwritable", hint=hint)
