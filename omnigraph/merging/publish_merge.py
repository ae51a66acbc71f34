"""Publish a merge as a single commit with two parents, under an intent that records the merge source.

The target's head must still be the commit that the merge was planned on, and the source must still be the same branch.
Nothing is staged and no intent is written until every conflict is resolved.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from omnigraph.errors import BranchNotFound, ReadSetConflict
from omnigraph.history.commit import Commit
from omnigraph.history.delete_queue import check_versions_retained
from omnigraph.history.merge_inputs import MergeInputs
from omnigraph.history.refs import find_ref
from omnigraph.publish.long_operations import publish_long_operation
from omnigraph.publish.repeated_requests import require_own_commit
from omnigraph.publish.requirements import SameHead
from omnigraph.publish.write_plan import CommitMetadata, PublishPlan
from omnigraph.publish.write_txn import WriteTxn

from .migrated_delta import stage_migrated_delta
from .offloaded_table import stage_delta
from .planner import MergePlan


def publish_merge(
    merge_inputs: MergeInputs,
    plan: MergePlan,
    commit_metadata: CommitMetadata,
    details: Mapping[str, Any],
) -> Commit:
    """Publish a planned merge. `details` records how conflicts were resolved.

    Raises `ReadSetConflict` if the target has moved, even if another process moved it by publishing the same request.
    """
    migration = None if plan.merged_schema is None else plan.merged_schema.migration

    own_id: str | None = None

    def stage(txn: WriteTxn) -> PublishPlan:
        nonlocal own_id
        own_id = txn.commit_id
        _check_still_captured(merge_inputs, txn)
        check_versions_retained(txn.store, plan.adopted_tables.values(), merge_inputs.source_snapshot.commit_id)
        staged = (
            _stage_same_schema(merge_inputs, txn, plan)
            if migration is None
            else stage_migrated_delta(txn, plan.delta, migration, merge_inputs.source_snapshot.schema)
        )
        # If this check fails, the merge writes nothing. If a later check fails, a refusal is written to the log.
        _check_still_captured(merge_inputs, replace(txn, base=merge_inputs.target_branch.refresh()))
        return replace(
            staged,
            requirements=(SameHead(merge_inputs.target_snapshot.commit_id),),
            incoming_commits=merge_inputs.incoming_commits,
            merged_head=merge_inputs.source_snapshot.commit_id,
            details=details,
        )

    migrated_keys = () if migration is None else merge_inputs.target_snapshot.tables
    table_keys = tuple(sorted({*plan.delta.tables, *plan.adopted_tables, *migrated_keys}))
    intent_facts = {"source_commit": merge_inputs.source_snapshot.commit_id}
    if merge_inputs.source_branch is not None:
        intent_facts |= {
            "source_branch": merge_inputs.source_branch.name,
            "source_ulid": merge_inputs.source_branch.ulid,
        }
    elif merge_inputs.retained_by is not None:
        intent_facts["source_ulid"] = merge_inputs.retained_by.ulid
    published = publish_long_operation(
        merge_inputs.target_branch, "merge", stage, commit_metadata, table_keys, intent_facts
    )
    if published is None:  # a merge always publishes a commit with its lineage, so None does not mean an empty merge
        raise ReadSetConflict(member="graph_head", expected=merge_inputs.target_snapshot.commit_id)
    return require_own_commit(published, own_id, merge_inputs.target_snapshot.commit_id)


def _stage_same_schema(merge_inputs: MergeInputs, txn: WriteTxn, plan: MergePlan) -> PublishPlan:
    """Stage a merge that converts no rows. A fast-forward also adopts the source's schema."""
    target, source = merge_inputs.target_snapshot, merge_inputs.source_snapshot
    adopts_schema = merge_inputs.outcome == "fast_forward" and source.schema_row != target.schema_row
    return PublishPlan(
        "merge",
        stage_delta(txn, plan.delta),
        adopted_tables=plan.adopted_tables,
        dropped_tables=frozenset({*target.tables} - {*source.tables}) if adopts_schema else frozenset(),
        schema=source.schema_row if adopts_schema else None,
    )


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
