"""A load's NDJSON, Parquet and CSV input files, given as paths, folders, patterns or `s3://` URIs.

This module finds and opens input files. `input_parts` decides which inputs are files. This module must be quick to
import, because commands that load files into a graph on a server import it.
"""

import glob
import io
import os
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from pathlib import Path
from typing import IO, Any, Literal

from omnigraph.errors import InputError
from omnigraph.records.frozen import record
from omnigraph.storage.plain_objects import ReadFailure, explain_unreadable, is_s3_uri
from omnigraph.storage.root import s3_options

from .csv_options import CsvOptions

InputFormat = Literal["ndjson", "parquet", "csv", "frame"]
ColumnMappings = Mapping[str, Mapping[str, str]]
COMPRESSED_SUFFIXES = (".gz", ".zst")
_FORMAT_BY_SUFFIX: dict[str, InputFormat] = {
    ".ndjson": "ndjson",
    ".jsonl": "ndjson",
    ".json": "ndjson",
    ".parquet": "parquet",
    ".csv": "csv",
    ".tsv": "csv",
}
_GLOB_CHARACTERS = frozenset("*?[")


@record
class InputFile:
    """An input file, and the type of its rows if they do not name their type themselves.

    `store_options` are the settings for accessing the file, and `base_folder` is the folder that a relative path starts
    from; both are included because a task on another machine cannot look them up. `content` is an open file, bytes, or
    records in memory, which only this process can read.
    """

    path: str
    file_format: InputFormat
    type_name: str | None = None
    column_mapping: Mapping[str, str] = field(default_factory=dict)
    size: int = 0
    store_options: Mapping[str, str] = field(default_factory=dict, repr=False, compare=False)
    base_folder: str = field(default_factory=os.getcwd, repr=False, compare=False)
    csv_options: CsvOptions = field(default_factory=CsvOptions)
    content: Any = field(default=None, repr=False, compare=False)


@record
class FileOptions:
    """Settings for reading a load's files: one format for all files, new column names by type, and CSV options."""

    file_format: str | None = None
    column_mappings: ColumnMappings = field(default_factory=dict)
    csv_options: CsvOptions = field(default_factory=CsvOptions)


def resolve_path(path: str, type_name: str | None, options: FileOptions) -> Iterator[InputFile]:
    """Yield the files that a path, a folder or a pattern names, sorted by path.

    Without a type, Parquet and CSV files must be named after their type.
    """
    store_options = s3_options(os.environ) if path.startswith("s3://") else {}
    matched_files = list(_list_files(path, options.file_format))
    if not matched_files:
        raise _no_files_error(path, store_options)
    for file_path, size in matched_files:
        file_format = options.file_format or format_of_name(file_path) or ("ndjson" if type_name is None else None)
        if file_format is None:
            hint = "pass --format or format=, or use the suffix .ndjson, .csv, .tsv or .parquet"
            raise InputError(f"{file_path}: unknown format", reason="unknown format", hint=hint)
        file_type = type_name
        if file_type is None and file_format != "ndjson":
            file_type = _type_from_path(file_path, options.column_mappings)
        yield InputFile(
            file_path,
            file_format,  # type: ignore[arg-type]
            file_type,
            dict(options.column_mappings.get(file_type or "", {})),
            size,
            store_options,
            csv_options=options.csv_options,
        )


def _no_files_error(path: str, store_options: Mapping[str, str]) -> InputError:
    is_pattern = bool(_GLOB_CHARACTERS & set(path))
    failure = ReadFailure("no files match the pattern" if is_pattern else "no such file or directory")
    if is_s3_uri(path):
        explained = explain_unreadable(path, store_options)
        failure = explained if explained is not None and (explained.hint or not is_pattern) else failure
    return InputError(f"cannot read {path}: {failure.reason}", reason="unreadable", hint=failure.hint)


def _list_files(path: str, requested_format: str | None) -> Iterable[tuple[str, int]]:
    if path.startswith("s3://"):
        with ReadErrorContext(path):
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
    """Return a pyarrow file system for the settings of an S3 client."""
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
    return _FORMAT_BY_SUFFIX.get(_without_compression(path).suffix)


def _without_compression(path: str) -> Path:
    file_path = Path(path)
    return file_path.with_suffix("") if file_path.suffix in COMPRESSED_SUFFIXES else file_path


def _type_from_path(path: str, column_mappings: ColumnMappings) -> str:
    """Return the type name for a file's rows, which is the file's stem or its folder's name."""
    file_name = _without_compression(path)
    stem, folder = file_name.stem, file_name.parent.name
    if folder in column_mappings or stem.startswith("part-"):
        return folder
    return stem


class ReadErrorContext:
    """A context manager that converts read errors to `InputError`s that name the file.

    `store_options` are the settings for accessing a file on S3, by default those of this process.
    """

    def __init__(self, path: str, store_options: Mapping[str, str] | None = None) -> None:
        self.path, self.store_options = path, store_options

    def __enter__(self) -> None:
        pass

    def __exit__(self, _: object, error: BaseException | None, __: object) -> None:
        if _is_read_error(error):
            assert error is not None  # noqa: S101 - see above
            failure = self._explain_store(error) or ReadFailure(getattr(error, "strerror", None) or str(error))
            message = f"cannot read {self.path}: {failure.reason}"
            raise InputError(message, reason="unreadable", hint=failure.hint) from error

    def _explain_store(self, error: BaseException) -> ReadFailure | None:
        if not is_s3_uri(self.path) or not isinstance(error, OSError):
            return None
        return explain_unreadable(self.path, self.store_options or s3_options(os.environ))


def _is_read_error(error: BaseException | None) -> bool:
    """Return whether a file could not be read. Arrow raises its own errors only once it has been imported."""
    arrow = sys.modules.get("pyarrow")
    is_arrow_error = arrow is not None and isinstance(error, arrow.ArrowException)
    return (isinstance(error, OSError) or is_arrow_error) and not isinstance(error, InputError)


def open_input_file(input_file: InputFile) -> IO[bytes]:
    """Open a file for reading; the file may be local, on S3, or already open."""
    if isinstance(input_file.content, bytes):
        return io.BytesIO(input_file.content)
    if input_file.content is not None:
        already_open: IO[bytes] = _KeepOpen(input_file.content)  # type: ignore[assignment]
        return already_open
    with ReadErrorContext(input_file.path, input_file.store_options):
        if input_file.path.startswith("s3://"):
            object_path = input_file.path.removeprefix("s3://")
            opened: IO[bytes] = s3_file_system(input_file.store_options).open_input_file(object_path)
            return opened
        return Path(input_file.base_folder, input_file.path).open("rb")


class _KeepOpen:
    """A wrapper for a caller's file that does not close the file at the end of a `with` block."""

    def __init__(self, file: IO[Any]) -> None:
        self._file = file

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)

    def __enter__(self) -> Any:
        return self._file

    def __exit__(self, *_: object) -> None:
        pass


def total_bytes(input_files: Sequence[InputFile]) -> int:
    """Return the total size of all files in bytes."""
    return sum(input_file.size for input_file in input_files)
