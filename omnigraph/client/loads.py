"""Load data into a graph on a server.

Input that fits into one request becomes one commit. Larger input is sent in parts; see `partial_loads`. In both cases,
readers see all of the data or none of it.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from omnigraph.api.data_files import ProgressOption
from omnigraph.api.results.receipt import BadRow, LoadReport, Receipt
from omnigraph.api.write_options import WriteOptions
from omnigraph.errors import ClientError, InputError, OmnigraphError, ResourceLimitExceeded
from omnigraph.ingest.load import check_load_mode
from omnigraph.records.frozen import record
from omnigraph.values import clock_and_ids

from .answers import read_load_receipt
from .exchange import NDJSON
from .failures import read_known_members
from .handle import RemoteHandle
from .load_body import LoadBody
from .load_input import iter_ndjson
from .load_limits import find_exceeded_limit, read_load_limit
from .writes import check_write_options, write_branch

_MAX_ERRORS = 100  # the maximum number of problems that a server lists
_BODY_NAME = "<body>"


@record
class LoadSettings:
    """The options of one load."""

    mode: str
    from_: str | None = None
    on_error: str = "raise"
    max_errors: int | None = None
    dry_run: bool = False
    assume_utc: bool = False


def load_data(  # noqa: PLR0913, PLR0917 - the parts of one load
    handle: RemoteHandle,
    data: Any,
    form: str | None,
    branch: str | None,
    settings: LoadSettings,
    options: WriteOptions,
    progress: ProgressOption = None,
) -> Receipt | LoadReport:
    """Load data as one commit, or return the problems in the data."""
    handle.require_writable("loading data")
    check_write_options(handle, options)
    check_load_mode(settings.mode)
    if settings.on_error not in ("raise", "report"):
        raise InputError(f"on_error must be 'raise' or 'report', got '{settings.on_error}'", reason="invalid option")
    catalog = _schema_handle(handle, branch, settings).schema_ir().catalog
    try:
        with LoadBody(iter_ndjson(data, catalog, form)) as body:
            return _load_body(handle, body, write_branch(handle, branch), settings, options, _reporter(body, progress))
    except ClientError as error:
        if settings.on_error == "raise" or "problems" not in error.details:
            raise
        problems = tuple(read_known_members(BadRow, problem) for problem in error.details.pop("problems"))
        return LoadReport(problems, error.details.pop("problems_left_out", 0), error=error)


def _schema_handle(handle: RemoteHandle, branch: str | None, settings: LoadSettings) -> RemoteHandle:
    """Return a handle on the state whose schema the data must match: the branch, or the origin of a new branch."""
    if settings.from_ is None or branch is None or branch.strip() in handle.exchange.get("branches")["branches"]:
        return handle.for_read(branch, None)
    return handle.at(settings.from_)


def _load_body(
    handle: RemoteHandle,
    body: LoadBody,
    target: str,
    settings: LoadSettings,
    options: WriteOptions,
    report_progress: Callable[[int], None],
) -> Receipt:
    limit = read_load_limit(handle.exchange, body.size)
    if body.size <= limit:
        try:
            receipt = send_load(handle, target, body.reader(report_progress), body.size, settings, options)
        except ResourceLimitExceeded as error:
            limit = find_exceeded_limit(error, body.size)
        else:
            report_progress(body.size)
            return receipt
    from .partial_loads import load_in_parts

    return load_in_parts(handle, body, target, limit, settings, options, report_progress)


def send_load(
    handle: RemoteHandle,
    branch: str,
    body: bytes | Callable[[], Iterator[bytes]],
    size: int,
    settings: LoadSettings,
    options: WriteOptions,
) -> Receipt:
    """Send one request. It can be repeated, because it has an idempotency key and its body can be read again."""
    started = clock_and_ids.monotonic()
    wants_report = settings.on_error == "report"
    parameters: Mapping[str, Any] = {
        "branch": branch,
        "from": settings.from_,
        "mode": settings.mode,
        "message": options.message,
        "dry_run": settings.dry_run,
        "assume_utc": settings.assume_utc,
        "max_errors": min(settings.max_errors or _MAX_ERRORS, _MAX_ERRORS) if wants_report else None,
    }
    key = options.idempotency_key or clock_and_ids.new_ulid()
    headers = {"Content-Type": NDJSON, "Content-Length": str(size), "Idempotency-Key": key}
    try:
        reply = handle.exchange.fetch(
            "POST", ("load", "ndjson"), parameters, body=body, headers=headers, condition=options.if_commit
        )
    except OmnigraphError as error:
        error.message = error.message.replace(_BODY_NAME, "<input>")
        raise
    is_replay = "Idempotent-Replay" in reply.headers and options.idempotency_key is not None
    return read_load_receipt(reply.json(), elapsed=clock_and_ids.monotonic() - started, replayed=is_replay)


def _reporter(body: LoadBody, progress: ProgressOption) -> Callable[[int], None]:
    if not callable(progress):
        return lambda _: None
    return lambda sent_bytes: progress(sent_bytes, body.size)
