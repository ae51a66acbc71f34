"""Load data into a graph on a server.

Input that fits into one request becomes one commit. Larger input is loaded in parts into a temporary branch, which is
merged once and deleted, so that readers see all of the data or none of it.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from itertools import chain
from typing import Any

from omnigraph.api.data_files import ProgressOption
from omnigraph.api.results.receipt import BadRow, LoadReport, Receipt
from omnigraph.api.write_options import WriteOptions
from omnigraph.errors import ClientError, InputError, OmnigraphError
from omnigraph.ingest.load import check_load_mode
from omnigraph.records.frozen import record
from omnigraph.values import clock_and_ids

from .answers import read_load_receipt
from .branches import create_branch
from .exchange import NDJSON
from .failures import read_known_members
from .handle import RemoteHandle
from .load_input import iter_ndjson
from .merges import run_merge
from .writes import check_write_options, write_branch

PART_BYTES = 16 << 20  # below the smallest default limit on the body of a load
_MAX_ERRORS = 100  # the largest number of problems that a server lists
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
    """Load data as one commit, or return the problems in it."""
    handle.require_writable("loading data")
    check_write_options(handle, options)
    check_load_mode(settings.mode)
    if settings.on_error not in ("raise", "report"):
        raise InputError(f"on_error must be 'raise' or 'report', got '{settings.on_error}'", reason="invalid option")
    catalog = _schema_handle(handle, branch, settings).schema_ir().catalog
    parts = _cut_parts(iter_ndjson(data, catalog, form))
    first, second = next(parts, b""), next(parts, None)
    try:
        if second is None:
            receipt = _load_part(handle, write_branch(handle, branch), first, settings, options)
            _reporter(progress)(len(first))
            return receipt
        return _load_parts(handle, branch, chain((first, second), parts), settings, options, _reporter(progress))
    except ClientError as error:
        if settings.on_error == "raise" or "problems" not in error.details:
            raise
        problems = tuple(read_known_members(BadRow, problem) for problem in error.details.pop("problems"))
        return LoadReport(problems, error.details.pop("problems_left_out", 0), error=error)


def _schema_handle(handle: RemoteHandle, branch: str | None, settings: LoadSettings) -> RemoteHandle:
    """Return a handle whose schema the data must match: the branch, or the revision that a new branch starts from."""
    if settings.from_ is None or branch is None or branch.strip() in handle.exchange.get("branches")["branches"]:
        return handle.for_read(branch, None)
    return handle.at(settings.from_)


def _cut_parts(lines: Iterator[bytes]) -> Iterator[bytes]:
    """Yield whole lines, joined up to the size of one request."""
    part: list[bytes] = []
    size = 0
    for line in lines:
        if part and size + len(line) > PART_BYTES:
            yield b"".join(part)
            part, size = [], 0
        part.append(line)
        size += len(line)
    if part:
        yield b"".join(part)


def _load_part(
    handle: RemoteHandle, branch: str, content: bytes, settings: LoadSettings, options: WriteOptions
) -> Receipt:
    """Send one request. It can be repeated, because it has an idempotency key and its body is in memory."""
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
    headers = {"Content-Type": NDJSON, "Idempotency-Key": options.idempotency_key or clock_and_ids.new_ulid()}
    try:
        reply = handle.exchange.fetch(
            "POST", ("load", "ndjson"), parameters, body=content, headers=headers, condition=options.if_commit
        )
    except OmnigraphError as error:
        error.message = error.message.replace(_BODY_NAME, "<input>")
        raise
    is_replay = "Idempotent-Replay" in reply.headers and options.idempotency_key is not None
    return read_load_receipt(reply.json(), elapsed=clock_and_ids.monotonic() - started, replayed=is_replay)


def _load_parts(
    handle: RemoteHandle,
    branch: str | None,
    parts: Iterator[bytes],
    settings: LoadSettings,
    options: WriteOptions,
    report_progress: Callable[[int], None],
) -> Receipt:
    """Load all parts into a temporary branch, merge it once, and delete it."""
    if settings.mode == "overwrite" or settings.dry_run:
        what = "a dry run" if settings.dry_run else "the mode 'overwrite'"
        raise InputError(
            f"the input of a load on a server is limited to {PART_BYTES:,} bytes for {what}",
            reason="too large",
            hint="load a smaller file, or run the load where the graph is stored",
        )
    started = clock_and_ids.monotonic()
    target = write_branch(handle, branch)
    created = settings.from_ is not None and target not in handle.exchange.get("branches")["branches"]
    if created:
        create_branch(handle, target, settings.from_)
    temporary = create_branch(handle.on_branch(target), f"load-{clock_and_ids.new_ulid().lower()}", target)
    part_settings = LoadSettings(
        settings.mode, None, settings.on_error, settings.max_errors, False, settings.assume_utc
    )
    nodes, edges, sent_bytes = Counter[str](), Counter[str](), 0
    try:
        for part in parts:
            receipt = _load_part(temporary, temporary.branch_name, part, part_settings, WriteOptions())
            nodes.update(receipt.nodes)
            edges.update(receipt.edges)
            sent_bytes += len(part)
            report_progress(sent_bytes)
        body = {
            "source": temporary.branch_name,
            "target": target,
            "message": options.message,
            "delete_branch": True,
        }
        merged = run_merge(handle, ("branches", "merge"), body, options.if_commit)
    except BaseException:
        with suppress(OmnigraphError):
            handle.exchange.call("DELETE", ("branches", temporary.branch_name), {"force": True})
        raise
    commit = merged.commit or handle.on_branch(target).head()
    elapsed = clock_and_ids.monotonic() - started
    return Receipt(commit, dict(nodes), dict(edges), branch=target, branch_created=created, elapsed=elapsed)


def _reporter(progress: ProgressOption) -> Callable[[int], None]:
    if not callable(progress):
        return lambda _: None
    return lambda sent_bytes: progress(sent_bytes, sent_bytes)
