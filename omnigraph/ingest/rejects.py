"""Rejects: write every record that a load rejected to Parquet and NDJSON files in a folder chosen by the caller.

This module defines the columns in the reject files. A reject names the record's file, line and id, but never contains
its values.
"""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import orjson
import pyarrow as pa

from omnigraph.errors import InputError
from omnigraph.storage.root import s3_options

from .input_files import s3_file_system
from .problem import LoadProblem

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


def reject_row(problem: LoadProblem) -> dict[str, Any]:
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


def write_rejects(folder: str | os.PathLike[str], problems: Sequence[LoadProblem]) -> None:
    """Write `rejects.parquet` and `rejects.ndjson`. Both files are empty if nothing was rejected."""
    import pyarrow.parquet as pq

    reject_rows = [reject_row(item) for item in problems]
    ndjson = b"".join(orjson.dumps(item, option=orjson.OPT_APPEND_NEWLINE) for item in reject_rows)
    try:
        file_system, folder_path = _open_folder(os.fspath(folder))
        reject_table = pa.Table.from_pylist(reject_rows, schema=REJECT_SCHEMA)
        pq.write_table(reject_table, f"{folder_path}/rejects.parquet", filesystem=file_system)
        with file_system.open_output_stream(f"{folder_path}/rejects.ndjson") as output:
            output.write(ndjson)
    except OSError as error:
        message = f"cannot write rejects to {folder}: {error.strerror or error}"
        raise InputError(message, reason="unwritable") from error


def _open_folder(folder: str) -> tuple[Any, str]:
    """Return a folder's file system and its path there; a local folder is created if needed."""
    if folder.startswith("s3://"):
        return s3_file_system(s3_options(os.environ)), folder.removeprefix("s3://").rstrip("/")
    from pyarrow.fs import LocalFileSystem

    Path(folder).mkdir(parents=True, exist_ok=True)
    return LocalFileSystem(), str(Path(folder).absolute())
