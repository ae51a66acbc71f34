"""One commit again: its changes brought elsewhere (cherry-pick), or taken back (revert).

Both are merges of three states without a second parent. To pick a commit its parent is the base
and the commit the other side; to revert it, the other way round. Rows are written anew, so that
nothing of the past is named; what the rules refuse, and what was changed since, is a conflict.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Literal

from omnigraph.errors import InputError, MergeConflict, PreconditionFailed, ReadSetConflict
from omnigraph.history.bases import Frame
from omnigraph.history.commit import Commit
from omnigraph.history.diff import snapshot_of
from omnigraph.history.line import Line
from omnigraph.history.long import publish_long
from omnigraph.history.plan import PublishPlan, SameHead, WriteTxn
from omnigraph.history.schemas import schemas_agree, schemas_differ
from omnigraph.history.snapshot import Snapshot, of_state
from omnigraph.ingest.stage import stage_tables
from omnigraph.rules.delta import Delta

from .merge import Merged, Request, details
from .strategy import checked, settle
from .work import Decisions, Work

_ATTEMPTS = 12  # lost races after which it is told
Way = Literal["revert", "cherry_pick"]
_HINTS: dict[Way, str] = {
    "revert": "entities were changed since: look at them with dry_run=True (--dry-run); 'theirs'"
    " (--strategy) takes the values from before the commit, 'ours' keeps those of now",
    "cherry_pick": "look at them with dry_run=True (--dry-run); 'theirs' (--strategy) takes the"
    " values of the commit, 'ours' keeps those of the branch",
}


class _Rewrite(Work):
    """Tables that are changed row by row: an old version is never named again."""

    def _whole(self, key: str, decisions: Decisions) -> bool:
        return False


def replay(
    way: Way, target: Line, shown: Snapshot, asked: Request, mainline: int | None = None
) -> Merged:
    """Bring the changes of the commit that `shown` shows to a branch, or take them back there.

    `mainline` says which parent of a merge counts, the first by default. A branch that moved
    meanwhile is looked at again. Raises `MergeConflict` with every conflict, unless it is a dry
    run.
    """
    for attempt in range(1, _ATTEMPTS):
        try:
            return _once(way, target, shown, asked, mainline)
        except ReadSetConflict as error:
            if error.member != "graph_head":
                raise
            target.pause(attempt)
    return _once(way, target, shown, asked, mainline)


def _once(way: Way, target: Line, shown: Snapshot, asked: Request, mainline: int | None) -> Merged:
    frame = _frame(way, target, shown, mainline)
    if asked.if_commit is not None and frame.ours.commit_id != asked.if_commit:
        actual = frame.ours.commit_id
        raise PreconditionFailed(branch=target.name, expected=asked.if_commit, actual=actual)
    checked(asked.strategy, [key.partition(":")[2] for key in frame.ours.tables])
    judged, taken = settle(_Rewrite(frame, asked.options), asked.strategy)
    found = Merged(frame, "merged", judged=judged, resolved=taken)
    if judged.found:
        if asked.dry_run:
            return replace(found, outcome="conflict")
        raise MergeConflict(conflicts=found.conflicts, hint=_HINTS[way])
    if all(one.empty for one in judged.delta.tables.values()):
        return replace(found, outcome="already_up_to_date")
    if asked.dry_run:
        return found
    told = {"commit": shown.commit_id, **({"mainline": mainline} if mainline else {})}
    told |= details(asked, resolved=taken)
    return replace(found, commit=_land(way, frame, judged.delta, asked, told))


def _frame(way: Way, target: Line, shown: Snapshot, mainline: int | None) -> Frame:
    """The three states: of the branch, of the commit, and of its parent."""
    opened = target.refresh()
    ours = of_state(target.store, target, opened)
    commit = shown.commit
    parent = snapshot_of(shown, shown.log, _parent(commit, mainline))
    if parent.schema_row.hash != shown.schema_row.hash:
        raise InputError(
            f"commit {commit.id} changed the schema",
            reason="only changes of data can be repeated or taken back",
            hint="apply the schema that you want: `omnigraph schema apply`",
        )
    if not schemas_agree(shown.schema, ours.schema):
        raise schemas_differ(f"commit {commit.id}", target.name)
    before, after = f"before {commit.id}", commit.id
    base, theirs = (parent, shown) if way == "cherry_pick" else (shown, parent)
    named = replace(theirs, branch=after if way == "cherry_pick" else before)
    return Frame(None, target, opened, ours, named, (base,), "merged", {})


def _parent(commit: Commit, mainline: int | None) -> str:
    if not commit.parents:
        raise InputError(f"commit {commit.id} made the graph", reason="nothing was before it")
    if mainline is None:
        return commit.parents[0]
    if not 1 <= mainline <= len(commit.parents):
        raise InputError(
            f"commit {commit.id} has no parent {mainline}",
            reason=f"it has {len(commit.parents)}; the first is 1",
        )
    return commit.parents[mainline - 1]


def _land(
    way: Way, frame: Frame, delta: Delta, asked: Request, told: Mapping[str, Any]
) -> Commit | None:
    def stage(txn: WriteTxn) -> PublishPlan:
        SameHead(frame.ours.commit_id).check(txn)
        requirements = (SameHead(frame.ours.commit_id),)
        return PublishPlan(way, stage_tables(txn, delta), requirements, details=told)

    facts = {"source_commit": told["commit"]}
    return publish_long(frame.target, way, stage, asked.signature, tuple(delta.tables), facts)
