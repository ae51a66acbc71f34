"""Publish a merge: a single strict publish with two parents, under an intent that names its source.

The target head must be the captured one, and the source must still be the same branch. Nothing is
staged and no intent is written until every conflict is resolved.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from omnigraph.errors import BranchNotFound, ReadSetConflict
from omnigraph.history.commit import Commit, TableEntry
from omnigraph.history.delete_queue import check_versions_retained
from omnigraph.history.merge_inputs import MergeInputs
from omnigraph.history.refs import find_ref
from omnigraph.publish.long_operations import publish_long_operation
from omnigraph.publish.requirements import SameHead
from omnigraph.publish.write_plan import CommitMetadata, PublishPlan
from omnigraph.publish.write_txn import WriteTxn
from omnigraph.rules.delta import Delta
from omnigraph.values.table_key import TableKey

from .offloaded_table import stage_delta


def publish_merge(
    merge_inputs: MergeInputs,
    delta: Delta,
    adopted: Mapping[TableKey, TableEntry],
    commit_metadata: CommitMetadata,
    details: Mapping[str, Any],
) -> Commit:
    """Publish a planned merge; `details` records how conflicts were resolved."""

    def stage(txn: WriteTxn) -> PublishPlan:
        _check_still_captured(merge_inputs, txn)
        check_versions_retained(txn.store, adopted.values(), merge_inputs.source_snapshot.commit_id)
        staged_tables = stage_delta(txn, delta)
        # A merge that fails this check leaves nothing behind; a later failure leaves a refusal in the log.
        _check_still_captured(merge_inputs, replace(txn, base=merge_inputs.target_branch.refresh()))
        return PublishPlan(
            "merge",
            staged_tables,
            (SameHead(merge_inputs.target_snapshot.commit_id),),
            adopted_tables=adopted,
            incoming_commits=merge_inputs.incoming_commits,
            merged_head=merge_inputs.source_snapshot.commit_id,
            details=details,
        )

    table_keys = tuple(sorted({*delta.tables, *adopted}))
    intent_facts = {"source_commit": merge_inputs.source_snapshot.commit_id}
    if merge_inputs.source_branch is not None:
        intent_facts |= {
            "source_branch": merge_inputs.source_branch.name,
            "source_ulid": merge_inputs.source_branch.ulid,
        }
    published = publish_long_operation(
        merge_inputs.target_branch, "merge", stage, commit_metadata, table_keys, intent_facts
    )
    if published is None:  # cannot mean an empty merge, since a merge always publishes its lineage
        raise ReadSetConflict(member="graph_head", expected=merge_inputs.target_snapshot.commit_id)
    return published


def _check_still_captured(merge_inputs: MergeInputs, txn: WriteTxn) -> None:
    head_commit = txn.base.state.head.commit_id
    if head_commit != merge_inputs.target_snapshot.commit_id:
        raise ReadSetConflict(member="graph_head", expected=merge_inputs.target_snapshot.commit_id, actual=head_commit)
    if merge_inputs.source_branch is None:
        return
    try:
        source_ulid = find_ref(txn.store, merge_inputs.source_branch.name).ulid
    except BranchNotFound:
        source_ulid = None
    if source_ulid != merge_inputs.source_branch.ulid:
        raise ReadSetConflict(member="source_branch", expected=merge_inputs.source_branch.ulid, actual=source_ulid)
