"""Rejects: for each record that a load rejects, write a row to Parquet and NDJSON files in the caller's folder.

This module defines the columns in the reject files. A reject names the record's file, line and id, but never contains
its values.
"""

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any

import orjson
import pyarrow as pa

from omnigraph.errors import InputError
from omnigraph.storage.plain_objects import is_s3_uri
from omnigraph.storage.root import s3_options
from omnigraph.values import clock_and_ids

from .input_files import s3_file_system
from .problem import LoadProblem

_REJECT_FILE = re.compile(r"rejects(-[0-9]{5,})?\.(parquet|ndjson)")
REJECT_SCHEMA = pa.schema(
    [
        ("file", pa.string()),
        ("line", pa.int64()),
        ("type", pa.string()),
        ("id", pa.string()),
        ("code", pa.string()),
        ("property", pa.string()),
        ("reason", pa.string()),
    ]
)


RejectRow = dict[str, Any]


def reject_row(problem: LoadProblem) -> RejectRow:
    """Convert a problem to a row."""
    return {
        "file": problem.file,
        "line": problem.line,
        "type": problem.type,
        "id": problem.id,
        "code": problem.error.code,
        "property": getattr(problem.error, "property", None),
        "reason": problem.reason,
    }


@dataclass(frozen=True, slots=True)
class RejectFolder:
    """A folder for reject files, on disk or on S3. `store_options` are the settings for accessing S3."""

    uri: str
    store_options: Mapping[str, str] = field(default_factory=dict, repr=False)

    @classmethod
    def open(cls, folder: str | os.PathLike[str]) -> "RejectFolder":
        """Open a folder in a form that processes on other machines can use as well."""
        uri = os.fspath(folder)
        return cls(uri, s3_options(os.environ)) if is_s3_uri(uri) else cls(str(Path(uri).absolute()))

    def write(self, name: str, problem_batches: Iterable[Sequence[LoadProblem]]) -> int:
        """Write problems to `<name>.parquet` and `<name>.ndjson`, and return their number.

        If there are no batches with problems, write nothing. Files on disk appear only once they are complete.
        """
        batches = (problems for problems in problem_batches if problems)
        first_problems = next(batches, None)
        if first_problems is None:
            return 0
        return self._write_files(
            name, (list(map(reject_row, problems)) for problems in chain([first_problems], batches))
        )

    def write_all(self, name: str, reject_rows: Sequence[RejectRow]) -> None:
        """Write rows, or empty files if there are no rows."""
        self._write_files(name, [reject_rows])

    def remove_files(self) -> None:
        """Remove the reject files of an earlier load."""
        from pyarrow.fs import FileSelector

        with self._write_errors():
            file_system, path = self._connect()
            for entry in file_system.get_file_info(FileSelector(path, allow_not_found=True)):
                if _REJECT_FILE.fullmatch(entry.base_name):
                    file_system.delete_file(entry.path)

    def _write_files(self, name: str, row_batches: Iterable[Sequence[RejectRow]]) -> int:
        import pyarrow.parquet as pq

        record_count = 0
        with self._write_errors():
            file_system, path = self._connect()
            final_paths = [f"{path}/{name}.{suffix}" for suffix in ("parquet", "ndjson")]
            # The same task may run twice at the same time. On S3, an object does not appear until it is complete.
            ending = "" if is_s3_uri(self.uri) else f".{clock_and_ids.new_nonce()}"
            parquet_path, ndjson_path = (final_path + ending for final_path in final_paths)
            with (
                pq.ParquetWriter(parquet_path, REJECT_SCHEMA, filesystem=file_system) as parquet,
                file_system.open_output_stream(ndjson_path) as ndjson,
            ):
                for reject_rows in row_batches:
                    parquet.write_table(pa.Table.from_pylist(list(reject_rows), schema=REJECT_SCHEMA))
                    ndjson.write(b"".join(orjson.dumps(row, option=orjson.OPT_APPEND_NEWLINE) for row in reject_rows))
                    record_count += len(reject_rows)
            if ending:
                for final_path in final_paths:
                    file_system.move(final_path + ending, final_path)
        return record_count

    @contextmanager
    def _write_errors(self) -> Iterator[None]:
        """Convert write errors to an `InputError` that names the folder."""
        try:
            yield
        except OSError as error:
            message = f"cannot write rejects to {self.uri}: {error.strerror or error}"
            raise InputError(message, reason="unwritable") from error

    def _connect(self) -> tuple[Any, str]:
        """Return the folder's file system and its path in that file system; a local folder is created if needed."""
        if is_s3_uri(self.uri):
            return s3_file_system(self.store_options), self.uri.removeprefix("s3://").rstrip("/")
        from pyarrow.fs import LocalFileSystem

        Path(self.uri).mkdir(parents=True, exist_ok=True)
        return LocalFileSystem(), self.uri


def write_rejects(folder: str | os.PathLike[str], problems: Sequence[LoadProblem]) -> None:
    """Write `rejects.parquet` and `rejects.ndjson`. Both files are empty if nothing was rejected."""
    write_reject_rows(folder, list(map(reject_row, problems)))


def write_reject_rows(folder: str | os.PathLike[str], reject_rows: Sequence[RejectRow]) -> None:
    """Write rows with the members of `REJECT_SCHEMA`, replacing the reject files of an earlier load."""
    reject_folder = RejectFolder.open(folder)
    reject_folder.remove_files()
    reject_folder.write_all("rejects", reject_rows)
