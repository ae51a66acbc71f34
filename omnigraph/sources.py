"""What a load may be given, and where an export goes: files by suffix, bytes counted.

Turns CSV and Parquet into Arrow tables by type; NDJSON, records and frames pass as they are. A file
that is written appears whole or not at all. Nothing here looks at what the values mean.
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
    """The input of a load; files are closed again."""
    if form not in (None, "ndjson", *_TABLES):
        raise UsageError(reason=f"format is ndjson, csv or parquet, not {form!r}")
    if hasattr(data, "take_into") or hasattr(data, "frames"):  # files, or for Spark: as they are
        yield data
    elif isinstance(data, Mapping):
        yield {name: _table(one, form, mapping.get(name, {})) for name, one in data.items()}
    elif form in _TABLES:
        raise InputError(f"a {form} file needs the name of its type", reason='give {"Type": path}')
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
    """What is told how far a load is, if anything."""
    return _told(progress) if progress else None


def _told(progress: Progress) -> Told:
    if callable(progress):
        return progress
    tqdm = _tqdm()
    return tqdm if tqdm is not None else lambda done, total: None


def _tqdm() -> Told | None:
    """A bar of tqdm, for those who have it."""
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
    """A file that tells how many of its bytes were read."""

    def __init__(self, file: IO[bytes], total: int, told: Told) -> None:
        self.name = getattr(file, "name", "<data>")
        self._file, self._total, self._told = file, total, told
        self._done = 0

    def read(self, size: int = -1) -> bytes:
        """The next bytes."""
        found = self._file.read(size)
        self._done += len(found)
        self._told(self._done, max(self._total, self._done))
        return found


def write_lines(path: Path, lines: Iterable[bytes], *, durable: bool = False) -> int:
    """Write lines to a file, packed when it is called .gz or .zst; gives how many there were.

    They go to a file beside it first, which takes its name when it is complete. With `durable` it
    survives a crash, and a file that somebody put in its place at once is refused.
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
    """Make the new name of a file durable, and see that it is still the file that was made."""
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
    if not os.path.samestat(path.stat(), made):
        hint = "somebody else writes there: choose another place"
        raise InputError(f"{path} was replaced meanwhile", reason="replaced", hint=hint)


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
    hint = "is there room, and may you write there?"
    return InputError(f"cannot write {path}: {error.strerror}", reason="unwritable", hint=hint)
