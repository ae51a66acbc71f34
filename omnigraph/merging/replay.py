"""Replay one commit: apply its changes elsewhere (cherry-pick), or undo them (revert).

Both are three-way merges without a second parent. To pick a commit, its parent is the base and the
commit is the other side; to revert it, the other way round. Rows are written anew, so that no old
version is named; rule violations and entities changed since are conflicts.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Literal

import pyarrow as pa

from omnigraph.errors import InputError, MergeConflict, PreconditionFailed, SchemaMismatch
from omnigraph.history.bases import Frame
from omnigraph.history.commit import Commit
from omnigraph.history.diff import snapshot_of
from omnigraph.history.line import Line
from omnigraph.history.manifest import Opened
from omnigraph.history.plan import HeadWas, PublishPlan, SameAnswer, SameSchema, WriteTxn
from omnigraph.history.publish import publish
from omnigraph.history.schemas import schemas_agree
from omnigraph.history.snapshot import Snapshot, of_state
from omnigraph.ingest.stage import stage_tables
from omnigraph.rules.delta import TableDelta
from omnigraph.storage.find import find

from .merge import Merged, Request, details
from .strategy import checked, settle
from .work import Decisions, Work

Way = Literal["revert", "cherry_pick"]
_HINTS: dict[Way, str] = {
    "revert": "entities have changed since: inspect them with dry_run=True (--dry-run); 'theirs'"
    " (--strategy) restores the values from before the commit, 'ours' keeps the current ones",
    "cherry_pick": "inspect them with dry_run=True (--dry-run); 'theirs' (--strategy) takes the"
    " values of the commit, 'ours' keeps those of the branch",
}


class _Rewrite(Work):
    """Plans changes row by row: a replay must never name an old table version."""

    def _whole(self, key: str, decisions: Decisions) -> bool:
        return False


def replay(
    way: Way, target: Line, shown: Snapshot, asked: Request, mainline: int | None = None
) -> Merged:
    """Apply the changes of the commit of `commit_snapshot` to a branch, or undo them there.

    `mainline` selects the parent of a merge commit, the first by default. If the branch moves
    meanwhile, the replay is planned again. Raises `MergeConflict` with every conflict, unless it is
    a dry run.
    """
    parent = _before(shown, mainline)
    base, theirs = (parent, shown) if way == "cherry_pick" else (shown, parent)
    label = shown.commit_id if way == "cherry_pick" else f"before {shown.commit_id}"
    theirs = replace(theirs, branch=label)
    if asked.dry_run:
        return _judged(way, target, target.refresh(), (base, theirs), asked)
    told = {"commit": shown.commit_id, **({"mainline": mainline} if mainline else {})}
    last: list[Merged] = []

    def prepare(txn: WriteTxn) -> PublishPlan | None:
        found = _judged(way, target, txn.base, (base, theirs), asked)
        last[:] = [found]
        decided = details(asked, resolved=found.resolved, lost=len(found.lost))
        return _planned(way, found, txn, told | decided)

    conditions = () if asked.if_commit is None else (HeadWas(asked.if_commit),)
    commit = publish(target, prepare, asked.signature, conditions)
    return replace(last[0], commit=commit)


def _judged(
    way: Way, target: Line, opened: Opened, change: tuple[Snapshot, Snapshot], asked: Request
) -> Merged:
    """Plan what a change between two snapshots would do to one version of the branch."""
    base, theirs = change
    ours = of_state(target.store, target, opened)
    if asked.if_commit is not None and ours.commit_id != asked.if_commit:
        expected, actual = asked.if_commit, ours.commit_id
        raise PreconditionFailed(branch=target.name, expected=expected, actual=actual)
    if not schemas_agree(theirs.schema, ours.schema):
        commit_id = theirs.commit_id if way == "cherry_pick" else base.commit_id
        raise _other_schema(way, commit_id, target.name)
    checked(asked.strategy, [key.partition(":")[2] for key in ours.tables])
    frame = Frame(None, target, opened, ours, theirs, (base,), "merged")
    judged, resolved = settle(_Rewrite(frame, asked.options), asked.strategy)
    found = Merged(frame, "merged", judged=judged, resolved=resolved)
    if judged.found:
        return replace(found, outcome="conflict")
    empty = all(one.empty for one in judged.delta.tables.values())
    return replace(found, outcome="already_up_to_date") if empty else found


def _planned(way: Way, found: Merged, txn: WriteTxn, told: Mapping[str, Any]) -> PublishPlan | None:
    """Return the publish plan; it requires that the compared rows are unchanged at publish."""
    if found.outcome == "conflict":
        raise MergeConflict(conflicts=found.conflicts, hint=_HINTS[way])
    if found.outcome == "already_up_to_date" or found.judged is None:
        return None
    delta, read = found.judged.delta, found.judged.requirements
    compared = tuple(_as_compared(txn, one) for one in delta.tables.values())
    schema = SameSchema(txn.base.state.schema.hash)
    requirements = (schema, *read, *compared)
    return PublishPlan(way, stage_tables(txn, delta), requirements, details=told)


def _as_compared(txn: WriteTxn, one: TableDelta) -> SameAnswer:
    """Require that the branch still has the rows that were compared."""
    table, entry = txn.table(one.key), txn.base.state.tables[one.key]
    ids = pa.concat_arrays([one.ids, one.removed_ids])
    rows = find(table, {"id": ids}, table.schema.names)
    return SameAnswer(one.key, entry.content_id, (("id", ids),), rows)


def _before(shown: Snapshot, mainline: int | None) -> Snapshot:
    """Return the parent that a commit is compared with."""
    commit = shown.commit
    parent = snapshot_of(shown, shown.log, _parent(commit, mainline))
    if parent.schema_row.hash != shown.schema_row.hash:
        raise InputError(
            f"commit {commit.id} changed the schema: only data changes can be reverted or"
            " cherry-picked",
            reason="schema commit",
            hint="apply the schema that you want: `omnigraph schema apply`; data that it dropped is"
            f" readable in the commit before it: --snapshot {parent.commit_id}",
        )
    return parent


def _other_schema(way: Way, commit_id: str, branch: str) -> SchemaMismatch:
    """Return the error for a commit whose rows have other columns than the branch now."""
    turned = "reverted" if way == "revert" else "cherry-picked"
    return SchemaMismatch(
        f"commit {commit_id} cannot be {turned} on '{branch}': the schema has changed since",
        source=f"commit {commit_id}",
        target=branch,
        hint=f"see what it changed with `omnigraph commit changes {commit_id}`, and make or undo"
        " that by a mutation; or create a branch from before the schema change",
    )


def _parent(commit: Commit, mainline: int | None) -> str:
    if not commit.parents:
        raise InputError(f"commit {commit.id} created the graph", reason="it has no parent")
    if mainline is None:
        return commit.parents[0]
    if not 1 <= mainline <= len(commit.parents):
        raise InputError(
            f"commit {commit.id} has no parent {mainline}",
            reason=f"it has {len(commit.parents)}; the first is 1",
        )
    return commit.parents[mainline - 1]
