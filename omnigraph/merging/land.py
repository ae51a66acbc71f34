"""Publish a merge: one strict publish with two parents, under an intent that names its source.

The target head must be the captured one, and the source must still be the same branch. Nothing is
staged and no intent is written before every conflict is resolved.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from omnigraph.errors import BranchNotFound, ReadSetConflict
from omnigraph.history.bases import Frame
from omnigraph.history.commit import Commit, TableEntry
from omnigraph.history.long import publish_long
from omnigraph.history.plan import PublishPlan, SameHead, Signature, WriteTxn
from omnigraph.history.refs import find_ref
from omnigraph.history.retention.condemned import check_named
from omnigraph.rules.delta import Delta

from .far import stage_all


def land(
    frame: Frame,
    delta: Delta,
    adopted: Mapping[str, TableEntry],
    signature: Signature,
    details: Mapping[str, Any],
) -> Commit:
    """Publish a planned merge; `details` record how conflicts were resolved."""

    def stage(txn: WriteTxn) -> PublishPlan:
        _as_captured(frame, txn)
        check_named(txn.store, adopted.values(), frame.theirs.commit_id)
        writes = stage_all(txn, delta)
        # A merge that lost by now leaves nothing behind; later it leaves a refusal in the log.
        _as_captured(frame, replace(txn, base=frame.target.refresh()))
        return PublishPlan(
            "merge",
            writes,
            (SameHead(frame.ours.commit_id),),
            adopted=adopted,
            foreign=frame.foreign,
            merged=frame.theirs.commit_id,
            details=details,
        )

    tables = tuple(sorted({*delta.tables, *adopted}))
    facts = {"source_commit": frame.theirs.commit_id}
    if frame.source is not None:
        facts |= {"source_branch": frame.source.name, "source_ulid": frame.source.ulid}
    made = publish_long(frame.target, "merge", stage, signature, tables, facts)
    if made is None:  # a merge always publishes something: its lineage
        raise ReadSetConflict(member="graph_head", expected=frame.ours.commit_id)
    return made


def _as_captured(frame: Frame, txn: WriteTxn) -> None:
    now = txn.base.state.head.commit_id
    if now != frame.ours.commit_id:
        raise ReadSetConflict(member="graph_head", expected=frame.ours.commit_id, actual=now)
    if frame.source is None:
        return
    try:
        ulid = find_ref(txn.store, frame.source.name).ulid
    except BranchNotFound:
        ulid = None
    if ulid != frame.source.ulid:
        raise ReadSetConflict(member="source_branch", expected=frame.source.ulid, actual=ulid)
