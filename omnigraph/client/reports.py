"""Build maintenance reports from the JSON that a server returns. The classes are those of an embedded graph.

A server names a graph by its path. This module replaces the path with the graph's URL, so that the commands in hints
can be run as they are. This module imports neither Arrow nor Lance, because the command line, which must start quickly,
uses it as well.
"""

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any
from urllib.parse import urlsplit

from omnigraph.errors import StorageError
from omnigraph.history.recovery_records import RecoveryRecord, parse_record
from omnigraph.maintenance.finding import Checkup, IntegrityFinding
from omnigraph.maintenance.health_thresholds import LimitWarning
from omnigraph.maintenance.optimize_report import OptimizeReport, TableMaintenance
from omnigraph.maintenance.repair_report import DatasetRepair, NameRepair, Repair, VersionRepair
from omnigraph.maintenance.retention.absence_report import Absence, ResidualTrace
from omnigraph.maintenance.retention.report import Cleanup, DatasetCleanup
from omnigraph.maintenance.status_report import DatasetStatus, Status
from omnigraph.publish.intent import PendingIntent, SetAsideIntent, UnreadableIntent
from omnigraph.publish.intent_record import Intent
from omnigraph.values.table_key import TableKey

from .commit_documents import read_commit

Document = Mapping[str, Any]


def name_graph(value: Any, url: str) -> Any:
    """Return a report in which the URL of a graph replaces its path on the server.

    >>> name_graph({"command": "run `omnigraph check /graphs/g`"}, "https://host/graphs/g")
    {'command': 'run `omnigraph check https://host/graphs/g`'}
    """
    return _replace_text(value, f"/graphs/{urlsplit(url).path.rpartition('/')[2]}", url)


def _replace_text(value: Any, path: str, url: str) -> Any:
    if isinstance(value, Mapping):
        return {name: _replace_text(member, path, url) for name, member in value.items()}
    if isinstance(value, list):
        return [_replace_text(item, path, url) for item in value]
    return value.replace(path, url) if isinstance(value, str) else value


def _read_key(text: str | None) -> TableKey | None:
    return None if text is None else TableKey(text)


def read_status(document: Document) -> Status:
    """Return the status of a graph. The server does not send its cache directory."""
    members = {name: document[name] for name in _STATUS_MEMBERS}
    datasets = [DatasetStatus(**{**row, "type_key": TableKey(row["type_key"])}) for row in document["datasets"]]
    warnings = [LimitWarning(**{**row, "type_key": _read_key(row["type_key"])}) for row in document["warnings"]]
    return Status(
        commit_id=document["graph_commit_id"],
        datasets=tuple(datasets),
        cache_directory=document.get("cache_directory"),
        warnings=tuple(warnings),
        **members,
    )


_STATUS_MEMBERS = (
    "branch",
    "branches",
    "tags",
    "commits",
    "manifest_versions",
    "intents",
    "set_aside",
    "bytes",
    "unreclaimed_bytes",
    "cache_bytes",
)


def read_checkup(document: Document) -> Checkup:
    """Return the result of a check."""
    return Checkup(
        findings=tuple(map(_read_finding, document["findings"])),
        readable=document["newest_readable"],
        read=document["read"],
        more=document["more"],
    )


def _read_finding(document: Document) -> IntegrityFinding:
    members = {**document, "type_key": _read_key(document["type_key"]), "branches": tuple(document["branches"])}
    return IntegrityFinding(**members)


def read_optimize_report(document: Document) -> OptimizeReport:
    """Return the report of an optimize run."""
    return OptimizeReport(
        datasets=tuple(map(_read_table_maintenance, document["datasets"])),
        commits=tuple(map(read_commit, document["commits"])),
        engine=document["engine"],
        retries=document["retries"],
    )


def _read_table_maintenance(document: Document) -> TableMaintenance:
    pending = tuple((index["property"], index["reason"]) for index in document["pending_indexes"])
    return TableMaintenance(**{**document, "type_key": TableKey(document["type_key"]), "pending_indexes": pending})


def read_cleanup(document: Document) -> Cleanup:
    """Return the report of a cleanup."""
    return Cleanup(
        preview=document["preview"],
        datasets=tuple(DatasetCleanup(**row) for row in document["datasets"]),
        unreferenced_paths=tuple(document["unreferenced_paths"]),
        commits_kept=document["commits_kept"],
        engine=document["engine"],
        unreferenced_bytes=document["unreferenced_bytes"],
        orphans=tuple(directory for _, directory in document["orphans"]["reclaimed"]),
        spared_files=document["spared_files"],
        spared_bytes=document["spared_bytes"],
        deleted_rows=document["deleted_rows"],
        held_by=tuple(document["held_by"]),
        unnamed=tuple(document["unnamed"]),
    )


def read_absence(document: Document) -> Absence:
    """Return the traces of an entity."""
    traces = [ResidualTrace(row["name"], row["kind"], _read_key(row["type_key"])) for row in document["traces"]]
    return Absence(document["type"], document["id"], tuple(traces), document["files"], document["bytes"])


def add_local_traces(absence: Absence, entity_id: str, paths: Any) -> Absence:
    """Return the traces of an entity, including those in files and folders on this machine."""
    if not paths:
        return absence
    from omnigraph.maintenance.retention.local_traces import find_local_traces

    traces, file_count, byte_count = find_local_traces(entity_id, paths)
    return replace(
        absence,
        traces=(*absence.traces, *traces),
        files=absence.files + file_count,
        bytes=absence.bytes + byte_count,
    )


def read_repair(document: Document) -> Repair:
    """Return the report of a repair."""
    return Repair(
        preview=document["preview"],
        datasets=tuple(
            DatasetRepair(**{**row, "operations": tuple(row["operations"])}) for row in document["datasets"]
        ),
        manifest_version=document["manifest_version"],
        commit_id=document["graph_commit_id"],
        damage=tuple(map(_read_finding, document["damage"])),
        readable=document["newest_readable"],
        names=tuple(map(_read_name_repair, document["names"])),
        versions=tuple(map(_read_version_repair, document["versions"])),
    )


def _read_name_repair(document: Document) -> NameRepair:
    members = dict(document)
    return NameRepair(commit_id=members.pop("graph_commit_id"), **members)


def _read_version_repair(document: Document) -> VersionRepair:
    members = dict(document)
    commits = tuple(members.pop("graph_commit_ids"))
    return VersionRepair(version=members.pop("manifest_version"), commits=commits, **members)


def read_recovery(document: Document) -> RecoveryRecord:
    """Return the outcome of an operation."""
    return parse_record(document)


def read_pending(document: Document) -> PendingIntent:
    """Return a running operation. Members that only the operation itself needs are empty: the server omits them."""
    intent = Intent(
        id=document["operation_id"],
        operation=document["operation"],
        branch=document["graph_branch"],
        branch_ulid="",
        base_commit=document["base_commit_id"],
        created_at=document["created_at"],
        commit_id=document["graph_commit_id"],
        actor=document["for_actor"],
        message=document["message"],
    )
    return PendingIntent(intent, confirmed=document["confirmed"], **_read_times(document))


def read_set_aside(document: Document) -> SetAsideIntent:
    """Return an operation that was set aside."""
    listed: PendingIntent | UnreadableIntent
    if "base_commit_id" in document:
        listed = read_pending(document)
    else:
        listed = UnreadableIntent(document["operation_id"], StorageError(document["error"]), **_read_times(document))
    return SetAsideIntent(listed, document["error"], document["needs"], document["set_aside_at"])


def _read_times(document: Document) -> dict[str, Any]:
    return {name: datetime.fromisoformat(document[name]) for name in ("alive_at", "armed_at")}
