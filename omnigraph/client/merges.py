"""Send merges, reverts, cherry-picks and resets, and read their effects."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from omnigraph.api.merge_sessions import MergeResult
from omnigraph.api.results.diff import Diff, LazyTableChanges
from omnigraph.api.write_options import WriteOptions
from omnigraph.errors import MergeConflict, ReadSetConflict
from omnigraph.merging.discarded_changes import DiscardedChange
from omnigraph.merging.lost_edges import LostEdge
from omnigraph.merging.parallel_edges import ParallelEdgePair
from omnigraph.merging.strategy import check_side
from omnigraph.records.cached_property import cached_property
from omnigraph.values import clock_and_ids
from omnigraph.values.option_text import check_option_text
from omnigraph.values.table_key import TableKey

from .answers import Document, read_optional_commit
from .conflicts import decode_conflicts
from .diffs import compare_revisions
from .failures import read_conflict
from .handle import RemoteHandle
from .schema_changes import ServedSchemaChange, read_schema_change
from .table_changes import read_table_changes
from .unsupported import reject_if


@dataclass(frozen=True, repr=False)
class RemoteMergeResult(MergeResult):
    """The actual or previewed effect of a merge on a server."""

    document: Document = field(default_factory=dict, compare=False)
    handle: RemoteHandle | None = field(default=None, compare=False)
    request: tuple[tuple[str, ...], Document] = field(default=((), {}), compare=False)

    @cached_property
    def stats(self) -> dict[str, Any]:
        """Counts of changes, conflicts, resolutions and combined properties."""
        return dict(self.document["stats"])

    @cached_property
    def schema_change(self) -> ServedSchemaChange | None:  # type: ignore[override]
        """The actual or previewed schema changes on the target, or None if its schema stays the same."""
        return read_schema_change(self.document, self.target)

    @cached_property
    def delta(self) -> Diff:
        """The actual or previewed changes to the target, requested on first use."""
        if self.outcome == "already_up_to_date" or self.handle is None:
            return super().delta
        if self.commit is not None:
            return compare_revisions(self.handle, self.target, self.commit.id, {})
        changes = self._request_changes()
        return Diff(LazyTableChanges(lambda: map(read_table_changes, changes)), self.target, self.source)

    def _request_changes(self) -> Sequence[Document]:
        """Request the preview once more with its changes. Raises `ReadSetConflict` if the target has changed."""
        assert self.handle is not None  # noqa: S101 - only results of requests are lazy
        segments, body = self.request
        document = self.handle.exchange.post(*segments, body={**body, "changes": True}, is_read=True)
        if document["target_commit_id"] != self.target:
            raise ReadSetConflict(member="target", expected=self.target, actual=document["target_commit_id"])
        changes: Sequence[Document] = document.get("changes", ())
        return changes


def merge_branches(
    handle: RemoteHandle,
    source: str | None,
    target: str | None,
    options: Document,
    write_options: WriteOptions,
    *,
    dry_run: bool,
) -> RemoteMergeResult:
    """Merge or preview a merge. The source and the target default to the handle's branch."""
    body = dict(options) | {
        "source": handle.branch_name if source is None else source,
        "target": handle.branch_name if target is None else target,
        "message": write_options.message,
    }
    segments, preview_segments = ("branches", "merge"), ("branches", "merge", "preview")
    if callable(options.get("strategy")):
        from .conflict_functions import DecidedMerge

        merge = DecidedMerge(handle, segments, preview_segments, body, options["strategy"])
        return merge.run(write_options.if_commit, dry_run=dry_run)
    if dry_run:
        return run_merge(handle, preview_segments, body, None, is_read=True)
    key = write_options.idempotency_key
    return run_merge(handle, segments, body, write_options.if_commit, idempotency_key=key)


def run_merge(
    handle: RemoteHandle,
    segments: tuple[str, ...],
    body: Document,
    condition: str | None,
    *,
    is_read: bool = False,
    idempotency_key: str | None = None,
) -> RemoteMergeResult:
    """Send a merge request and return the merge's effect. A merge that changes the graph has an idempotency key."""
    for name, text in (("message", body.get("message")), ("idempotency_key", idempotency_key)):
        check_option_text(text, name)
    headers = {} if is_read else {"Idempotency-Key": idempotency_key or clock_and_ids.new_ulid()}
    try:
        reply = handle.exchange.fetch(
            "POST", segments, {}, json_body=body, condition=condition, is_read=is_read, headers=headers
        )
        document = reply.json()
    except MergeConflict as error:
        error.conflicts = list(decode_conflicts(handle, error.conflicts))
        raise
    return RemoteMergeResult(
        document["outcome"],
        read_optional_commit(document["commit"]),
        decode_conflicts(handle, map(read_conflict, document["merge_conflicts"])),
        tuple(
            ParallelEdgePair(TableKey.edge(pair["type_name"]), pair["ours"], pair["theirs"])
            for pair in document["parallel_edges"]
        ),
        document["base_commit_id"],
        document["source_commit_id"],
        document["target_commit_id"],
        branch_deleted=document.get("branch_deleted", False),
        branch_delete_error=document.get("branch_delete_error"),
        lost_edges=tuple(map(_read_lost_edge, document["lost_edges"])),
        discarded=tuple(map(_read_discarded, document["discarded"])),
        replayed="Idempotent-Replay" in reply.headers and idempotency_key is not None,
        document=document,
        handle=handle,
        request=(segments, body),
    )


def check_merge_options(strategy: Any, engine: str, spark: Any, idempotency_key: str | None = None) -> None:
    """Raise `NotSupportedRemotely` for options that a server does not offer."""
    # After the merge, there are no conflicts to ask the function about, so a repeated request would differ.
    reject_if(callable(strategy) and idempotency_key is not None, "idempotency_key=…, strategy=function")
    for side in strategy.values() if isinstance(strategy, Mapping) else ():
        check_side(side)
    reject_if(engine == "spark" or spark is not None, "engine='spark'")


def _read_discarded(document: Document) -> DiscardedChange:
    return DiscardedChange(
        document["entity_kind"],
        document["type_name"],
        document["entity_id"],
        document["side"],
        document["part"],
        document.get("property"),
        document.get("value"),
    )


def _read_lost_edge(document: Document) -> LostEdge:
    members = [document[name] for name in ("entity_id", "from", "to", "node", "side")]
    return LostEdge(TableKey.edge(document["type_name"]), *members)
