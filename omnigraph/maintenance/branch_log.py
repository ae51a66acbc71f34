"""Check that a branch's log is consistent, and determine how far back its history is readable.

In a consistent log, every commit occurs once, every parent exists, each chunk matches the digest in its name, and the
state contains the head commit's tables.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from omnigraph.errors import HistoryReclaimed, OmnigraphError
from omnigraph.errors.counts import format_count
from omnigraph.history.commit import Commit, SchemaRow, TableEntry, TableMap
from omnigraph.history.commit_log import HistoryLog, read_chunk
from omnigraph.history.schemas import StoredSchema, read_schema_uncached
from omnigraph.history.state import GraphState, LogChunk
from omnigraph.storage.store import Store
from omnigraph.values.table_key import TableKey

from .branch_heads import RESTORE_HINT, RefHead
from .file_integrity import FileIntegrity, TableVersion, VersionCondition
from .finding import FindingKind, IntegrityFinding
from .index_findings import index_finding


@dataclass(slots=True)
class BranchLog:
    """The readable part of a branch's log. `complete` is true if the entire log is readable."""

    head: RefHead
    commits: dict[str, Commit] = field(default_factory=dict)
    findings: list[IntegrityFinding] = field(default_factory=list)
    complete: bool = True

    @property
    def state(self) -> GraphState:
        """The branch state that the log belongs to."""
        return self.head.manifest.state


def read_branch_log(store: Store, head: RefHead) -> BranchLog:
    """Read a whole log, chunk by chunk."""
    branch_log = BranchLog(head)
    for chunk in branch_log.state.chunks:
        commits = _read_log_chunk(store, chunk, branch_log)
        _add_commits(branch_log, commits, chunk.name)
        if commits and len(commits) != chunk.commit_count:
            reason = f"a log chunk has {format_count(len(commits), 'commit')}, expected {chunk.commit_count}"
            branch_log.findings.append(_record_log_fault(branch_log, reason, chunk.name))
    _add_commits(branch_log, branch_log.state.tail, None)
    branch_log.findings += _find_missing_parents(branch_log)
    branch_log.findings += _check_head(store, branch_log)
    return branch_log


def _record_log_fault(branch_log: BranchLog, reason: str, chunk_name: str | None = None) -> IntegrityFinding:
    branch_log.complete = False
    return IntegrityFinding("log", reason, branch=branch_log.head.label, name=chunk_name, hint=RESTORE_HINT)


def _read_log_chunk(store: Store, chunk: LogChunk, branch_log: BranchLog) -> list[Commit]:
    try:
        return read_chunk(store, chunk)[0]  # this read compares the chunk with the digest in its name
    except HistoryReclaimed:
        branch_log.findings.append(_record_log_fault(branch_log, "a log chunk is missing", chunk.name))
        return []
    except OmnigraphError as error:
        branch_log.findings.append(_record_log_fault(branch_log, error.message, chunk.name))
        return []


def _add_commits(branch_log: BranchLog, commits: Iterable[Commit], chunk_name: str | None) -> None:
    for commit in commits:
        if commit.id in branch_log.commits:
            branch_log.findings.append(
                _record_log_fault(branch_log, f"commit {commit.id} is in the log twice", chunk_name)
            )
        branch_log.commits[commit.id] = commit


def _find_missing_parents(branch_log: BranchLog) -> Iterator[IntegrityFinding]:
    """Report missing parents unless a missing chunk explains why they are missing."""
    if not branch_log.complete:
        return
    for commit in branch_log.commits.values():
        for parent in commit.parents:
            if parent not in branch_log.commits:
                yield _record_log_fault(branch_log, f"commit {commit.id} has parent {parent}, which is missing")


def _check_head(store: Store, branch_log: BranchLog) -> Iterator[IntegrityFinding]:
    """Check that the state matches the newest commit."""
    state = branch_log.state
    if not branch_log.complete:
        return
    if state.head.commit_id not in branch_log.commits:
        yield _record_log_fault(branch_log, f"the head commit {state.head.commit_id} is not in the log")
        return
    logged_tables, logged_schema = HistoryLog(store, state).tables_and_schema_at(state.head.commit_id)
    for type_key in sorted({*logged_tables, *state.tables}):
        if _version_of(logged_tables.get(type_key)) != _version_of(state.tables.get(type_key)):
            reason = f"the branch state and the log disagree on {type_key}"
            yield _record_log_fault(branch_log, reason)
    if logged_schema != state.schema:
        yield _record_log_fault(branch_log, "the branch state and the log disagree on the schema")


def _version_of(entry: TableEntry | None) -> TableVersion | None:
    return None if entry is None else (entry.location, entry.lance_version)


def check_schema(store: Store, branch_log: BranchLog) -> StoredSchema | None:
    """Return the newest state's schema. If the schema is missing or damaged, report it and return None."""
    schema_row = branch_log.state.schema
    try:
        return read_schema_uncached(store, schema_row)
    except OmnigraphError as error:
        branch_label = branch_log.head.label
        finding = IntegrityFinding(
            "schema", error.message, branch=branch_label, name=schema_row.location, hint=RESTORE_HINT
        )
        branch_log.findings.append(finding)
        return None


def check_versions(branch_log: BranchLog, integrity: FileIntegrity) -> Iterator[IntegrityFinding]:
    """Check every table version in the branch's state, and every past version that no cleanup has removed."""
    branch, tables = branch_log.head.label, branch_log.state.tables
    for type_key, entry in sorted(tables.items()):
        for file_name, reason in integrity.faults((entry.location, entry.lance_version)):
            finding_kind: FindingKind = "version" if "/_versions/" in file_name else "file"
            yield IntegrityFinding(
                finding_kind, f"{reason}: {file_name}", "error", branch, type_key, None, file_name, RESTORE_HINT
            )
        yield from _check_index_files(integrity, entry, branch)
    yield from _check_past_versions(branch_log, integrity, "broken")


def _check_index_files(integrity: FileIntegrity, entry: TableEntry, branch: str) -> Iterator[IntegrityFinding]:
    """Report each index with missing or damaged files in a table version."""
    version, root_uri = (entry.location, entry.lance_version), integrity.store.root.uri
    lost_indexes, damaged_indexes = integrity.lost_indexes(version), integrity.damaged_indexes(version)
    names = integrity.index_names(version, entry.key) if lost_indexes or damaged_indexes else {}
    for index_directory in lost_indexes:
        fault = "is missing files, so rows are scanned instead"
        yield index_finding(
            names[index_directory], fault, branch, root_uri, index_directory=index_directory, rebuild=False
        )
    for index_directory in damaged_indexes:
        fault = "has a damaged file, so results may be wrong"
        yield index_finding(names[index_directory], fault, branch, root_uri, index_directory=index_directory)


def check_reclaimed_versions(branch_log: BranchLog, integrity: FileIntegrity) -> Iterator[IntegrityFinding]:
    """Report every past version that a cleanup appears to have removed."""
    yield from _check_past_versions(branch_log, integrity, "reclaimed")


def _check_past_versions(
    branch_log: BranchLog, integrity: FileIntegrity, condition: VersionCondition
) -> Iterator[IntegrityFinding]:
    branch = branch_log.head.label
    current_versions = {_version_of(entry) for entry in branch_log.state.tables.values()}
    for version, type_key in sorted(_logged_versions(branch_log).items()):
        if version not in current_versions and integrity.classify_version(version) == condition:
            for file_name, reason in integrity.faults(version):
                description = f"{reason}: {file_name}, which the history needs"
                yield IntegrityFinding("file", description, "warning", branch, type_key, None, file_name, RESTORE_HINT)


def _logged_versions(branch_log: BranchLog) -> dict[TableVersion, TableKey]:
    table_entries = (entry for commit in branch_log.commits.values() for entry in commit.tables.values())
    return {
        (table_entry.location, table_entry.lance_version): table_entry.key
        for table_entry in table_entries
        if table_entry is not None
    }


def find_newest_readable(store: Store, branch_log: BranchLog, integrity: FileIntegrity) -> str | None:
    """Return the newest first-parent commit whose tables and schema are all readable, or None if there is none."""
    state = branch_log.state
    if _is_readable(store, state.tables, state.schema, integrity):
        return state.head.commit_id  # the head is known even if the log is damaged
    log = HistoryLog(store, state)
    try:
        for commit in log.first_parents(state.head.commit_id):
            if _is_readable(store, *log.tables_and_schema_at(commit.id), integrity):
                return commit.id
    except OmnigraphError:
        return None  # the log is damaged beyond this commit
    return None


def _is_readable(store: Store, tables: TableMap, schema: SchemaRow, integrity: FileIntegrity) -> bool:
    if any(integrity.faults((entry.location, entry.lance_version)) for entry in tables.values()):
        return False
    try:
        read_schema_uncached(store, schema)
    except OmnigraphError:
        return False
    return True
