"""Load files into a graph on a server. A file may be larger than memory, and larger than the server's limit for a load.

The files are found and read on this machine, and the server checks their records.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from omnigraph.api.results.receipt import LoadReport, Receipt
from omnigraph.client.load_input import open_parts
from omnigraph.client.load_parts import LoadPart
from omnigraph.client.load_requests import LoadSettings
from omnigraph.client.load_runs import (
    ExceededLimit,
    check_row_limit,
    count_listed_problems,
    send_load,
    take_report,
    write_reject_files,
)
from omnigraph.errors import ClientError
from omnigraph.ingest.input_files import FileOptions

if TYPE_CHECKING:
    from omnigraph.client.handle import RemoteHandle

    from .graph import CommandGraph


def load_files(graph: "CommandGraph", data: Any, options: Mapping[str, Any]) -> Receipt | LoadReport:
    """Load files as one commit, or return the problems in them."""
    check_row_limit(options["max_row_bytes"])
    file_options = FileOptions(options["format"], options["mapping"] or {}, options["csv"])
    try:
        # Only dataclasses need the types of the graph, and commands load none.
        with open_parts(data, file_options, _reject_dataclasses) as parts:
            receipt = _send_parts(graph, _without_only_name(parts), _read_settings(options), options["progress"])
    except ClientError as error:
        report = take_report(error)
        if report is None:
            raise
        return _finish_report(report, options)
    if options["rejects"] is not None:
        write_reject_files(options["rejects"], ())
    return receipt


def _without_only_name(parts: list[LoadPart]) -> list[LoadPart]:
    """Return the parts; a single NDJSON file loses its label, because the command already shows the file's name."""
    is_single_file = len(parts) == 1 and parts[0].type_name is None
    return [replace(parts[0], label=None)] if is_single_file else parts


def _reject_dataclasses() -> Any:
    raise TypeError("the command line cannot load dataclass instances")


def _read_settings(options: Mapping[str, Any]) -> LoadSettings:
    max_errors, wants_rejects = options["max_errors"], options["rejects"] is not None
    return LoadSettings(
        branch=options["branch"],
        mode=options["mode"],
        from_=options["from_"],
        max_errors=count_listed_problems(max_errors, wants_report=True, wants_rejects=wants_rejects),
        dry_run=options["dry_run"],
        max_row_bytes=options["max_row_bytes"],
        message=options["message"],
        if_commit=options["if_commit"],
        idempotency_key=options["idempotency_key"],
        csv=options["csv"],
    )


def _finish_report(report: LoadReport, options: Mapping[str, Any]) -> LoadReport:
    if options["rejects"] is not None:
        write_reject_files(options["rejects"], report)
    return report if options["max_errors"] is None else report.first(options["max_errors"])


def _send_parts(graph: "CommandGraph", parts: list[LoadPart], settings: LoadSettings, show_progress: Any) -> Receipt:
    """Send all parts in one request, or in batches if they exceed the server's limit for requests."""
    total_bytes = sum(part.size for part in parts)

    def report_progress(sent_bytes: int) -> None:
        show_progress(min(sent_bytes, total_bytes), total_bytes)

    outcome = send_load(graph.exchange, parts, settings, report_progress)
    if not isinstance(outcome, ExceededLimit):
        return _read_receipt(graph, outcome.json(), "Idempotent-Replay" in outcome.headers)
    from omnigraph.client.partial_loads import load_in_parts

    receipt = load_in_parts(_make_handle(graph, settings.branch), parts, outcome.limit, settings, report_progress)
    graph.actor = None if receipt.commit is None else receipt.commit.actor
    return receipt


def _make_handle(graph: "CommandGraph", branch: str) -> "RemoteHandle":
    from omnigraph.client.handle import RemoteHandle

    return RemoteHandle(graph.exchange, str(graph.exchange.server), branch)


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
