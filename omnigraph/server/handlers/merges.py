"""Merges, their previews, and the decisions about conflicts."""

from base64 import b64encode
from collections.abc import Mapping, Sequence
from typing import Any, cast

import msgspec
import pyarrow as pa
from msgspec import UNSET

from omnigraph.api.change_feed.feed import describe_schema_change
from omnigraph.api.merge_sessions import MergeResult
from omnigraph.errors import EntityConflict, InputError, OmnigraphError
from omnigraph.merging.merge_limits import MergeLimits
from omnigraph.merging.strategy import ConflictAnswer, Strategy, answer_conflict
from omnigraph.server.call import ServerCall
from omnigraph.server.models.history import BranchMergeOutput, MergeConflictOutput, TableChangesOutput
from omnigraph.server.models.requests import BranchMergeRequest, ConflictResolution, MergeSizes
from omnigraph.server.wire.answer import Answer, json_answer
from omnigraph.server.wire.row_formats import arrow_chunks
from omnigraph.server.wire.values import to_wire_value
from omnigraph.storage.layout import MAIN
from omnigraph.values.blobs import BlobDigest
from omnigraph.values.mismatch import read_stand_in

from .documents import commit_output


def merge(call: ServerCall) -> Answer:
    """Merge a branch or another revision into a branch, and delete the branch afterward if requested."""
    body = call.body_as(BranchMergeRequest)
    target = body.target or MAIN
    if body.delete_branch:
        _require_branch(call, body, body.source)
    result = _run_merge(call, body, dry_run=body.dry_run)
    document = merge_output(call, result, body.source, target)
    if body.delete_branch and not body.dry_run:
        _delete_source(call, body.source, document)
    return json_answer(document)


def _require_branch(call: ServerCall, body: BranchMergeRequest, source: str) -> None:
    """Raise `InputError` unless the source is a branch, because only a branch can be deleted after the merge."""
    if source.strip() not in call.graph_for_read().branches:
        _run_merge(call, body, dry_run=True)  # raises the error for a source that does not exist
        raise InputError(f"'{source}' is not a branch", reason="only a branch can be deleted after the merge")


def preview(call: ServerCall) -> Answer:
    """Return what a merge would do, including its conflicts."""
    body = call.body_as(BranchMergeRequest)
    result = _run_merge(call, body, dry_run=True)
    return json_answer(merge_output(call, result, body.source, body.target or MAIN, with_changes=body.changes))


def _run_merge(call: ServerCall, body: BranchMergeRequest, *, dry_run: bool) -> MergeResult:
    target = body.target or MAIN
    return call.graph_for_write(target).merge(
        body.source,
        target,
        message=body.message,
        if_commit=call.condition,
        strategy=make_strategy(body.strategy, body.resolutions),
        granularity=body.granularity,
        collapse_edges=body.collapse_edges,
        dry_run=dry_run,
        engine="local",
        limits=_merge_limits(body.limits),
    )


def _merge_limits(requested: MergeSizes) -> MergeLimits:
    """Return the limits of the server, or those that the client requests if they are lower."""
    own = MergeLimits()
    pairs = ((own.delta_bytes, requested.delta_bytes), (own.rows, requested.rows))
    lowest = [min((limit for limit in pair if limit is not None), default=None) for pair in pairs]
    return MergeLimits(*lowest)


def _delete_source(call: ServerCall, source: str, document: BranchMergeOutput) -> None:
    """Delete a merged branch. The merge is already published, so a failure is only reported in the response."""
    try:
        call.authorize("branch_delete", target_branch=source)
        call.graph_for_write(document.target).branches.delete(source)
        document.branch_deleted = True
    except OmnigraphError as error:
        document.branch_deleted, document.branch_delete_error = False, error.message


def make_strategy(strategy: Any, resolutions: Sequence[ConflictResolution] = ()) -> Strategy:
    """Return the strategy in a request. Resolutions of single conflicts take precedence over sides."""
    if not resolutions:
        return cast("Strategy", strategy)

    def decide(conflict: EntityConflict) -> ConflictAnswer:
        for resolution in resolutions:
            if _matches_conflict(resolution, conflict):
                return _decision_of(resolution)
        return answer_conflict(strategy, conflict)

    return decide


def _matches_conflict(resolution: ConflictResolution, conflict: EntityConflict) -> bool:
    expected = (resolution.entity_kind or conflict.entity_kind, resolution.kind or conflict.kind)
    actual = (conflict.entity_kind, conflict.kind)
    same_entity = (resolution.type_name, resolution.entity_id) == (conflict.type_name, conflict.entity_id)
    return same_entity and expected == actual


def _decision_of(resolution: ConflictResolution) -> ConflictAnswer:
    if (resolution.choice is None) == (resolution.values is None):
        raise InputError("a resolution requires either `choice` or `values`", reason="invalid resolution")
    return resolution.choice if resolution.values is None else _read_values(resolution.values)


def _is_digest(value: object) -> bool:
    return isinstance(value, dict) and read_stand_in(value) is None


def _read_values(values: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the values of a resolution. An object stands for a large blob, which conflicts show by its digest."""
    return {name: _read_digest(value) if _is_digest(value) else value for name, value in values.items()}


def _read_digest(value: Mapping[str, Any]) -> BlobDigest:
    try:
        return msgspec.convert(value, BlobDigest)
    except msgspec.ValidationError:
        raise InputError("an object in `values` must be the digest of a blob", reason="invalid resolution") from None


def merge_output(
    call: ServerCall, result: MergeResult, source: str, target: str, *, with_changes: bool = False
) -> BranchMergeOutput:
    """Return the JSON for the effect of a merge, a revert or a cherry-pick. Only a preview contains its changes."""
    schema_change = describe_schema_change(result.schema_change).get("schema_change", UNSET)
    return BranchMergeOutput(
        source=source,
        target=target,
        outcome=result.outcome,
        actor_id=call.actor,
        commit=None if result.commit is None else commit_output(result.commit, call),
        base_commit_id=result.base,
        source_commit_id=result.source,
        target_commit_id=result.target,
        stats=result.stats,
        merge_conflicts=[conflict_output(conflict, call) for conflict in result.conflicts],
        discarded=[_discarded_output(change) for change in result.discarded],
        lost_edges=[_lost_edge_output(edge) for edge in result.lost_edges],
        parallel_edges=[
            {"type_name": pair.key.type_name, "ours": pair.ours, "theirs": pair.theirs}
            for pair in result.parallel_edges
        ],
        schema_change=schema_change,
        changes=_changes_output(result) if with_changes and result.commit is None else UNSET,
    )


def _changes_output(result: MergeResult) -> list[TableChangesOutput]:
    return [
        TableChangesOutput(
            type_key=changes.key,
            inserted=_encode_rows(changes.inserted),
            updated_before=_encode_rows(changes.updated_before),
            updated_after=_encode_rows(changes.updated_after),
            deleted=_encode_rows(changes.deleted),
        )
        for changes in result.delta.tables()
    ]


def _encode_rows(rows: pa.Table) -> str:
    return b64encode(b"".join(arrow_chunks(rows.schema, iter(rows.to_batches()), None))).decode()


def conflict_output(conflict: EntityConflict, call: ServerCall) -> MergeConflictOutput:
    """Return the JSON for a conflict. Old clients also get its table key."""
    document = msgspec.convert(conflict.to_json(), MergeConflictOutput)
    if call.uses_old_names:
        document.table_key, document.row_id = f"{conflict.entity_kind}:{conflict.type_name}", conflict.entity_id
    return document


def _discarded_output(change: Any) -> dict[str, Any]:
    document: dict[str, Any] = {
        "entity_kind": change.entity_kind,
        "type_name": change.type_name,
        "entity_id": change.entity_id,
        "side": change.side,
        "part": change.part,
    }
    if change.part == "property":
        document["property"] = change.property_name
    return document if change.part == "deletion" else document | {"value": to_wire_value(change.value)}


def _lost_edge_output(edge: Any) -> dict[str, Any]:
    return {
        "type_name": edge.key.type_name,
        "entity_id": edge.id,
        "from": edge.src,
        "to": edge.dst,
        "node": edge.node,
        "side": edge.side,
    }
