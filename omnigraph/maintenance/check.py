"""Check the integrity of a whole graph: refs, manifests, logs, files, rules, indexes and external commits.

The check reads all data that is visible on branches and tags and examines every file in their history. It never writes,
and it continues after each finding, so one run reports all faults.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace

import pyarrow as pa

from omnigraph.errors import InputError, OmnigraphError, StorageError
from omnigraph.history.file_checksums import read_checksums
from omnigraph.history.schemas import StoredSchema
from omnigraph.lang.schema.catalog import EdgeType, NodeType
from omnigraph.maintenance.executors.local import LocalExecutor
from omnigraph.maintenance.executors.protocol import Executor
from omnigraph.storage import layout
from omnigraph.storage.arrow import table_key
from omnigraph.storage.failures import panics_as_errors
from omnigraph.storage.file_roles import TABLE_ROOTS
from omnigraph.storage.special_files import find_special_files
from omnigraph.storage.store import Store
from omnigraph.storage.table import open_table
from omnigraph.storage.table_head import without_caches
from omnigraph.values.table_key import TableKey

from .branch_heads import RESTORE_HINT, RefHead, read_heads, reread_head
from .branch_log import (
    BranchLog,
    check_reclaimed_versions,
    check_schema,
    check_versions,
    find_newest_readable,
    read_branch_log,
)
from .drift import adopted_versions, read_drift, reported_versions
from .file_integrity import FileIntegrity, TableVersion
from .finding import Checkup, IntegrityFinding
from .index_check import check_indexes
from .lost_versions import check_lost_versions, find_lost_versions
from .name_findings import check_unnamed, find_unnamed_manifests, unnamed_heads
from .operation_findings import check_operations
from .row_validation import TableValidator

_MAX_ATTEMPTS = 10
MAX_FINDINGS = 1000  # maximum number of findings to keep; any others are only counted
_SPECIAL_FILE_HINT = "restore the file from a backup and run the check again; no file has been read yet"
CheckProgress = Callable[[str], object]


@dataclass(slots=True)
class _CheckRun:
    """The state of a running check."""

    store: Store
    quick: bool
    report_progress: CheckProgress
    integrity: FileIntegrity
    executor: Executor
    verified_share: float
    findings: dict[object, IntegrityFinding] = field(default_factory=dict)
    omitted_findings: int = 0
    checked_rows: int = 0
    commit_ids: set[str] = field(default_factory=set)
    checked_tables: set[tuple[object, ...]] = field(default_factory=set)
    node_ids: dict[tuple[str, int], pa.Array] = field(default_factory=dict)

    def add_findings(self, new_findings: Iterator[IntegrityFinding]) -> None:
        """Add findings, merging those about the same file into one."""
        for finding in new_findings:
            existing = self.findings.get(finding.merge_key)
            if existing is not None:
                self.findings[finding.merge_key] = existing.merged_with(finding)
            elif len(self.findings) < MAX_FINDINGS:
                self.findings[finding.merge_key] = finding
            else:
                self.omitted_findings += 1

    def add_name_findings(self, head_findings: list[IntegrityFinding], name_findings: list[IntegrityFinding]) -> None:
        """Add findings about refs and manifests. A damaged ref is reported only once."""
        reported_paths = {finding.name for finding in name_findings}
        self.add_findings(
            finding for finding in head_findings if finding.kind != "ref" or finding.name not in reported_paths
        )
        self.add_findings(iter(name_findings))

    def count_reads(self, named_logs: Sequence[BranchLog]) -> dict[str, int]:
        """Return the number of items that the check has read so far, by kind."""
        directories = [branch_log.head.ref.directory for branch_log in named_logs]
        return {
            "branches": directories.count(layout.REFS),
            "tags": len(directories) - directories.count(layout.REFS),
            "commits": len(self.commit_ids),
            "files": self.integrity.checked_count,
            "verified": len(self.integrity.verified_files),
            "unrecorded": len(self.integrity.unrecorded_files),
            "rows": self.checked_rows,
        }

    def checkpoint(self) -> tuple[dict[object, IntegrityFinding], int]:
        """Return a checkpoint of the findings for `restore_checkpoint`."""
        return dict(self.findings), self.omitted_findings

    def restore_checkpoint(self, checkpoint: tuple[dict[object, IntegrityFinding], int]) -> None:
        """Discard the findings and the file listings collected since the checkpoint."""
        self.findings, self.omitted_findings = dict(checkpoint[0]), checkpoint[1]
        self.integrity.reset()


def check_graph(
    store: Store,
    *,
    quick: bool = False,
    sample: float | None = None,
    progress: CheckProgress | None = None,
    executor: Executor | None = None,
) -> Checkup:
    """Check the whole graph. A `quick` check skips rows, indexes and file contents.

    If `sample` is a fraction, the check is quick but also verifies the contents of that fraction of the files. The
    files are verified by `executor`, or by threads in this process if `executor` is None.
    """
    if sample is not None and not 0 < sample <= 1:
        message = f"`sample` must be greater than 0 and at most 1, not {sample}"
        raise InputError(message, reason="out of range")
    store = without_caches(store)
    quick = quick or sample is not None
    share = sample if sample is not None else float(not quick)
    check_run = _CheckRun(
        store,
        quick,
        progress or (lambda _: None),
        FileIntegrity(store, open_files=not quick),
        executor or LocalExecutor(),
        share,
    )
    check_run.add_findings(_check_special_files(store))
    if check_run.findings:  # opening a pipe would block, so nothing is read
        return Checkup(tuple(check_run.findings.values()), {}, check_run.count_reads([]), check_run.omitted_findings)
    head_findings: list[IntegrityFinding] = []
    heads = read_heads(store, head_findings)
    unnamed = find_unnamed_manifests(store)
    check_run.add_name_findings(head_findings, list(check_unnamed(unnamed)))
    check_run.add_findings(check_operations(store))
    named_logs = [branch_log for head in heads if (branch_log := _check_until_stable(check_run, head)) is not None]
    branch_logs = [
        *named_logs,
        *(_check_branch(check_run, read_branch_log(store, head)) for head in unnamed_heads(unnamed)),
    ]
    check_run.add_findings(_check_missing_history(check_run, branch_logs))
    check_run.add_findings(check_lost_versions(find_lost_versions(store, branch_logs)))
    check_run.add_findings(_check_drift(check_run, branch_logs))
    readable_commits = {
        branch_log.head.label: find_newest_readable(store, branch_log, check_run.integrity)
        for branch_log in branch_logs
    }
    unreadable_branches = {finding.branch: None for finding in head_findings if finding.branch is not None}
    return Checkup(
        tuple(check_run.findings.values()),
        {**unreadable_branches, **readable_commits},
        check_run.count_reads(named_logs),
        check_run.omitted_findings,
    )


def _check_special_files(store: Store) -> Iterator[IntegrityFinding]:
    """Report pipes, sockets and devices, none of which may be opened."""
    for name in find_special_files(store):
        yield IntegrityFinding("file", "this is not a regular file", name=name, hint=_SPECIAL_FILE_HINT)


def measure_table_files(store: Store) -> int:
    """Return the total size of all table files, which is an upper bound on the bytes that a check reads."""
    return sum(table_file.size for prefix in TABLE_ROOTS for table_file in store.objects.list(prefix))


def _check_until_stable(check_run: _CheckRun, head: RefHead) -> BranchLog | None:
    """Check one branch. If faults are found and the branch has advanced, check it again.

    A cleanup may have removed the state that was checked. Return None if the branch was deleted.
    """
    for _ in range(_MAX_ATTEMPTS):
        checkpoint = check_run.checkpoint()
        branch_log = _check_branch(check_run, read_branch_log(check_run.store, head))
        if check_run.checkpoint() == checkpoint or not head.is_newest:
            return branch_log
        current_head = reread_head(check_run.store, head)
        if current_head is not None and current_head.manifest.version == head.manifest.version:
            return branch_log
        check_run.restore_checkpoint(checkpoint)
        if current_head is None:
            return None
        head = current_head
    return _check_branch(check_run, read_branch_log(check_run.store, head))


def _check_branch(check_run: _CheckRun, branch_log: BranchLog) -> BranchLog:
    """Run all checks on one branch or tag."""
    branch_label = branch_log.head.label
    check_run.report_progress(branch_label)
    check_run.commit_ids |= branch_log.commits.keys()
    contract = check_schema(check_run.store, branch_log)
    check_run.add_findings(_verify_checksums(check_run, branch_log))
    check_run.add_findings(iter(branch_log.findings))
    check_run.add_findings(check_versions(branch_log, check_run.integrity))
    if contract is not None and not check_run.quick:
        validator = TableValidator(check_run.store, contract, branch_log.state.tables)
        schema_types: list[NodeType | EdgeType] = [*contract.ir.catalog.nodes, *contract.ir.catalog.edges]
        for schema_type in schema_types:
            check_run.report_progress(f"{branch_label} {table_key(schema_type)}")
            check_run.add_findings(
                replace(finding, branch=branch_label)
                for finding in _check_type(check_run, validator, schema_type, branch_label)
            )
        check_run.checked_rows += validator.row_count
    return branch_log


def _verify_checksums(check_run: _CheckRun, branch_log: BranchLog) -> Iterator[IntegrityFinding]:
    """Verify a branch's files. Unreadable checksums are reported as a finding."""
    for commit in branch_log.commits.values():
        try:
            check_run.integrity.add_checksums(read_checksums(check_run.store, commit))
        except StorageError as error:
            yield IntegrityFinding("log", error.message, branch=branch_log.head.label, hint=error.hint)
    if check_run.verified_share:
        check_run.report_progress(f"{branch_log.head.label} files")
        check_run.integrity.verify_checksums(check_run.executor, check_run.verified_share)


def _check_type(
    check_run: _CheckRun, validator: TableValidator, schema_type: NodeType | EdgeType, branch: str
) -> Iterator[IntegrityFinding]:
    """Check one table's rows and indexes. If the table cannot be scanned, report it as damaged."""
    type_key = table_key(schema_type)
    table_entry = validator.tables.get(type_key)
    table_version = (table_entry.location, table_entry.lance_version) if table_entry is not None else None
    if table_version is not None and check_run.integrity.faults(table_version):
        return  # the faults have already been reported
    fingerprint = _table_fingerprint(validator.contract, validator, schema_type)
    if fingerprint in check_run.checked_tables:  # this version was already checked on another branch
        if table_version in check_run.node_ids:
            validator.node_ids[schema_type.name] = check_run.node_ids[table_version]
        return
    try:
        with panics_as_errors():
            yield from validator.check_type(schema_type)
            if table_version is not None and not _has_index_faults(check_run.integrity, table_version):
                table = open_table(check_run.store, *table_version)
                yield from check_indexes(check_run.store, table, type_key, branch)
        if table_version is not None:
            check_run.node_ids |= (
                {table_version: validator.node_ids[schema_type.name]} if schema_type.name in validator.node_ids else {}
            )
    except (OmnigraphError, OSError, ValueError, RuntimeError) as error:
        yield from _report_unreadable(check_run, type_key, table_version, error)
    check_run.checked_tables.add(fingerprint)


def _has_index_faults(integrity: FileIntegrity, table_version: TableVersion) -> bool:
    """Return whether a table's indexes are already known to be missing or damaged."""
    return bool(integrity.lost_indexes(table_version) or integrity.damaged_indexes(table_version))


def _table_fingerprint(
    contract: StoredSchema, validator: TableValidator, schema_type: NodeType | EdgeType
) -> tuple[object, ...]:
    """Return the schema and the versions of a table and its endpoint tables, which determine the check's result."""
    type_keys = [table_key(schema_type)]
    type_keys += (
        [TableKey.node(schema_type.source), TableKey.node(schema_type.target)]
        if isinstance(schema_type, EdgeType)
        else []
    )
    table_entries = (validator.tables.get(type_key) for type_key in type_keys)
    return (
        contract.source,
        *(
            (table_entry.location, table_entry.lance_version)
            for table_entry in table_entries
            if table_entry is not None
        ),
    )


def _report_unreadable(
    check_run: _CheckRun, type_key: TableKey, table_version: tuple[str, int] | None, error: Exception
) -> Iterator[IntegrityFinding]:
    if table_version is not None:
        check_run.integrity.read_data_files(table_version)
        for file_name, reason in check_run.integrity.faults(table_version):
            yield IntegrityFinding(
                "file", f"{reason}: {file_name}", type_key=type_key, name=file_name, hint=RESTORE_HINT
            )
        if check_run.integrity.faults(table_version):
            return
    reason = getattr(error, "message", str(error).partition("\n")[0])
    table_location = table_version[0] if table_version is not None else None
    if table_version is not None:
        check_run.integrity.mark_unreadable(table_version, "the table's rows cannot be read")
    yield IntegrityFinding(
        "version", f"the table cannot be read: {reason}", type_key=type_key, name=table_location, hint=RESTORE_HINT
    )


def _check_missing_history(check_run: _CheckRun, branch_logs: list[BranchLog]) -> Iterator[IntegrityFinding]:
    """Report missing past versions if no cleanup has ever removed a version.

    Before a cleanup removes a file, it raises the epoch of every branch on which a writer may be about to publish the
    file. The epochs are therefore read after the files have been checked.
    """
    missing_findings = [
        finding for branch_log in branch_logs for finding in check_reclaimed_versions(branch_log, check_run.integrity)
    ]
    if missing_findings and not any(head.manifest.state.head.gc_epoch for head in read_heads(check_run.store, [])):
        yield from missing_findings


def _check_drift(check_run: _CheckRun, branch_logs: list[BranchLog]) -> Iterator[IntegrityFinding]:
    """Report commits that external writers made to tables and that are not visible on any branch.

    Drift that an earlier repair reported as not repairable is not reported again.
    """
    adopted_by_location = adopted_versions(
        commit for branch_log in branch_logs for commit in branch_log.commits.values()
    )
    keys_by_location = {
        entry.location: type_key for branch_log in branch_logs for type_key, entry in branch_log.state.tables.items()
    }
    drifts_by_key = (
        (type_key, read_drift(check_run.store, location, adopted_by_location.get(location, 1)))
        for location, type_key in keys_by_location.items()
    )
    external_drifts = [
        (type_key, drift) for type_key, drift in drifts_by_key if drift.classification not in ("no_drift", "rebased")
    ]
    reported_by_location = reported_versions(check_run.store) if external_drifts else {}
    for type_key, drift in sorted(external_drifts, key=lambda pair: pair[1].location):
        if drift.head_version <= reported_by_location.get(drift.location, 0):
            continue  # already reported, or all of the table's files are missing and reported as missing
        reason = (
            f"another program has written to this table (version {drift.head_version} at its HEAD,"
            f" {drift.classification}); the change is not visible in the graph"
        )
        hint = "run `omnigraph repair` to see what was written and what can be done"
        yield IntegrityFinding("drift", reason, "warning", None, type_key, None, drift.location, hint)
