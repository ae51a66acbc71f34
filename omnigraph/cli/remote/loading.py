"""Load files into a graph on a server. The bytes are streamed, so a file may be larger than memory.

The server reads NDJSON, and Parquet files of one type. Files in other formats, folders and patterns are rejected before
anything is sent.
"""

import gzip
import json
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from omnigraph.api.results.receipt import BadRow, LoadReport, Receipt
from omnigraph.client.exchange import CHUNK_BYTES, NDJSON
from omnigraph.errors import ClientError, InputError, OmnigraphError
from omnigraph.records.frozen import record

if TYPE_CHECKING:
    from .graph import RemoteGraph

_PARQUET = "application/vnd.apache.parquet"
_BODY_NAME = "<body>"
_MAX_ERRORS = 100  # the largest number of problems that a server lists
_TEXT_SUFFIXES = (".ndjson", ".jsonl", ".json", "")
_LOCAL_OPTIONS = {
    "mapping": "--mapping",
    "rejects": "--rejects",
    "max_row_bytes": "--max-row-bytes",
    "spark": "--engine spark",
}


@record
class Upload:
    """The input to send: the files in order, their format, and the type of all rows in a Parquet file."""

    paths: tuple[str | None, ...]  # None is standard input
    media_type: str = NDJSON
    type_name: str | None = None

    @property
    def display_name(self) -> str:
        """The name that messages use for the input."""
        return ", ".join("<stdin>" if path is None else path for path in self.paths)


def load_files(graph: "RemoteGraph", data: Any, options: Mapping[str, Any]) -> Receipt | LoadReport:
    """Load files as one commit, or return the problems in them."""
    from .graph import key_headers, not_supported

    rejected = next((flag for name, flag in _LOCAL_OPTIONS.items() if options.get(name)), None)
    if rejected is not None or options["engine"] == "spark":
        raise not_supported(rejected or "--engine spark")
    upload = _plan_upload(data, options["format"])
    is_parquet = upload.media_type == _PARQUET
    parameters = {
        "type": upload.type_name,
        "branch": options["branch"],
        "from": options["from_"],
        "mode": options["mode"],
        "message": options["message"],
        "dry_run": options["dry_run"],
        "max_errors": _MAX_ERRORS if options["max_errors"] is None else min(options["max_errors"], _MAX_ERRORS),
    }
    headers = {"Content-Type": upload.media_type, **_length_header(upload), **key_headers(options["idempotency_key"])}
    try:
        reply = graph.exchange.stream(
            "POST",
            ("load", "parquet" if is_parquet else "ndjson"),
            parameters,
            body=_read_chunks(upload, options["progress"]),
            headers=headers,
            condition=options["if_commit"],
        )
    except OmnigraphError as error:
        error.message = error.message.replace(_BODY_NAME, upload.display_name)
        if not isinstance(error, ClientError) or "problems" not in error.details:
            raise
        return _read_report(error)
    return _read_receipt(graph, json.loads(b"".join(reply.chunks())), "Idempotent-Replay" in reply.headers)


def _read_report(error: ClientError) -> LoadReport:
    problems = [BadRow(**problem) for problem in error.details.pop("problems")]
    return LoadReport(tuple(problems), error.details.pop("problems_left_out", 0), error=error)


def _plan_upload(data: Any, form: str | None) -> Upload:
    from .graph import not_supported

    if data is sys.stdin.buffer and form in (None, "ndjson"):
        return Upload((None,))
    parts = data if isinstance(data, list) else [data]
    if len(parts) == 1 and _format_of(parts[0], form) == "parquet":
        type_name, path = next(iter(parts[0].items())) if isinstance(parts[0], Mapping) else (None, parts[0])
        return Upload((_require_file(path),), _PARQUET, type_name or Path(path).stem)
    if any(not isinstance(part, str) or _format_of(part, form) != "ndjson" for part in parts):
        raise not_supported(
            "loading these files", "pass NDJSON files or one Parquet file, or run the load where the graph is stored"
        )
    return Upload(tuple(map(_require_file, parts)))


def _format_of(part: Any, form: str | None) -> str | None:
    if form is not None:
        return form
    path = next(iter(part.values())) if isinstance(part, Mapping) else part
    if not isinstance(path, str):
        return None
    suffix = Path(path.removesuffix(".gz")).suffix.lower()
    if suffix == ".parquet":
        return "parquet"
    return "ndjson" if suffix in _TEXT_SUFFIXES else None


def _require_file(path: Any) -> str:
    from .graph import not_supported

    if not isinstance(path, str) or "://" in path or Path(path).is_dir() or "*" in path:
        raise not_supported("loading folders, patterns and s3:// URIs", "pass the files one by one")
    try:
        with Path(path).open("rb"):
            return path
    except OSError as error:
        is_missing = isinstance(error, FileNotFoundError)
        reason = "no such file or directory" if is_missing else error.strerror
        raise InputError(f"cannot read {path}: {reason}", reason="unreadable") from None


def _length_header(upload: Upload) -> dict[str, str]:
    """Return the length of the body if it is known, so that the server can reject a body that is too long at once."""
    path = upload.paths[0]
    if len(upload.paths) > 1 or path is None or path.endswith(".gz") or not Path(path).is_file():
        return {}
    return {"Content-Length": str(Path(path).stat().st_size)}


def _read_chunks(upload: Upload, report_progress: Any) -> Iterator[bytes]:
    """Yield the bytes of all files. A newline is added between files if the first one does not end with one."""
    total_bytes = sum(Path(path).stat().st_size for path in upload.paths if path is not None)
    sent_bytes, last_byte = 0, b"\n"
    for path in upload.paths:
        if last_byte != b"\n":
            yield b"\n"
        for chunk in _read_file(path):
            yield chunk
            sent_bytes, last_byte = sent_bytes + len(chunk), chunk[-1:]
            report_progress(min(sent_bytes, total_bytes), total_bytes)


def _read_file(path: str | None) -> Iterable[bytes]:
    if path is None:
        yield from _iter_chunks(sys.stdin.buffer)
        return
    try:
        with gzip.open(path, "rb") if path.endswith(".gz") else Path(path).open("rb") as file:
            yield from _iter_chunks(file)  # type: ignore[arg-type]
    except (OSError, EOFError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise InputError(f"cannot read {path}: {reason}", reason="unreadable") from None


def _iter_chunks(file: IO[bytes]) -> Iterator[bytes]:
    while chunk := file.read(CHUNK_BYTES):
        yield chunk


def _read_receipt(graph: "RemoteGraph", document: Mapping[str, Any], is_replay: bool) -> Receipt:
    graph.actor = document["actor_id"]
    return Receipt(
        graph.complete_commit(document["commit"]),
        {entry["name"]: entry["entities_loaded"] for entry in document["nodes"]},
        {entry["name"]: entry["entities_loaded"] for entry in document["edges"]},
        branch=document["branch"],
        branch_created=document["branch_created"],
        replayed=is_replay,
        missing=document.get("missing", {}),
        nulled=document.get("nulled", {}),
    )
