"""Turn the input of a load into the parts that are sent: files, bytes, streams, records, and tables by type.

Paths, folders and patterns are resolved on this machine, by the same rules as for an embedded graph. Records that name
their own type become lines of NDJSON.
"""

import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Any

from omnigraph.errors import InputError, UsageError
from omnigraph.ingest.input_files import FileOptions
from omnigraph.ingest.input_parts import find_input_files, has_files, is_text_source

from .load_parts import LoadPart, prepare_parts, prepare_records
from .load_records import FindCatalog, write_envelope

_TABLE_FORMATS = ("csv", "parquet")


@contextmanager
def open_parts(data: Any, options: FileOptions, find_catalog: FindCatalog) -> Iterator[list[LoadPart]]:
    """Yield the parts of an input, and delete their temporary files at the end of the block.

    The catalog is needed only for dataclasses and for values that JSON cannot express, such as dates.
    """
    if options.file_format not in (None, "ndjson", *_TABLE_FORMATS):
        raise UsageError(reason=f"unknown format {options.file_format!r}; expected ndjson, csv or parquet")
    with ExitStack() as stack:
        if isinstance(data, Mapping) or has_files(data):
            yield prepare_parts(find_input_files(data, options), stack, find_catalog)
        else:
            if options.file_format in _TABLE_FORMATS and is_text_source(data):
                message = f"a {options.file_format} file requires a type name"
                raise InputError(message, reason='expected {"Type": path}')
            yield [prepare_records(_iter_lines(data, find_catalog), stack)]


def iter_records(data: Any, find_catalog: FindCatalog) -> Iterator[bytes]:
    """Yield one line of NDJSON per record, including the records of a JSON array."""
    from omnigraph.ingest.files import cut_blocks
    from omnigraph.ingest.json_arrays import unwrap_array

    for block in cut_blocks(unwrap_array(_iter_lines(data, find_catalog)), sys.maxsize):
        yield from (line + b"\n" for line in block.split(b"\n"))


def _iter_lines(data: Any, find_catalog: FindCatalog) -> Iterator[bytes]:
    """Yield NDJSON in chunks, which need not end at line ends."""
    if is_text_source(data) or isinstance(data, bytearray | memoryview):
        from omnigraph.ingest.files import open_text

        with open_text(bytes(data) if isinstance(data, bytearray | memoryview) else data) as (pieces, _):
            yield from pieces
        return
    if hasattr(data, "__arrow_c_stream__") or hasattr(data, "__arrow_c_array__"):
        raise InputError("a table must be passed with its type name", reason='pass {"Type": table}')
    if not isinstance(data, Iterable):
        raise InputError(f"cannot load {type(data).__name__}", reason="expected a path, a file, records or tables")
    for record in data:
        yield write_envelope(record, find_catalog)
