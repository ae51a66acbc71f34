"""Load files into a graph on a server. A file may be larger than memory, and larger than the server's limit for a load.

The server reads NDJSON, and Parquet files of one type. Files in other formats, folders and patterns are rejected before
anything is sent.
"""

import gzip
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from omnigraph.api.results.receipt import BadRow, LoadReport, Receipt
from omnigraph.client.exchange import NDJSON
from omnigraph.client.failures import read_known_members
from omnigraph.client.load_body import LoadBody
from omnigraph.client.load_limits import find_exceeded_limit, read_load_limit
from omnigraph.client.replies import CHUNK_BYTES
from omnigraph.errors import ClientError, InputError, OmnigraphError, ResourceLimitExceeded
from omnigraph.records.frozen import record

if TYPE_CHECKING:
    from omnigraph.client.handle import RemoteHandle

    from .graph import CommandGraph

_PARQUET = "application/vnd.apache.parquet"
_BODY_NAME = "<body>"
_MAX_ERRORS = 100  # the maximum number of problems that a server lists
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


def load_files(graph: "CommandGraph", data: Any, options: Mapping[str, Any]) -> Receipt | LoadReport:
    """Load files as one commit, or return the problems in them."""
    from .graph import not_supported

    rejected = next((flag for name, flag in _LOCAL_OPTIONS.items() if options.get(name)), None)
    if rejected is not None or options["engine"] == "spark":
        raise not_supported(rejected or "--engine spark")
    upload = _plan_upload(data, options["format"])
    try:
        return _send_upload(graph, upload, options)
    except OmnigraphError as error:
        error.message = error.message.replace(_BODY_NAME, upload.display_name)
        if not isinstance(error, ClientError) or "problems" not in error.details:
            raise
        return _read_report(error)


def _read_report(error: ClientError) -> LoadReport:
    problems = [read_known_members(BadRow, problem) for problem in error.details.pop("problems")]
    return LoadReport(tuple(problems), error.details.pop("problems_left_out", 0), error=error)


def _send_upload(graph: "CommandGraph", upload: Upload, options: Mapping[str, Any]) -> Receipt:
    """Send an upload in one request, or in parts if it exceeds the server's limit for requests."""
    with _open_body(upload, options["progress"]) as body:
        limit = read_load_limit(graph.exchange, body.size)
        if body.size <= limit:
            try:
                return _send_request(graph, upload, body, options)
            except ResourceLimitExceeded as error:
                limit = find_exceeded_limit(error, body.size)
        if isinstance(body, LoadBody):
            return _send_parts(graph, body, limit, options)
    with LoadBody(_read_lines(graph, upload, options)) as lines:
        return _send_parts(graph, lines, limit, options)


@contextmanager
def _open_body(upload: Upload, report_progress: Any) -> Iterator["_FileBody | LoadBody"]:
    """Return the body to send. Compressed files, several files and standard input are read into a temporary file."""
    path = upload.paths[0]
    if len(upload.paths) == 1 and path is not None and not path.endswith(".gz") and Path(path).is_file():
        yield _FileBody(upload, Path(path).stat().st_size, report_progress)
    else:
        with LoadBody(_read_chunks(upload, report_progress)) as body:
            yield body


@record
class _FileBody:
    """A file whose bytes are sent unchanged."""

    upload: Upload
    size: int
    report_progress: Any

    def chunks(self) -> Iterator[bytes]:
        """Yield all bytes, from the beginning."""
        return _read_chunks(self.upload, self.report_progress)


def _send_request(
    graph: "CommandGraph", upload: Upload, body: _FileBody | LoadBody, options: Mapping[str, Any]
) -> Receipt:
    from .graph import key_headers

    parameters = {
        "type": upload.type_name,
        "branch": options["branch"],
        "from": options["from_"],
        "mode": options["mode"],
        "message": options["message"],
        "dry_run": options["dry_run"],
        "max_errors": _MAX_ERRORS if options["max_errors"] is None else min(options["max_errors"], _MAX_ERRORS),
    }
    headers = {"Content-Type": upload.media_type, "Content-Length": str(body.size)}
    reply = graph.exchange.fetch(
        "POST",
        ("load", "parquet" if upload.media_type == _PARQUET else "ndjson"),
        parameters,
        body=body.chunks,
        headers=headers | key_headers(options["idempotency_key"]),
        condition=options["if_commit"],
    )
    return _read_receipt(graph, reply.json(), "Idempotent-Replay" in reply.headers)


def _send_parts(graph: "CommandGraph", body: LoadBody, limit: int, options: Mapping[str, Any]) -> Receipt:
    """Load NDJSON in parts that become visible at once."""
    from omnigraph.api.write_options import WriteOptions
    from omnigraph.client.loads import LoadSettings
    from omnigraph.client.partial_loads import load_in_parts

    handle = _make_handle(graph, options)
    settings = LoadSettings(options["mode"], options["from_"], "report", options["max_errors"], options["dry_run"])
    write_options = WriteOptions(options["if_commit"], options["message"], None, options["idempotency_key"])
    receipt = load_in_parts(
        handle,
        body,
        handle.branch_name,
        limit,
        settings,
        write_options,
        lambda sent_bytes: options["progress"](sent_bytes, body.size),
    )
    graph.actor = None if receipt.commit is None else receipt.commit.actor
    return receipt


def _make_handle(graph: "CommandGraph", options: Mapping[str, Any]) -> "RemoteHandle":
    from omnigraph.client.handle import RemoteHandle

    return RemoteHandle(graph.exchange, str(graph.exchange.server), options["branch"] or graph.branch_name)


def _read_lines(graph: "CommandGraph", upload: Upload, options: Mapping[str, Any]) -> Iterator[bytes]:
    """Yield a file as NDJSON, which can be cut into parts."""
    if upload.media_type != _PARQUET:
        return _read_chunks(upload, lambda *_: None)
    from omnigraph.client.load_input import iter_ndjson

    handle = _make_handle(graph, options)
    is_new = options["from_"] is not None and handle.branch_name not in graph.exchange.get("branches")["branches"]
    catalog = (handle.at(options["from_"]) if is_new else handle).schema_ir().catalog
    return iter_ndjson({upload.type_name: upload.paths[0]}, catalog, "parquet")


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


def _read_chunks(upload: Upload, report_progress: Any) -> Iterator[bytes]:
    """Yield the bytes of all files, with a newline between two files unless the first file ends with a newline."""
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


def _read_receipt(graph: "CommandGraph", document: Mapping[str, Any], is_replay: bool) -> Receipt:
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
