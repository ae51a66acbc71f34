"""Load several files of different formats and types as one commit, from the parts of a form.

The files are parsed by the same code that loads files into an embedded graph. Nothing is written unless all files are
valid.
"""

import hashlib
from collections.abc import Sequence
from pathlib import PurePath
from typing import Any

import msgspec

from omnigraph.errors import InputError
from omnigraph.ingest.csv_options import CsvOptions
from omnigraph.ingest.input_files import InputFile, InputFormat, format_of_name
from omnigraph.ingest.input_pieces import InputFiles
from omnigraph.server.call import ServerCall
from omnigraph.server.models.requests import FormLoadOptions
from omnigraph.server.route_model import ARROW, CSV, NDJSON, PARQUET
from omnigraph.server.wire.answer import Answer
from omnigraph.server.wire.body import decode_json
from omnigraph.server.wire.form_parts import FormPart, read_form

from .loads import answer_load, digest_file, read_arrow

_OPTIONS_PART = "options"
_FORMATS: dict[str, InputFormat] = {
    NDJSON: "ndjson",
    "application/jsonl": "ndjson",
    "application/json": "ndjson",
    CSV: "csv",
    "text/tab-separated-values": "csv",
    PARQUET: "parquet",
    ARROW: "frame",
}
_decoder = msgspec.json.Decoder(FormLoadOptions)


class FormFiles(InputFiles):
    """The files of a form, and a digest of all of them if the load has an idempotency key."""

    def __init__(self, input_files: Sequence[InputFile], content_digest: str | None) -> None:
        super().__init__(input_files)
        self.content_digest = content_digest


def load_form(call: ServerCall) -> Answer:
    """Load the files of a form in one commit."""
    with call.body as body:
        parts = read_form(body, call.headers.get("content-type", ""))
        options = _read_options(parts)
        files = [part for part in parts if not _is_options(part)]
        if not files:
            raise InputError("there are no files to load", reason="no input")
        digest = None if call.idempotency_key is None else _digest_form(files, options)
        return answer_load(call, FormFiles([_input_file(part, options) for part in files], digest), call.query_values)


def _is_options(part: FormPart) -> bool:
    return part.name == _OPTIONS_PART and part.file_name is None


def _read_options(parts: Sequence[FormPart]) -> FormLoadOptions:
    part = next(filter(_is_options, parts), None)
    options: FormLoadOptions = FormLoadOptions() if part is None else decode_json(part.content.read(), _decoder)
    return options


def _input_file(part: FormPart, options: FormLoadOptions) -> InputFile:
    """Return the input file in a part of a form.

    Only the last segment of the file name is used, in case the name is a path.
    """
    type_name, file_name = part.name or None, PurePath(part.file_name or "").name
    file_format: InputFormat = _FORMATS.get(part.media_type) or options.format or format_of_name(file_name) or "ndjson"
    if type_name is None and file_format != "ndjson":
        raise InputError(
            f"a {file_format} file requires a type name", reason='expected name="Type" in the headers of the part'
        )
    return InputFile(
        file_name,
        file_format,
        type_name,
        dict(options.mapping.get(part.name, {})),
        csv_options=CsvOptions(**msgspec.structs.asdict(options.csv)),
        content=read_arrow(part.content) if file_format == "frame" else part.content,
    )


def _digest_form(files: Sequence[FormPart], options: FormLoadOptions) -> str:
    """Return a digest that distinguishes a repeated load from another load with the same idempotency key."""
    facts: list[Any] = [[part.name, part.media_type, digest_file(part.content)] for part in files]
    return hashlib.sha256(msgspec.json.encode([options, facts], order="sorted")).hexdigest()
