"""Turn the input of a load into NDJSON: files, bytes, records with an envelope, and records or tables by type.

The input is read lazily, so a file may be larger than memory. CSV files, folders and patterns are rejected.
"""

import gzip
import json
from collections.abc import Iterable, Iterator, Mapping
from os import PathLike, fspath
from pathlib import Path
from typing import IO, Any, cast

from omnigraph.errors import InputError
from omnigraph.ingest.frames import RecordType
from omnigraph.ingest.record_envelope import envelope_error
from omnigraph.lang.schema.catalog import Catalog
from omnigraph.lang.schema.type_names import resolve_type
from omnigraph.values.describe_value import describe

from .unsupported import reject, reject_if
from .wire_values import encode_records, encode_value

_NDJSON_SUFFIXES = (".ndjson", ".jsonl", ".json", "")
_RECORD_MEMBERS = frozenset({"data", "id", "from", "to", "src", "dst"})
_ENDPOINTS = {"from": "from", "to": "to", "src": "from", "dst": "to"}


def iter_ndjson(data: Any, catalog: Catalog, form: str | None) -> Iterator[bytes]:
    """Yield lines of NDJSON, each with its newline."""
    reject_if(form not in (None, "ndjson", "parquet"), "load(format='csv')")
    if isinstance(data, bytes | bytearray | memoryview):
        yield from _split_lines([bytes(data)])
    elif isinstance(data, str | PathLike):
        yield from _read_file(Path(fspath(data)), catalog, None, form)
    elif hasattr(data, "read"):
        yield from _split_lines(_read_chunks(data))
    elif isinstance(data, Mapping) and not _is_record(data):
        for type_name, rows in data.items():
            yield from _iter_type(type_name, rows, catalog, form)
    elif isinstance(data, Mapping):
        yield _write_line(encode_value(data))
    elif isinstance(data, Iterable):
        for item in data:
            yield from iter_ndjson(item, catalog, form)
    else:
        raise InputError(f"{describe(data)} cannot be loaded", reason="unsupported input")


def _is_record(data: Mapping[Any, Any]) -> bool:
    return any(isinstance(data.get(member), str) for member in ("type", "edge")) and not _RECORD_MEMBERS.isdisjoint(
        data
    )


def _iter_type(type_name: str, rows: Any, catalog: Catalog, form: str | None) -> Iterator[bytes]:
    entity_type = resolve_type(catalog, type_name)
    if isinstance(rows, str | PathLike):
        yield from _read_file(Path(fspath(rows)), catalog, entity_type.name, form)
        return
    for record in encode_records(rows):
        yield _write_envelope(entity_type.kind, entity_type.name, record)


def _write_envelope(kind: str, type_name: str, record: Any) -> bytes:
    if not isinstance(record, Mapping):
        raise InputError(f"a record of {type_name} must be a mapping, got {describe(record)}", reason="not a record")
    if kind == "node":
        return _write_line({"type": type_name, "data": dict(record)})
    endpoints = {_ENDPOINTS[name]: value for name, value in record.items() if name in _ENDPOINTS}
    properties = {name: value for name, value in record.items() if name not in _ENDPOINTS}
    return _write_line({"edge": type_name, **endpoints, "data": properties})


def _write_line(document: Any) -> bytes:
    return json.dumps(document, ensure_ascii=False).encode("utf-8", "surrogatepass") + b"\n"


def _read_file(path: Path, catalog: Catalog, type_name: str | None, form: str | None) -> Iterator[bytes]:
    reject_if("://" in str(path) or "*" in path.name or path.is_dir(), "load(folders, patterns, s3://…)")
    suffix = Path(path.name.removesuffix(".gz")).suffix.lower()
    if form == "parquet" or (form is None and suffix == ".parquet"):
        yield from _read_parquet(path, resolve_type(catalog, type_name or path.stem))
        return
    if form is None and suffix not in _NDJSON_SUFFIXES:
        reject("load(format='csv')")
    entity_type = None if type_name is None else resolve_type(catalog, type_name)
    try:
        with _open_binary(path) as file:
            lines = _split_lines(_read_chunks(file))
            yield from lines if entity_type is None else _wrap_lines(RecordType(entity_type), lines)
    except (OSError, EOFError) as error:
        raise _unreadable(path, error) from None


def _open_binary(path: Path) -> IO[bytes]:
    return cast("IO[bytes]", gzip.open(path, "rb")) if path.name.endswith(".gz") else path.open("rb")


def _wrap_lines(record_type: RecordType, lines: Iterable[bytes]) -> Iterator[bytes]:
    """Yield lines with an envelope. A line that is not JSON is left to the server, which reports it."""
    entity_type = record_type.entity_type
    for line_number, line in enumerate(lines, start=1):
        try:
            record = json.loads(line) if line.strip() else None
        except ValueError:
            record = None
        if isinstance(record, dict) and record_type.is_envelope(record):
            raise envelope_error(entity_type.name, line_number)
        yield line if record is None else _write_envelope(entity_type.kind, entity_type.name, record)


def _read_parquet(path: Path, entity_type: Any) -> Iterator[bytes]:
    import pyarrow as pa
    import pyarrow.parquet

    try:
        with pyarrow.parquet.ParquetFile(path) as file:
            for batch in file.iter_batches():
                for record in batch.to_pylist():
                    yield _write_envelope(entity_type.kind, entity_type.name, encode_value(record))
    except (OSError, pa.ArrowInvalid) as error:
        raise _unreadable(path, error) from None


def _unreadable(path: Path, error: Exception) -> InputError:
    return InputError(f"cannot read {path}: {getattr(error, 'strerror', None) or error}", reason="unreadable")


def _read_chunks(file: IO[Any]) -> Iterator[bytes]:
    while chunk := file.read(1 << 20):
        yield chunk.encode() if isinstance(chunk, str) else chunk


def _split_lines(chunks: Iterable[bytes]) -> Iterator[bytes]:
    rest = b""
    for chunk in chunks:
        *lines, rest = (rest + chunk).split(b"\n")
        for line in lines:
            yield line + b"\n"
    if rest:
        yield rest + b"\n"
