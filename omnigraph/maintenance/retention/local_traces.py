"""Search files outside a graph, such as folders of rejected records, for the id of an erased entity.

A file contains a trace if it contains the bytes of the id, compressed or not.
"""

from collections.abc import Iterator, Sequence
from os import PathLike
from pathlib import Path

from omnigraph.errors import InputError

from .absence_report import ResidualTrace
from .unpack_files import read_unpacked

_MIN_BINARY_MATCH = 4  # minimum id length in bytes; a shorter id occurs by chance in every large binary file
Paths = str | PathLike[str] | Sequence[str | PathLike[str]]


def find_local_traces(entity_id: str, paths: Paths) -> tuple[list[ResidualTrace], int, int]:
    """Return the traces in files and folders, the number of files searched, and their total size in bytes."""
    traces, file_count, byte_count = [], 0, 0
    for path in expand_paths(paths):
        file_count, byte_count = file_count + 1, byte_count + path.stat().st_size
        if file_contains_id(path, entity_id.encode()):
            traces.append(ResidualTrace(str(path), "bytes"))
    return traces, file_count, byte_count


def expand_paths(paths: Paths) -> Iterator[Path]:
    """Yield the given files, and all files in the given folders. Raise `InputError` for a path that does not exist."""
    for path in map(Path, [paths] if isinstance(paths, str | PathLike) else paths):
        if not path.exists():  # a missing file does not prove that the entity is absent
            raise InputError(f"no such file or folder: {path}", reason="unknown path")
        if path.is_file():
            yield path
        elif path.is_dir():
            yield from sorted(nested_path for nested_path in path.rglob("*") if nested_path.is_file())


def contains_id_bytes(body: bytes, id_bytes: bytes, *, is_binary: bool) -> bool:
    """Return whether bytes contain an id. A short id is not searched for in binary data."""
    return id_bytes in body and not (is_binary and len(id_bytes) < _MIN_BINARY_MATCH)


def file_contains_id(path: Path, id_bytes: bytes) -> bool:
    """Return whether a file outside the root contains the id, compressed or not."""
    is_binary = path.suffix == ".arrays"
    pieces = read_unpacked(path, overlap_bytes=len(id_bytes))
    return any(contains_id_bytes(piece, id_bytes, is_binary=is_binary) for piece in pieces)
