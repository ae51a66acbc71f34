"""Rejects: every record that a load refused, as Parquet and NDJSON in a folder of the caller.

Owns the columns of a reject. Only the id of a record is written, never its values: a reject names
the file and the line of the record.
"""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import orjson
import pyarrow as pa

from omnigraph.errors import InputError
from omnigraph.ingest.problem import Problem
from omnigraph.storage.root import s3_options

from .sources import s3_system

SCHEMA = pa.schema(
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


def reject(one: Problem) -> dict[str, Any]:
    """Return a problem as a row."""
    return {
        "file": one.file,
        "line": one.line,
        "type": one.type,
        "id": one.id,
        "code": one.error.code,
        "property": getattr(one.error, "property", None),
        "reason": one.reason,
    }


def write_rejects(folder: str | os.PathLike[str], problems: Sequence[Problem]) -> None:
    """Write `rejects.parquet` and `rejects.ndjson`; both are empty when nothing was refused."""
    import pyarrow.parquet as pq

    rows = [reject(one) for one in problems]
    lines = b"".join(orjson.dumps(one, option=orjson.OPT_APPEND_NEWLINE) for one in rows)
    try:
        system, place = _opened(os.fspath(folder))
        table = pa.Table.from_pylist(rows, schema=SCHEMA)
        pq.write_table(table, f"{place}/rejects.parquet", filesystem=system)
        with system.open_output_stream(f"{place}/rejects.ndjson") as out:
            out.write(lines)
    except OSError as error:
        message = f"cannot write rejects to {folder}: {error.strerror or error}"
        raise InputError(message, reason="unwritable") from error


def _opened(folder: str) -> tuple[Any, str]:
    """Return the file system of a folder and its path there; a local folder is created."""
    if folder.startswith("s3://"):
        return s3_system(s3_options(os.environ)), folder.removeprefix("s3://").rstrip("/")
    from pyarrow.fs import LocalFileSystem

    Path(folder).mkdir(parents=True, exist_ok=True)
    return LocalFileSystem(), str(Path(folder).absolute())
