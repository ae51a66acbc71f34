"""Write the parts of a load as a multipart/form-data body, whose size is known before it is sent.

The names of files stay on this machine: a form numbers its files, and `load_problems` puts the names back into errors.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from omnigraph.records.frozen import record
from omnigraph.values import clock_and_ids

from .load_parts import LoadPart

MEDIA_TYPES = {
    "ndjson": "application/x-ndjson",
    "csv": "text/csv",
    "parquet": "application/vnd.apache.parquet",
    "arrow": "application/vnd.apache.arrow.stream",
}
_CSV_MEMBERS = ("delimiter", "quote", "null", "header", "columns", "decimal")
_JSON = "application/json"


@record(eq=False)
class RequestBody:
    """The body of a request, which can be read several times."""

    content_type: str
    size: int
    chunks: Callable[[], Iterator[bytes]]


def write_form(parts: Sequence[LoadPart], csv_options: Any = None) -> RequestBody:
    """Return a form with the given parts and options."""
    boundary = clock_and_ids.new_nonce()
    segments = [_write_options(parts, csv_options, boundary)]
    segments += [(_write_head(part, number, boundary), part) for number, part in enumerate(parts, 1)]
    end = f"\r\n--{boundary}--\r\n".encode()
    size = sum(len(head) + (0 if part is None else part.size) for head, part in segments) + len(end)

    def read_chunks() -> Iterator[bytes]:
        for head, part in segments:
            yield head
            if part is not None:
                yield from part.chunks()
        yield end

    return RequestBody(f"multipart/form-data; boundary={boundary}", size, read_chunks)


def name_file(number: int) -> str:
    """Return the name that a form uses for a file."""
    return f"<file {number}>"


def _write_options(parts: Sequence[LoadPart], csv_options: Any, boundary: str) -> tuple[bytes, LoadPart | None]:
    options: dict[str, Any] = {}
    if csv_options is not None:
        options["csv"] = {name: _plain(getattr(csv_options, name)) for name in _CSV_MEMBERS}
    mapping = {part.type_name: dict(part.column_mapping) for part in parts if part.column_mapping}
    if mapping:
        options["mapping"] = mapping
    head = f'--{boundary}\r\nContent-Disposition: form-data; name="options"\r\nContent-Type: {_JSON}\r\n\r\n'
    return (head + json.dumps(options)).encode("utf-8", "surrogatepass"), None


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(name): list(columns) for name, columns in value.items()}
    return value if value is None or isinstance(value, str | bool) else list(value)


def _write_head(part: LoadPart, number: int, boundary: str) -> bytes:
    type_name = (part.type_name or "").replace("\\", r"\\").replace('"', r"\"").replace("\r", " ").replace("\n", " ")
    disposition = f'form-data; name="{type_name}"; filename="{name_file(number)}"'
    media_type = MEDIA_TYPES[part.file_format]
    head = f"\r\n--{boundary}\r\nContent-Disposition: {disposition}\r\nContent-Type: {media_type}\r\n\r\n"
    return head.encode("utf-8", "surrogatepass")
