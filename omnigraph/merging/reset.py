"""Reset a branch with a new commit that restores another commit's state.

The past table versions are referenced again, so no rows are read or written, and tables with equal content do not
change. An intent protects these versions, because a cleanup may be about to remove them. A reset is published only on
the head that it was planned on, so it never discards a commit that the caller has not seen.
"""

from collections.abc import Collection, Mapping
from dataclasses import replace

from omnigraph.errors import InternalError, PreconditionFailed, ReadSetConflict, SchemaMismatch
from omnigraph.history.branch_state import BranchState
from omnigraph.history.commit import Commit, TableEntry
from omnigraph.history.delete_queue import check_versions_retained
from omnigraph.history.file_checksums import find_checksums
from omnigraph.history.manifest import LoadedManifest
from omnigraph.history.merge_inputs import MergeInputs, MergeOutcome
from omnigraph.history.schemas import dropped_history_error, schemas_agree
from omnigraph.history.snapshot import Snapshot, manifest_snapshot
from omnigraph.publish.long_operations import publish_long_operation
from omnigraph.publish.repeated_requests import require_own_commit
from omnigraph.publish.requirements import SameHead, SameSchema
from omnigraph.publish.write_plan import PublishPlan
from omnigraph.publish.write_txn import WriteTxn
from omnigraph.rules.delta import Delta
from omnigraph.storage.checksums import FileChecksum
from omnigraph.storage.store import version_file_names
from omnigraph.storage.transfer import version_files
from omnigraph.values.table_key import TableKey

from .merge import MAX_ATTEMPTS, MergeReport, MergeRequest, only_maintained
from .planner import MergePlan, MergePlanner

RESET_OPERATION = "reset"


def reset(
    branch: BranchState, restored_snapshot: Snapshot, retained_by: BranchState, request: MergeRequest
) -> MergeReport:
    """Publish a commit with the tables from `restored_snapshot`, or only plan it in a dry run.

    `retained_by` is the branch or tag whose log contains the restored commit.

    Raises `SchemaMismatch` if the schemas differ, `HistoryReclaimed` if a cleanup removed the state,
    and `ReadSetConflict` if anything other than maintenance has moved the branch in the meantime.
    """
    for attempt in range(MAX_ATTEMPTS):
        report = plan_reset(branch, branch.refresh(), restored_snapshot, request)
        if request.dry_run or report.outcome == "already_up_to_date":
            return report
        try:
            return replace(report, commit=_publish_reset(report, retained_by, request))
        except ReadSetConflict:
            if attempt + 1 == MAX_ATTEMPTS or not only_maintained(report.merge_inputs):
                raise
    raise InternalError("unreachable")


def plan_reset(
    branch: BranchState, manifest: LoadedManifest, restored_snapshot: Snapshot, request: MergeRequest
) -> MergeReport:
    """Plan the reset as a fast-forward from the head in `manifest` to the restored state."""
    head_snapshot = manifest_snapshot(branch.store, branch, manifest)
    if request.if_commit is not None and head_snapshot.commit_id != request.if_commit:
        expected, actual = request.if_commit, head_snapshot.commit_id
        raise PreconditionFailed(branch=branch.name, expected=expected, actual=actual)
    if not schemas_agree(restored_snapshot.schema, head_snapshot.schema):
        raise _schema_changed_error(branch.name, restored_snapshot.commit_id)
    merge_inputs = MergeInputs(
        None, branch, manifest, head_snapshot, restored_snapshot, (head_snapshot,), "already_up_to_date"
    )
    planner = MergePlanner(merge_inputs)
    changed_keys = planner.changed_tables()
    restored_entries = {key: _restored_entry(head_snapshot, restored_snapshot, key) for key in changed_keys}
    # Check this before comparing the tables, so that reclaimed history is reported as such.
    check_versions_retained(branch.store, restored_entries.values(), restored_snapshot.commit_id)
    adopted = {key: entry for key, entry in restored_entries.items() if not planner.has_same_files(key)}
    outcome: MergeOutcome = "merged" if adopted else "already_up_to_date"
    return MergeReport(merge_inputs, outcome, plan=MergePlan((), Delta(), adopted))


def _restored_entry(head_snapshot: Snapshot, restored_snapshot: Snapshot, table_key: TableKey) -> TableEntry:
    """Return the table entry through which the branch will reference the restored version of a table."""
    current, restored = head_snapshot.table_entry(table_key), restored_snapshot.table_entry(table_key)
    if restored.location in head_snapshot.schema.erased_directories:
        raise dropped_history_error(table_key, restored_snapshot.commit_id)
    # Field ids that the table has used since that version must never be used again.
    same_table = restored.location == current.location
    max_field_id = max(restored.max_field_id, current.max_field_id) if same_table else restored.max_field_id
    return replace(restored, version=current.version + 1, branch=head_snapshot.branch, max_field_id=max_field_id)


def _publish_reset(report: MergeReport, retained_by: BranchState, request: MergeRequest) -> Commit:
    """Publish a planned reset under an intent; fail if the branch has moved since it was planned."""
    inputs, adopted = report.merge_inputs, report.plan.adopted_tables if report.plan is not None else {}
    branch, restored = inputs.target_branch, inputs.source_snapshot

    own_id: str | None = None

    def stage(txn: WriteTxn) -> PublishPlan:
        nonlocal own_id
        own_id = txn.commit_id
        same_head = SameHead(inputs.target_snapshot.commit_id)
        same_head.check(txn)
        check_versions_retained(txn.store, adopted.values(), restored.commit_id)
        # If this check fails, the reset writes nothing. If a later check fails, a refusal is written to the log.
        same_head.check(replace(txn, base=branch.refresh()))
        return PublishPlan(
            RESET_OPERATION,
            requirements=(same_head, SameSchema(txn.base.state.schema.hash)),
            adopted_tables=adopted,
            details={"commit": restored.commit_id},
            file_checksums=_unrecorded_checksums(txn, retained_by, adopted.values()),
        )

    facts = {"source_commit": restored.commit_id, "source_ulid": retained_by.ulid}
    table_keys = tuple(sorted(adopted))
    commit = publish_long_operation(branch, RESET_OPERATION, stage, request.commit_metadata, table_keys, facts)
    if commit is None:
        raise ReadSetConflict(member="graph_head", expected=inputs.target_snapshot.commit_id)
    return require_own_commit(commit, own_id, inputs.target_snapshot.commit_id)


def _unrecorded_checksums(
    txn: WriteTxn, retained_by: BranchState, entries: Collection[TableEntry]
) -> Mapping[str, FileChecksum]:
    """Return the restored files' checksums that are recorded only in another branch's log.

    The other branch may be deleted later, along with its log.
    """
    if retained_by.ulid == txn.base.state.head.ulid:
        return {}
    file_names = {name for entry in entries for name in _file_names(txn, entry)}
    known_names = find_checksums(txn.store, txn.base.state, file_names).keys()
    return find_checksums(txn.store, retained_by.last_known().state, file_names - known_names)


def _file_names(txn: WriteTxn, entry: TableEntry) -> set[str]:
    named_files = version_files(txn.store, entry.location, entry.lance_version).named_files
    return {*named_files, *version_file_names(entry.location, entry.lance_version)}


def _schema_changed_error(branch: str, commit_id: str) -> SchemaMismatch:
    return SchemaMismatch(
        f"branch '{branch}' cannot be reset to commit {commit_id}: the schema has changed since then",
        source=f"commit {commit_id}",
        target=branch,
        hint=f"to create a branch with the old schema and data, use `omnigraph branch create NAME --from {commit_id}`;"
        f" to copy the old data into '{branch}', use `omnigraph export --at {commit_id}` and"
        " `omnigraph load --mode overwrite`",
    )
