"""Write the output files of exports, baselines, queries and blobs.

A regular file is replaced atomically: it is either complete or unchanged, and a symbolic link stays a
link. The same holds for an S3 object. A pipe, a device or a terminal is written to directly, because
replacing it would destroy it.
"""

import io
import os
import re
import stat
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

from omnigraph.errors import InputError

# Names of open descriptors and devices, such as /dev/stdout, even if they refer to a regular file.
_SYSTEM_DIRECTORIES = ("/dev/", "/proc/")
# Opening such a name again would truncate a file that the descriptor is redirected to.
_DESCRIPTOR_PATTERN = re.compile(r"/dev/(stdout|stderr|fd/([0-9]{1,9}))")
_BLOCK_BYTES = 8 << 20  # number of bytes per write to an object store
_NAMED_DESCRIPTORS = {"stdout": 1, "stderr": 2}


def write_lines(path: Path, lines: Iterable[bytes], *, durable: bool = False) -> int:
    """Write lines to a file, compressed if its suffix is .gz or .zst. Return the number of lines.

    A line may consist of several items; only its last item ends in a newline.

    With `durable`, the file survives a crash, and it is an error if another process replaces the file in the meantime.
    """
    with (
        _report_unwritable(path),
        open_output(path, durable=durable) as raw_file,
        _compress_by_suffix(raw_file, path.suffix) as output_file,
    ):
        return _write_all(output_file, lines)


def write_export(path: str | os.PathLike[str], lines: Iterable[bytes]) -> int:
    """Write lines to a file or an S3 object, compressed if its suffix is .gz or .zst. Return the number of lines."""
    from omnigraph.storage.plain_objects import is_s3_uri

    return write_lines_to_s3(os.fspath(path), lines) if is_s3_uri(path) else write_lines(Path(path), lines)


def write_lines_to_s3(uri: str, lines: Iterable[bytes]) -> int:
    """Write lines to an S3 object, compressed if its suffix is .gz or .zst; return the line count."""
    from omnigraph.storage.plain_objects import write_object

    line_count = 0

    def counted_lines() -> Iterator[bytes]:
        nonlocal line_count
        for line in lines:
            line_count += line.endswith(b"\n")
            yield line

    write_object(uri, _compressed_blocks(counted_lines(), Path(uri).suffix))
    return line_count


def _compressed_blocks(lines: Iterable[bytes], suffix: str) -> Iterator[bytes]:
    """Yield the lines in compressed blocks, without holding the whole text in memory."""
    buffer = io.BytesIO()
    with _compress_by_suffix(_KeepBuffer(buffer), suffix) as output_file:
        for line in lines:
            output_file.write(line)
            if buffer.tell() >= _BLOCK_BYTES:
                yield buffer.getvalue()
                buffer.seek(0)
                buffer.truncate()
    if buffer.tell():
        yield buffer.getvalue()


class _KeepBuffer(io.RawIOBase):
    """A file that appends to a buffer. Closing the file leaves the buffer open."""

    def __init__(self, buffer: io.BytesIO) -> None:
        self._buffer = buffer

    def writable(self) -> bool:
        """Return True."""
        return True

    def write(self, chunk: Any) -> int:
        """Append bytes."""
        return self._buffer.write(chunk)


@contextmanager
def open_output(path: Path, *, sync: bool = False, durable: bool = False) -> Iterator[IO[bytes]]:
    """Open a file for writing. The path gets the new content only if the block succeeds.

    The content is first written to a temporary file in the same folder, which is renamed once it is complete. If `sync`
    is true, the content is flushed to disk before the rename. Pipes and devices are written to directly.
    """
    if is_written_directly(path):
        with _open_directly(path) as output_file:
            yield output_file
        return
    target = Path(os.path.realpath(path))
    file_descriptor, temporary_path = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
    try:
        with os.fdopen(file_descriptor, "wb") as output_file:
            yield output_file
        Path(temporary_path).chmod(0o666 & ~read_umask())
        written_stat = _sync_file(Path(temporary_path)) if sync or durable else None
        Path(temporary_path).replace(target)
        if durable and written_stat is not None:
            _sync_rename(target, written_stat)
    finally:
        with suppress(FileNotFoundError):
            Path(temporary_path).unlink()


def _open_directly(path: Path) -> IO[bytes]:
    """Open a pipe or device. An open descriptor such as /dev/stdout is written to at its current position."""
    descriptor_match = _DESCRIPTOR_PATTERN.fullmatch(str(path))
    if descriptor_match is None:
        return path.open("wb")
    descriptor = _NAMED_DESCRIPTORS.get(descriptor_match[1])
    return os.fdopen(os.dup(int(descriptor_match[2]) if descriptor is None else descriptor), "wb")


@contextmanager
def _report_unwritable(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise unwritable_error(path, error) from error


def is_written_directly(path: Path) -> bool:
    """Return whether a path refers to a pipe, a device or an open descriptor."""
    if str(path.absolute()).startswith(_SYSTEM_DIRECTORIES):
        return True
    try:
        mode = path.stat().st_mode
    except OSError:
        return False
    return not stat.S_ISREG(mode) and not stat.S_ISDIR(mode)


def _sync_file(path: Path) -> os.stat_result:
    with path.open("rb") as file:
        os.fsync(file.fileno())
        return os.fstat(file.fileno())


def _sync_rename(path: Path, written_stat: os.stat_result) -> None:
    """Make a file's rename durable, and verify that the path still refers to the written file."""
    folder_descriptor = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder_descriptor)
    finally:
        os.close(folder_descriptor)
    if not os.path.samestat(path.stat(), written_stat):
        hint = "another process is writing to this path; choose a different path"
        raise InputError(f"{path} was replaced concurrently", reason="replaced", hint=hint)


def _write_all(output_file: Any, lines: Iterable[bytes]) -> int:
    line_count = 0
    for line in lines:
        output_file.write(line)
        line_count += line.endswith(b"\n")
    return line_count


@contextmanager
def _compress_by_suffix(raw_file: Any, suffix: str) -> Iterator[Any]:
    compression = {".gz": "gzip", ".zst": "zstd"}.get(suffix)
    if compression is None:
        yield raw_file
    else:
        import pyarrow as pa  # imported lazily, because only compressed files need it

        with pa.CompressedOutputStream(pa.PythonFile(raw_file, "w"), compression) as output_file:
            yield output_file


def read_umask() -> int:
    """Return this process's umask, that is, the permission bits that new files do not get."""
    current_umask = os.umask(0)
    os.umask(current_umask)
    return current_umask


def unwritable_error(path: Path, error: OSError) -> InputError:
    """Return the error for a path that cannot be written to."""
    hint = "check the folder's free space and permissions"
    return InputError(f"cannot write {path}: {error.strerror}", reason="unwritable", hint=hint)
