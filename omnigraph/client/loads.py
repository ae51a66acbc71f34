"""Load data into a graph on a server.

Input that fits into one request becomes one commit. Larger input is sent in parts; see `partial_loads`. In both cases,
readers see all of the data or none of it.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from os import PathLike
from typing import Any

from omnigraph.api.data_files import ProgressOption, progress_callback
from omnigraph.api.loads import check_on_error
from omnigraph.api.results.receipt import LoadReport, Receipt
from omnigraph.errors import ClientError
from omnigraph.ingest.input_files import FileOptions
from omnigraph.ingest.load import check_load_mode
from omnigraph.lang.schema.catalog import Catalog
from omnigraph.records.frozen import record
from omnigraph.values import clock_and_ids
from omnigraph.values.naive_times import naive_times_as_utc

from .answers import read_load_receipt
from .handle import RemoteHandle
from .load_input import open_parts
from .load_parts import LoadPart
from .load_requests import LoadSettings
from .load_runs import (
    ExceededLimit,
    check_row_limit,
    count_listed_problems,
    send_load,
    take_report,
    write_reject_files,
)


@record
class ClientLoadOptions:
    """Load options that the client handles itself and does not send to the server."""

    on_error: Any = "raise"
    max_errors: int | None = None
    rejects: str | PathLike[str] | None = None
    progress: ProgressOption = None


def load_data(
    handle: RemoteHandle, data: Any, file_options: FileOptions, settings: LoadSettings, options: ClientLoadOptions
) -> Receipt | LoadReport:
    """Load data as one commit, or return the problems in the data."""
    handle.require_writable("loading data")
    check_load_mode(settings.mode)
    check_row_limit(settings.max_row_bytes)
    wants_report = check_on_error(options.on_error) == "report"
    listed = count_listed_problems(
        options.max_errors, wants_report=wants_report, wants_rejects=options.rejects is not None
    )
    settings = replace(settings, csv=file_options.csv_options, max_errors=listed)
    try:
        with (
            naive_times_as_utc(settings.assume_utc),
            open_parts(data, file_options, lambda: find_catalog(handle, settings)) as parts,
        ):
            receipt = _load_parts(handle, parts, settings, options.progress)
    except ClientError as error:
        report = take_report(error)
        if report is None:
            raise
        return _finish_report(report, options, wants_report=wants_report)
    if options.rejects is not None:
        write_reject_files(options.rejects, ())
    return receipt


def _finish_report(report: LoadReport, options: ClientLoadOptions, *, wants_report: bool) -> LoadReport:
    if options.rejects is not None:
        write_reject_files(options.rejects, report)
    if not wants_report and report.error is not None:
        raise report.error
    return report if options.max_errors is None else report.first(options.max_errors)


def find_catalog(handle: RemoteHandle, settings: LoadSettings) -> Catalog:
    """Return the types that the data must match: those of the branch or, for a new branch, of its origin."""
    names = None if settings.from_ is None else handle.exchange.get("branches")["branches"]
    is_new = names is not None and settings.branch not in names
    state = handle.at(settings.from_ or "") if is_new else handle.on_branch(settings.branch)
    return state.schema_ir().catalog


def _load_parts(
    handle: RemoteHandle, parts: Sequence[LoadPart], settings: LoadSettings, progress: ProgressOption
) -> Receipt:
    started = clock_and_ids.monotonic()
    report_progress = _make_reporter(parts, progress)
    has_own_key = settings.idempotency_key is not None
    request = replace(settings, idempotency_key=settings.idempotency_key or clock_and_ids.new_ulid())
    outcome = send_load(handle.exchange, parts, request, report_progress)
    if isinstance(outcome, ExceededLimit):
        from .partial_loads import load_in_parts

        return load_in_parts(handle, parts, outcome.limit, settings, report_progress)
    report_progress(_total_bytes(parts))
    is_replay = has_own_key and "Idempotent-Replay" in outcome.headers
    return read_load_receipt(outcome.json(), elapsed=clock_and_ids.monotonic() - started, replayed=is_replay)


def _total_bytes(parts: Sequence[LoadPart]) -> int:
    return sum(part.size for part in parts)


def _make_reporter(parts: Sequence[LoadPart], progress: ProgressOption) -> Callable[[int], object]:
    """Return a function that reports how many bytes of the input have been sent."""
    callback, total_bytes = progress_callback(progress), _total_bytes(parts)
    if callback is None:
        return lambda _: None
    return lambda sent_bytes: callback(min(sent_bytes, total_bytes), total_bytes)
