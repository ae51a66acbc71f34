"""Rejects: every record that a load refused, as Parquet and as NDJSON, in a folder of the caller.

Owns the columns of a reject. Nothing of a record itself is written but its id: a reject names the
file and the line where the record stands.
"""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import orjson
import pyarrow as pa

from omnigraph.errors import InputError
from omnigraph.ingest.problem import Problem

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
    """A problem as a row."""
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
    target = Path(folder)
    try:
        target.mkdir(parents=True, exist_ok=True)
        pq.write_table(pa.Table.from_pylist(rows, schema=SCHEMA), target / "rejects.parquet")
        lines = b"".join(orjson.dumps(one, option=orjson.OPT_APPEND_NEWLINE) for one in rows)
        (target / "rejects.ndjson").write_bytes(lines)
    except OSError as error:
        message = f"cannot write rejects to {target}: {error.strerror}"
        raise InputError(message, reason="unwritable") from error
