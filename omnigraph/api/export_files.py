"""Choose the format of an export, and write files that contain the entities of a single type.

NDJSON files can contain several types and are written by `output_files`. A Parquet, Arrow or CSV file has the columns
of one type and can be loaded as it is. Regular files and S3 objects appear only once they are complete.
"""

import os
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path, PurePath
from typing import IO, TYPE_CHECKING, Any, Literal, get_args

from omnigraph.api.output_files import open_output, unwritable_error, write_export
from omnigraph.errors import InputError
from omnigraph.values.describe_value import describe

if TYPE_CHECKING:
    import pyarrow as pa

    from omnigraph.lang.schema.catalog import EdgeType, NodeType

ExportFormat = Literal["ndjson", "parquet", "arrow", "csv"]
_FORMATS_BY_SUFFIX: dict[str, ExportFormat] = {
    ".parquet": "parquet",
    ".arrow": "arrow",
    ".feather": "arrow",
    ".csv": "csv",
}
_OTHER_FORMATS = (".tsv", ".orc", ".avro", ".lance", ".xlsx", ".md")
_COMPRESSION_SUFFIXES = (".gz", ".zst")
_ROW_GROUP_ROWS = 65_536
_ROW_GROUP_BYTES = 64 << 20
_BLOCK_BYTES = 8 << 20


def choose_export_format(path: str | os.PathLike[str] | None, explicit_format: str | None = None) -> ExportFormat:
    """Return the explicit format, or the one implied by the path's suffix, with NDJSON as the default.

    >>> choose_export_format("people.parquet"), choose_export_format("all.ndjson.gz"), choose_export_format("all")
    ('parquet', 'ndjson', 'ndjson')
    >>> choose_export_format("people.parquet", "csv")
    'csv'
    """
    if path is not None and not isinstance(path, str | os.PathLike):
        raise InputError(f"the path of an export must be a string or a path, got {describe(path)}", reason="not a path")
    if explicit_format is not None:
        return _check_format(path, explicit_format)
    suffix = _format_suffix(path)
    if suffix in _OTHER_FORMATS:
        hint = f"use the suffix .ndjson, {', '.join(_FORMATS_BY_SUFFIX)}, or specify the format"
        raise InputError(
            f"cannot export to {path}: {suffix} files are not supported", reason="unknown suffix", hint=hint
        )
    return _FORMATS_BY_SUFFIX.get(suffix, "ndjson")


def _check_format(path: str | os.PathLike[str] | None, explicit_format: Any) -> ExportFormat:
    formats = get_args(ExportFormat)
    if explicit_format not in formats:
        reason = f"unknown format {explicit_format!r}; expected one of {', '.join(formats)}"
        raise InputError(reason, reason="unknown format")
    if path is None and explicit_format != "ndjson":
        raise InputError(f"an export as {explicit_format} requires a path", reason="no path")
    file_format: ExportFormat = explicit_format
    return file_format


def _format_suffix(path: str | os.PathLike[str] | None) -> str:
    file_name = PurePath("" if path is None else path)
    is_compressed = file_name.suffix.lower() in _COMPRESSION_SUFFIXES
    return (PurePath(file_name.stem) if is_compressed else file_name).suffix.lower()


def require_single_type(
    entity_types: "Sequence[NodeType | EdgeType]", file_format: ExportFormat
) -> "NodeType | EdgeType":
    """Return the only selected type. Raise `InputError` if several are selected: only NDJSON can contain several."""
    if len(entity_types) == 1:
        return entity_types[0]
    names = ", ".join(entity_type.name for entity_type in entity_types[:3]) + ", …" * (len(entity_types) > 3)
    raise InputError(
        f"a {file_format} file can contain only one type, but {len(entity_types)} are selected: {names}",
        reason="several types",
        hint="select one type, or write an .ndjson file, which can contain all types",
    )


def write_entity_file(
    path: str | os.PathLike[str],
    file_format: ExportFormat,
    entity_type: "NodeType | EdgeType",
    tables: "Iterator[pa.Table]",
) -> int:
    """Write the entities of a type to a Parquet, Arrow or CSV file, and return their number."""
    from omnigraph.ingest.entity_schema import entity_schema

    schema = entity_schema(entity_type)
    if file_format == "csv":
        return write_export(path, _csv_lines(schema, tables)) - 1
    if PurePath(path).suffix in _COMPRESSION_SUFFIXES:
        reason = f"{file_format} files are already compressed; omit the suffix {PurePath(path).suffix}"
        raise InputError(f"cannot write {path}: {reason}", reason=reason)
    with _open_seekable(path) as output_file:
        return _write_binary(output_file, file_format, schema, tables)


def _csv_lines(schema: "pa.Schema", tables: "Iterator[pa.Table]") -> Iterator[bytes]:
    """Yield a header and one line per entity. Null becomes an empty cell, which a load reads as null by default."""
    from omnigraph.api.results.formats import PrintableResult, TextStyle, render

    style = TextStyle(csv_null="")
    yield from (f"{line}\n".encode() for line in render(PrintableResult(schema.empty_table(), ""), "csv", style))
    for table in tables:
        lines = render(PrintableResult(table, ""), "csv", style)
        yield from (f"{line}\n".encode() for line in islice(lines, 1, None))


def _write_binary(
    output_file: IO[bytes], file_format: ExportFormat, schema: "pa.Schema", tables: "Iterator[pa.Table]"
) -> int:
    import pyarrow as pa
    import pyarrow.parquet as pq

    row_count = 0
    open_writer = pq.ParquetWriter if file_format == "parquet" else pa.ipc.new_file
    with open_writer(output_file, schema) as writer:
        for table in _combine_tables(tables):
            writer.write_table(table)
            row_count += table.num_rows
    return row_count


def _combine_tables(tables: "Iterator[pa.Table]") -> "Iterator[pa.Table]":
    """Combine small tables into row groups of limited size."""
    import pyarrow as pa

    group: list[pa.Table] = []
    for table in tables:
        group.append(table)
        is_full = sum(part.num_rows for part in group) >= _ROW_GROUP_ROWS
        if is_full or sum(part.nbytes for part in group) >= _ROW_GROUP_BYTES:
            yield pa.concat_tables(group).combine_chunks()
            group = []
    if group:
        yield pa.concat_tables(group).combine_chunks()


@contextmanager
def _open_seekable(path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
    """Open a file, an S3 object or a pipe for a writer that needs to know its position."""
    from omnigraph.storage.plain_objects import is_s3_uri, write_object

    if is_s3_uri(path):
        with tempfile.TemporaryFile() as temporary_file:
            yield temporary_file
            temporary_file.seek(0)
            write_object(os.fspath(path), iter(lambda: temporary_file.read(_BLOCK_BYTES), b""))
        return
    try:
        with open_output(Path(path)) as output_file:
            if output_file.seekable():
                yield output_file
                return
            with tempfile.TemporaryFile() as temporary_file:
                yield temporary_file
                temporary_file.seek(0)
                shutil.copyfileobj(temporary_file, output_file)
    except OSError as error:
        raise unwritable_error(Path(path), error) from error
