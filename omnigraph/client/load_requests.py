"""Send the parts of a load in one request, and restore file names and line numbers in its errors.

A single part without a type is sent as NDJSON, and everything else as a form. Either body can be sent again, because
the request has an idempotency key and its parts can be read again.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from omnigraph.errors import OmnigraphError
from omnigraph.records.frozen import record

from .exchange import NDJSON, Exchange
from .load_forms import RequestBody, write_form
from .load_limits import UNQUESTIONED_BYTES
from .load_parts import LoadPart
from .load_problems import SentFile, restore_positions
from .replies import Reply

MAX_LISTED_PROBLEMS = 100_000  # the maximum number of problems that a server lists
ReportProgress = Callable[[int], object]


@record
class LoadSettings:
    """The options of one load. `max_errors` is the number of problems to list; if None, the first one is raised."""

    branch: str
    mode: str
    from_: str | None = None
    max_errors: int | None = None
    dry_run: bool = False
    assume_utc: bool = False
    max_row_bytes: int | None = None
    message: str | None = None
    if_commit: str | None = None
    idempotency_key: str | None = None
    csv: Any = None

    @property
    def parameters(self) -> Mapping[str, Any]:
        """The URL parameters of the request."""
        return {
            "branch": self.branch,
            "from": self.from_,
            "mode": self.mode,
            "message": self.message,
            "dry_run": self.dry_run,
            "assume_utc": self.assume_utc,
            "max_errors": self.max_errors,
            "max_row_bytes": self.max_row_bytes,
        }


def make_body(parts: Sequence[LoadPart], csv_options: Any) -> RequestBody:
    """Return the body of a load."""
    only_part = parts[0] if len(parts) == 1 else None
    if only_part is not None and only_part.type_name is None:
        return RequestBody(NDJSON, only_part.size, only_part.chunks)
    return write_form(parts, csv_options)


def send_parts(
    exchange: Exchange,
    parts: Sequence[LoadPart],
    files: Sequence[SentFile],
    settings: LoadSettings,
    *,
    report_progress: ReportProgress = lambda _: None,
) -> Reply:
    """Send parts in one request, and return the response. Errors get file names and line numbers from `files`."""
    body = make_body(parts, settings.csv)
    headers = {"Content-Type": body.content_type, "Content-Length": str(body.size)}
    if settings.idempotency_key is not None:
        headers["Idempotency-Key"] = settings.idempotency_key
    try:
        return exchange.fetch(
            "POST",
            ("load", "ndjson" if body.content_type == NDJSON else "files"),
            settings.parameters,
            body=_report_chunks(body.chunks, report_progress) if body.size > UNQUESTIONED_BYTES else body.chunks,
            headers=headers,
            condition=settings.if_commit,
        )
    except OmnigraphError as error:
        restore_positions(error, files, names_files=body.content_type != NDJSON)
        raise


def _report_chunks(
    read_chunks: Callable[[], Iterator[bytes]], report_progress: ReportProgress
) -> Callable[[], Iterator[bytes]]:
    """Return a function that yields the same bytes and reports how many have been read."""

    def read_reported_chunks() -> Iterator[bytes]:
        sent_bytes = 0
        for chunk in read_chunks():
            yield chunk
            sent_bytes += len(chunk)
            report_progress(sent_bytes)

    return read_reported_chunks
