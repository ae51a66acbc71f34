"""Merges, merge sessions, reverts, cherry-picks and resets, each of which publishes one commit or has no effect."""

from dataclasses import dataclass, replace
from typing import Any

from omnigraph.api.engine_choice import Engine, EngineChoice, check_engine
from omnigraph.api.handle import Handle
from omnigraph.api.log_events import log_operation
from omnigraph.api.merge_sessions import MergeResult, MergeSession, build_merge_result
from omnigraph.api.write_options import WriteOptions
from omnigraph.errors import BranchNotFound, InputError, OmnigraphError
from omnigraph.history.branch_state import BranchState
from omnigraph.history.commit import Commit
from omnigraph.history.merge_inputs import MergeSource, RevisionSource
from omnigraph.history.revision_ranges import is_range, resolve_range
from omnigraph.history.revisions import Revision, resolve_revision
from omnigraph.history.snapshot import Snapshot, manifest_snapshot
from omnigraph.history.tags import find_branch_with_commit
from omnigraph.merging.merge import MergeReport, MergeRequest, open_merge
from omnigraph.merging.merge import merge as merge_heads
from omnigraph.merging.merge_limits import MergeLimits
from omnigraph.merging.planner import MergeOptions
from omnigraph.merging.replay import ReplayKind, replay, revert_range
from omnigraph.merging.reset import RESET_OPERATION, reset
from omnigraph.merging.strategy import Strategy
from omnigraph.merging.table_merge import Granularity
from omnigraph.publish.branch_lifecycle import delete_branch
from omnigraph.publish.write_plan import CommitMetadata

BranchPair = tuple[str | None, str | None]  # (source, target); None means the handle's branch
Authorship = tuple[str | None, str | None]  # (message, actor)


def check_granularity(granularity: Granularity) -> Granularity:
    """Return the granularity if it is valid. Otherwise, raise `InputError`.

    >>> check_granularity("property")
    'property'
    """
    if granularity not in ("entity", "property"):
        message = f"unknown granularity '{granularity}'"
        raise InputError(message, reason="expected 'entity' or 'property'")
    return granularity


def choose_merge_engine(engine: EngineChoice) -> Any:
    """Return the engine for comparing large tables in a merge, or None to compare all tables in this process."""
    engine_name, session = engine
    check_engine(engine_name)
    if engine_name == "local":
        return None
    from omnigraph.spark.merge import SparkMerge

    return SparkMerge(session, forced=engine_name == "spark")


def merge(  # noqa: PLR0913 - all but two are keywords
    handle: Handle,
    source: str | None = None,
    into: str | None = None,
    *,
    message: str | None = None,
    actor: str | None = None,
    delete_branch: bool = False,
    if_commit: str | None = None,
    strategy: Strategy = None,
    granularity: Granularity = "property",
    collapse_edges: bool = False,
    dry_run: bool = False,
    limits: MergeLimits | None = None,
    engine: Engine = "auto",
    spark: Any = None,
) -> MergeResult:
    """Merge one branch into another, in one commit with two parents.

    `source` and `into` both default to this graph's branch, but at least one must be given. Instead of a branch,
    `source` can be a tag, a commit id or another revision, such as `dev~1`. Merges are rejected on a graph that is
    pinned to a past commit or a tag.

    Changes made on only one side are merged without conflict. Different changes on both sides are conflicts, all of
    which are raised in one `MergeConflict`, or returned by a `dry_run`. `strategy` resolves the conflicts. It is `ours`
    (the target), `theirs` (the source), a dict that maps conflict kinds or types to one of these (`*` means all other
    conflicts), or a function that takes a conflict and returns `ours`, `theirs`, a dict of property values, or None.
    Changes to different properties of an entity are combined, and a strategy decides only the properties in conflict.
    With `granularity="entity"`, conflicts are detected and resolved per entity. The result's `discarded` lists the
    changes that were dropped when conflicts were resolved.

    If both sides added equal edges, `collapse_edges` keeps only one of them. The default `message` is "Merge branch 'x'
    into main". `engine` is "local" (this process), "spark" (the session `spark`, or a new one) or "auto", which uses
    Spark if both sides together changed millions of rows. The result does not depend on the engine.

    Raises `MergeConflict`, `SchemaMismatch`, `PreconditionFailed`, `ReadOnlyError`, and `ReadSetConflict` if the target
    has moved in the meantime.
    """
    elsewhere = choose_merge_engine((engine, spark))
    level = check_granularity(granularity)
    options = MergeOptions(level, collapse_edges, limits or MergeLimits(), elsewhere)
    request = MergeRequest(options, strategy, if_commit, dry_run)
    names, authorship = (source, into), (message, actor)
    return merge_branches(handle, names, request, authorship, delete_source=delete_branch)


def merge_branches(
    handle: Handle, branches: BranchPair, request: MergeRequest, authorship: Authorship, *, delete_source: bool
) -> MergeResult:
    """Merge a branch or another revision into a branch, and delete the source branch if requested."""
    handle.require_branch("merging")
    if not request.dry_run:
        handle.require_writable("merging")
    source, target = _open_source(handle, branches[0]), handle.open_branch_state(branches[1])
    request = replace(request, commit_metadata=_merge_metadata(handle, source, target, authorship))
    if delete_source and not isinstance(source, BranchState):
        raise InputError(f"'{source.name}' is not a branch", reason="only a branch can be deleted after the merge")
    with log_operation("merge", target.name) as event:
        merged = merge_heads(source, target, request)
        result = _finish(handle, merged)
        event.facts["outcome_of_merge"] = merged.outcome
    if delete_source and isinstance(source, BranchState) and not request.dry_run:
        return _delete_merged_branch(handle, result, source)
    return result


def open_session(
    handle: Handle,
    branches: BranchPair,
    *,
    granularity: Granularity,
    collapse_edges: bool,
    authorship: Authorship,
    engine: EngineChoice,
) -> MergeSession:
    """Open a merge session in which conflicts are resolved one at a time."""
    handle.require_writable("merging")
    source, target = _open_source(handle, branches[0]), handle.open_branch_state(branches[1])
    elsewhere = choose_merge_engine(engine)
    options = MergeOptions(check_granularity(granularity), collapse_edges, offload_engine=elsewhere)
    request = MergeRequest(options, commit_metadata=_merge_metadata(handle, source, target, authorship))
    return MergeSession(open_merge(source, target), request, lambda merged: _finish(handle, merged))


@dataclass(frozen=True, slots=True)
class Replay:
    """A revert or cherry-pick, with the commit or range, the branch to write to, and the parent to compare with."""

    verb: ReplayKind
    commit: Revision
    branch: str | None
    mainline: int | None


def replay_commit(handle: Handle, revision: Replay, request: MergeRequest, authorship: Authorship) -> MergeResult:
    """Revert or cherry-pick a commit on a branch, by default the handle's branch."""
    verb, action = revision.verb, f"a {revision.verb.replace('_', '-')}"
    handle.require_branch(action)
    if not request.dry_run:
        handle.require_writable(action)
    target = handle.open_branch_state(revision.branch)
    nearest, origin = handle.latest_snapshot(), handle.branch_state
    if verb == "revert" and target is not origin:  # `HEAD` refers to the head of the target branch
        nearest, origin = manifest_snapshot(handle.store, target, target.last_known()), target
    if verb == "revert" and is_range(revision.commit):
        ends = resolve_range(handle.store, origin, nearest, _require_no_mainline(revision))
        return _revert_range(handle, target, ends, request, authorship)
    snapshot = resolve_revision(handle.store, origin, nearest, revision.commit)
    message, actor = authorship
    options = _options_with_actor(handle, message or _replay_message(verb, snapshot.commit), actor)
    request = replace(request, commit_metadata=options.commit_metadata())
    with log_operation(verb, target.name):
        return _finish(handle, replay(verb, target, snapshot, request, revision.mainline))


def _revert_range(
    handle: Handle,
    target: BranchState,
    ends: tuple[Snapshot, Snapshot],
    request: MergeRequest,
    authorship: Authorship,
) -> MergeResult:
    message, actor = authorship
    first, last = ends
    options = _options_with_actor(handle, message or f"Revert {first.commit_id}..{last.commit_id}", actor)
    request = replace(request, commit_metadata=options.commit_metadata())
    with log_operation("revert", target.name):
        return _finish(handle, revert_range(target, first, last, request))


def _require_no_mainline(revision: Replay) -> str:
    """Return the range to revert as text. Reject a parent number, which would be ambiguous for several commits."""
    if revision.mainline is not None:
        message = f"mainline {revision.mainline} does not apply to the range '{revision.commit}'"
        raise InputError(message, reason="expected a single merge commit", hint="omit mainline to revert a range")
    return str(revision.commit)


def reset_branch(
    handle: Handle, branch: str, revision: Revision, request: MergeRequest, authorship: Authorship
) -> MergeResult:
    """Reset a branch to the state at a revision, which is resolved relative to that branch."""
    action = "resetting a branch"
    handle.require_branch(action)
    if not request.dry_run:
        handle.require_writable(action)
    target = handle.open_branch_state(branch)
    head = manifest_snapshot(handle.store, target, target.refresh())
    snapshot = resolve_revision(handle.store, target, head, revision)
    message, actor = authorship
    options = _options_with_actor(handle, message or _message_about("Reset to", snapshot.commit), actor)
    request = replace(request, commit_metadata=options.commit_metadata())
    with log_operation(RESET_OPERATION, target.name):
        retained_by = find_branch_with_commit(handle.store, target, snapshot.commit_id)
        return _finish(handle, reset(target, snapshot, retained_by, request))


def _open_source(handle: Handle, name: str | None) -> MergeSource:
    """Open a merge's source: a branch or, if no branch has this name, any other revision."""
    try:
        return handle.open_branch_state(name)
    except (BranchNotFound, InputError) as error:
        try:
            snapshot = resolve_revision(handle.store, handle.branch_state, handle.latest_snapshot(), str(name))
        except InputError:  # the name is neither a branch nor a revision
            raise error from None
    retained_by = find_branch_with_commit(handle.store, handle.branch_state, snapshot.commit_id)
    return RevisionSource(str(name).strip(), snapshot, retained_by)


def _merge_metadata(handle: Handle, source: MergeSource, target: BranchState, authorship: Authorship) -> CommitMetadata:
    """Return the metadata for a merge commit. The default message mentions both sides."""
    message, actor = authorship
    if message is None:
        kind = "branch" if isinstance(source, BranchState) else "commit"
        message = f"Merge {kind} '{source.name}' into {target.name}"
    return _options_with_actor(handle, message, actor).commit_metadata()


def _options_with_actor(handle: Handle, message: str | None, actor: str | None) -> WriteOptions:
    return handle.with_actor(WriteOptions(message=message, actor=actor))


def _finish(handle: Handle, merged: MergeReport) -> MergeResult:
    """Return the result of a merge. If the handle is on the target, move it to the new commit."""
    moves_handle = merged.merge_inputs.target_branch.ulid == handle.branch_state.ulid
    if merged.commit is not None and moves_handle:
        handle.refresh()
    return build_merge_result(merged)


def _delete_merged_branch(handle: Handle, result: MergeResult, source: BranchState) -> MergeResult:
    """Delete the source. A failure does not affect the merge, which has already been published."""
    try:
        bound, head = handle.branch_name, result.source
        delete_branch(handle.store, source.name, current_branch=bound, expected_head=head)
    except OmnigraphError as error:
        return replace(result, branch_delete_error=str(error))
    return replace(result, branch_deleted=True)


def _replay_message(verb: ReplayKind, commit: Commit) -> str | None:
    """Return the default message for a revert or cherry-pick, or None if the picked commit has no message."""
    if verb == "cherry_pick":
        return commit.message
    return _message_about("Revert", commit)


def _message_about(action: str, commit: Commit) -> str:
    return f'{action} "{commit.message}"' if commit.message else f"{action} {commit.id}"
