"""Merges, their previews, and the decisions about conflicts."""

from base64 import b64encode
from collections.abc import Mapping, Sequence
from typing import Any, cast

import msgspec
import pyarrow as pa
from msgspec import UNSET

from omnigraph.api.change_feed.feed import describe_schema_change
from omnigraph.api.merge_sessions import MergeResult
from omnigraph.api.request_digest import digest_request
from omnigraph.api.write_options import describe_plain_value
from omnigraph.errors import EntityConflict, InputError, OmnigraphError
from omnigraph.merging.merge_limits import MergeLimits
from omnigraph.merging.strategy import ConflictAnswer, Strategy, answer_conflict
from omnigraph.records.frozen import record
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
from .writes import REPLAY_HEADER

# The members that identify a resolution in the digest of a request. Their order is part of the digest.
_RESOLUTION_MEMBERS = ("type_name", "entity_id", "entity_kind", "kind", "choice", "values")


def merge(call: ServerCall) -> Answer:
    """Merge a branch or another revision into a branch, and delete the source branch afterward if requested."""
    body = call.body_as(BranchMergeRequest)
    target = body.target or MAIN
    denial = _find_denial(call, body) if body.delete_branch else None
    result = _run_merge(call, body, dry_run=body.dry_run, delete_branch=body.delete_branch and denial is None)
    document = merge_output(call, result, body.source, target)
    if body.delete_branch and not body.dry_run:
        document.branch_deleted = result.branch_deleted
        error = result.branch_delete_error if denial is None else denial.message
        if error is not None:
            document.branch_delete_error = error
    return merge_answer(result, document)


def merge_answer(result: MergeResult, document: BranchMergeOutput) -> Answer:
    """Return the response to a merge, a revert, a cherry-pick or a reset."""
    return json_answer(document, headers={REPLAY_HEADER: "true"} if result.replayed else {})


def _find_denial(call: ServerCall, body: BranchMergeRequest) -> OmnigraphError | None:
    """Return a `PermissionDenied` error if the caller may not delete the source branch, or None."""
    try:
        call.authorize("branch_delete", target_branch=body.source)
    except OmnigraphError as error:
        # A repeated merge may find that the source has been deleted in the meantime.
        if call.idempotency_key is None:
            _run_merge(call, body, dry_run=True, delete_branch=True)
        return error
    return None


def preview(call: ServerCall) -> Answer:
    """Return what a merge would do, including its conflicts."""
    body = call.body_as(BranchMergeRequest)
    result = _run_merge(call, body, dry_run=True, delete_branch=False)
    return json_answer(merge_output(call, result, body.source, body.target or MAIN, with_changes=body.changes))


def _run_merge(call: ServerCall, body: BranchMergeRequest, *, dry_run: bool, delete_branch: bool) -> MergeResult:
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
        delete_branch=delete_branch,
        engine="local",
        idempotency_key=call.idempotency_key,
        limits=_merge_limits(body.limits),
    )


def _merge_limits(requested: MergeSizes) -> MergeLimits:
    """Return the merge limits: for each, the lower of the server's limit and the limit that the client requests."""
    own = MergeLimits()
    pairs = ((own.delta_bytes, requested.delta_bytes), (own.rows, requested.rows))
    lowest = [min((limit for limit in pair if limit is not None), default=None) for pair in pairs]
    return MergeLimits(*lowest)


def make_strategy(strategy: Any, resolutions: Sequence[ConflictResolution] = ()) -> Strategy:
    """Return the strategy in a request, combined with the resolutions of single conflicts, which take precedence."""
    return _Decisions(strategy, resolutions) if resolutions else cast("Strategy", strategy)


@record(eq=False)
class _Decisions:
    """A strategy that resolves individual conflicts, and leaves all others to another strategy."""

    strategy: Any
    resolutions: Sequence[ConflictResolution]

    def __call__(self, conflict: EntityConflict) -> ConflictAnswer:
        for resolution in self.resolutions:
            if _matches_conflict(resolution, conflict):
                return _decision_of(resolution)
        return answer_conflict(self.strategy, conflict)

    @property
    def content_digest(self) -> str:
        """A digest that distinguishes a repeated merge from another merge with the same idempotency key."""
        members = [[getattr(resolution, name) for name in _RESOLUTION_MEMBERS] for resolution in self.resolutions]
        return digest_request(describe_plain_value([self.strategy, members]))


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
    """Return the values of a resolution. A large blob is represented by an object with its digest, as in a conflict."""
    return {name: _read_digest(value) if _is_digest(value) else value for name, value in values.items()}


def _read_digest(value: Mapping[str, Any]) -> BlobDigest:
    try:
        return msgspec.convert(value, BlobDigest)
    except msgspec.ValidationError:
        raise InputError("the object in `values` is not the digest of a blob", reason="invalid resolution") from None


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
    """Return the JSON for a conflict. Version 0.3 clients also get its table key and row id."""
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
