"""Input files of a load: NDJSON, Parquet and CSV, given as paths, folders, patterns or `s3://` URIs.

This module finds and opens input files.
"""

import glob
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, Literal

import pyarrow as pa

from omnigraph.errors import InputError
from omnigraph.storage.root import s3_options

InputFormat = Literal["ndjson", "parquet", "csv", "frame"]
ColumnMappings = Mapping[str, Mapping[str, str]]
COMPRESSED_SUFFIXES = (".gz", ".zst")
_FORMAT_BY_SUFFIX: dict[str, InputFormat] = {
    ".ndjson": "ndjson",
    ".jsonl": "ndjson",
    ".json": "ndjson",
    ".parquet": "parquet",
    ".csv": "csv",
}
_GLOB_CHARACTERS = frozenset("*?[")


@dataclass(frozen=True, slots=True)
class InputFile:
    """An input file, with the type of its rows if the rows do not name their type themselves.

    `store_options` are the settings for accessing the file, and `base_folder` is the folder that a
    relative path starts from; both are stored because a task on another machine has neither.
    """

    path: str
    file_format: InputFormat
    type_name: str | None = None
    column_mapping: Mapping[str, str] = field(default_factory=dict)
    size: int = 0
    store_options: Mapping[str, str] = field(default_factory=dict, repr=False, compare=False)
    base_folder: str = field(default_factory=os.getcwd, repr=False, compare=False)


def find_input_files(
    data: Any, file_format: str | None = None, column_mappings: ColumnMappings | None = None
) -> list[InputFile]:
    """Find the files of a path, several paths, or a mapping of types to paths, in order."""
    column_mappings = column_mappings or {}
    if isinstance(data, Mapping):
        typed_paths = [(type_name, path) for type_name, type_input in data.items() for path in _as_sequence(type_input)]
    else:
        typed_paths = [(None, path) for path in _as_sequence(data)]
    input_files = [
        input_file
        for type_name, path in typed_paths
        for input_file in _resolve_path(os.fspath(path), type_name, file_format, column_mappings)
    ]
    if not input_files:
        raise InputError("there are no files to load", reason="no input")
    return input_files


def are_files(data: Any) -> bool:
    """Return whether an input consists only of paths."""
    type_inputs = list(data.values()) if isinstance(data, Mapping) else [data]
    paths = [path for type_input in type_inputs for path in _as_sequence(type_input)]
    return bool(paths) and all(isinstance(path, str | os.PathLike) for path in paths)


def _as_sequence(value: Any) -> Sequence[Any]:
    return value if isinstance(value, list | tuple) else [value]


def _resolve_path(
    path: str, type_name: str | None, requested_format: str | None, column_mappings: ColumnMappings
) -> Iterator[InputFile]:
    store_options = s3_options(os.environ) if path.startswith("s3://") else {}
    matched_files = list(_list_files(path, requested_format))
    if not matched_files:
        raise InputError(f"cannot read {path}: No such file or directory", reason="unreadable")
    for file_path, size in matched_files:
        file_format = requested_format or format_of_name(file_path) or ("ndjson" if type_name is None else None)
        if file_format is None or (file_format == "ndjson" and type_name is not None):
            raise InputError(f"{file_path}: expected a CSV or Parquet file", reason="unknown format")
        resolved_type = (
            type_name if file_format == "ndjson" else type_name or _type_from_path(file_path, column_mappings)
        )
        column_mapping = column_mappings.get(resolved_type or "", {})
        yield InputFile(
            file_path,
            file_format,  # type: ignore[arg-type]
            resolved_type,
            dict(column_mapping),
            size,
            store_options,
        )


def _list_files(path: str, requested_format: str | None) -> Iterable[tuple[str, int]]:
    if path.startswith("s3://"):
        return _list_s3_objects(path, requested_format)
    local_path = Path(path)
    if local_path.is_dir():
        folder_files = sorted(file_path for file_path in local_path.rglob("*") if file_path.is_file())
        matched_files = [file_path for file_path in folder_files if not file_path.name.startswith((".", "_"))]
    elif _GLOB_CHARACTERS & set(path) and not local_path.exists():
        matched_files = sorted(map(Path, glob.glob(path, recursive=True)))  # noqa: PTH207 - any root
    else:
        return [(path, local_path.stat().st_size)] if local_path.exists() else []
    return [
        (str(file_path), file_path.stat().st_size)
        for file_path in matched_files
        if requested_format or format_of_name(str(file_path))
    ]


def _list_s3_objects(path: str, requested_format: str | None) -> list[tuple[str, int]]:
    from fnmatch import fnmatchcase

    from pyarrow.fs import FileSelector, FileType

    file_system, object_path = s3_file_system(s3_options(os.environ)), path.removeprefix("s3://")
    prefix = object_path
    if _GLOB_CHARACTERS & set(object_path):
        prefix = object_path[
            : min(object_path.index(wildcard) for wildcard in _GLOB_CHARACTERS if wildcard in object_path)
        ].rpartition("/")[0]
    elif file_system.get_file_info(object_path).type == FileType.File:
        return [(path, file_system.get_file_info(object_path).size)]
    object_infos = file_system.get_file_info(FileSelector(prefix, recursive=True, allow_not_found=True))
    file_infos = [entry for entry in object_infos if entry.type == FileType.File]
    if prefix != object_path:
        file_infos = [entry for entry in file_infos if fnmatchcase(entry.path, object_path)]
    sized_paths = [(f"s3://{entry.path}", entry.size) for entry in file_infos]
    return sorted(entry for entry in sized_paths if requested_format or format_of_name(entry[0]))


def s3_file_system(options: Mapping[str, str]) -> Any:
    """Return a pyarrow file system with the settings of an S3 client."""
    from pyarrow.fs import S3FileSystem

    endpoint = options.get("aws_endpoint", "")
    scheme, _, host = endpoint.rpartition("://")
    return S3FileSystem(
        access_key=options.get("aws_access_key_id"),
        secret_key=options.get("aws_secret_access_key"),
        session_token=options.get("aws_session_token"),
        region=options.get("aws_region"),
        endpoint_override=host or None,
        scheme=scheme or "https",
    )


def format_of_name(path: str) -> InputFormat | None:
    """Return the format that a file name implies.

    >>> format_of_name("a/b.jsonl.gz"), format_of_name("papers.parquet"), format_of_name("notes.txt")
    ('ndjson', 'parquet', None)
    """
    file_name = Path(path)
    if file_name.suffix in COMPRESSED_SUFFIXES:
        file_name = file_name.with_suffix("")
    return _FORMAT_BY_SUFFIX.get(file_name.suffix)


def _type_from_path(path: str, column_mappings: ColumnMappings) -> str:
    """Return the name of the type of a file's rows: the file's stem, or the name of its folder."""
    stem, folder = Path(path).stem, Path(path).parent.name
    if folder in column_mappings or stem.startswith("part-"):
        return folder
    return stem


class ReadErrorContext:
    """Converts read errors to `InputError`s that name the file."""

    def __init__(self, path: str) -> None:
        self.path = path

    def __enter__(self) -> None:
        pass

    def __exit__(self, _: object, error: BaseException | None, __: object) -> None:
        if isinstance(error, OSError | pa.ArrowException) and not isinstance(error, InputError):
            reason = getattr(error, "strerror", None) or str(error)
            message = f"cannot read {self.path}: {reason}"
            raise InputError(message, reason="unreadable") from error


def open_input_file(input_file: InputFile) -> IO[bytes]:
    """Open a file for reading, local or on S3."""
    with ReadErrorContext(input_file.path):
        if input_file.path.startswith("s3://"):
            object_path = input_file.path.removeprefix("s3://")
            opened: IO[bytes] = s3_file_system(input_file.store_options).open_input_file(object_path)
            return opened
        return Path(input_file.base_folder, input_file.path).open("rb")


def total_bytes(input_files: Sequence[InputFile]) -> int:
    """Return the total size of all files in bytes."""
    return sum(input_file.size for input_file in input_files)
