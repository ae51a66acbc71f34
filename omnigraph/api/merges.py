"""Merges, merge sessions, reverts, cherry-picks and resets, each of which publishes one commit or has no effect."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from omnigraph.api.engine_choice import Engine, EngineChoice, check_engine
from omnigraph.api.handle import Handle
from omnigraph.api.log_events import log_operation
from omnigraph.api.merge_sessions import MergeResult, MergeSession, build_merge_result
from omnigraph.api.repeated_merges import describe_merge_request, describe_revision, recover_result
from omnigraph.api.write_options import WriteOptions
from omnigraph.errors import BranchNotFound, InputError, OmnigraphError
from omnigraph.history.branch_state import BranchState
from omnigraph.history.commit import Commit
from omnigraph.history.merge_inputs import MergeSource, RevisionSource
from omnigraph.history.refs import find_highest_number
from omnigraph.history.revision_ranges import is_range, resolve_range
from omnigraph.history.revisions import Revision, check_revision_type, resolve_revision
from omnigraph.history.snapshot import manifest_snapshot
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
from omnigraph.publish.repeated_requests import publish_once
from omnigraph.values.name_rules import strip_name

BranchPair = tuple[str | None, str | None]  # (source, target); None means the handle's branch


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
    idempotency_key: str | None = None,
) -> MergeResult:
    """Merge one branch into another, in one commit with two parents.

    `source` and `into` both default to this graph's branch, but at least one must be given. Instead of a branch,
    `source` can be a tag, a commit id or another revision, such as `dev~1`. Merges are rejected on a graph that is
    pinned to a past commit or a tag.

    Changes made on only one side are merged without conflict. Different changes on both sides are conflicts, all of
    which are raised in one `MergeConflict`, or returned by a `dry_run`. `strategy` resolves the conflicts. It is `ours`
    (the target), `theirs` (the source), a dict that maps conflict kinds or types to one of these (`*` means all other
    conflicts), or a function that takes a conflict and returns `ours`, `theirs`, a dict of property values, or None to
    leave the conflict unresolved. Changes to different properties of an entity are combined, and a strategy decides
    only the properties in conflict. With `granularity="entity"`, conflicts are detected and resolved per entity. The
    result's `discarded` lists the changes that were dropped when conflicts were resolved.

    If both sides added equal edges, `collapse_edges` keeps only one of them. The default `message` is "Merge branch 'x'
    into main". `engine` is "local" (this process), "spark" (the session `spark`, or a new one) or "auto", which uses
    Spark if both sides together changed millions of rows. The result does not depend on the engine.

    Repeating an `idempotency_key` returns the first result again, even if the source has changed or was deleted. If
    there is nothing to merge, no commit is made, so repeating the key runs the merge again.

    Raises `MergeConflict`, `SchemaMismatch`, `PreconditionFailed`, `ReadOnlyError`, and `ReadSetConflict` if the target
    has moved in the meantime.
    """
    elsewhere = choose_merge_engine((engine, spark))
    level = check_granularity(granularity)
    options = MergeOptions(level, collapse_edges, limits or MergeLimits(), elsewhere)
    request = MergeRequest(options, strategy, if_commit, dry_run)
    write_options = WriteOptions(if_commit, message, actor, idempotency_key)
    return merge_branches(handle, (source, into), request, write_options, delete_source=delete_branch)


def merge_branches(
    handle: Handle, branches: BranchPair, request: MergeRequest, options: WriteOptions, *, delete_source: bool
) -> MergeResult:
    """Merge a branch or another revision into a branch, and delete the source branch if requested."""
    handle.require_branch("merging")
    if not request.dry_run:
        handle.require_writable("merging")
    target, source_name = handle.open_branch_state(branches[1]), strip_name(branches[0] or handle.branch_name)
    description = describe_merge_request("merge", target.name, source_name, request)

    def run(keyed: MergeRequest) -> MergeResult:
        source = _open_source(handle, branches[0])
        if delete_source and not isinstance(source, BranchState):
            raise InputError(f"'{source.name}' is not a branch", reason="only a branch can be deleted after the merge")
        message = _merge_message(source, target) if options.message is None else options.message
        metadata = replace(keyed.commit_metadata, message=message)
        return _finish(handle, merge_heads(source, target, replace(keyed, commit_metadata=metadata)))

    with log_operation("merge", target.name) as event:
        result = _run_once(handle, target, (request, options, description), run)
        event.facts["outcome_of_merge"] = result.outcome
    return _delete_merged_branch(handle, result, source_name) if delete_source and not request.dry_run else result


def _run_once(
    handle: Handle,
    target: BranchState,
    call: tuple[MergeRequest, WriteOptions, object],
    run: Callable[[MergeRequest], MergeResult],
) -> MergeResult:
    """Run a request, or return the result of the same request if it has already been run."""
    request, options, description = call
    if request.dry_run:
        options = replace(options, idempotency_key=None)
    metadata = handle.with_actor(options).commit_metadata(description)
    request = replace(request, commit_metadata=metadata)
    return publish_once(
        target, metadata, lambda: run(request), lambda commit: recover_result(handle, target, commit, request)
    )


def open_session(
    handle: Handle,
    branches: BranchPair,
    *,
    granularity: Granularity,
    collapse_edges: bool,
    write_options: WriteOptions,
    engine: EngineChoice,
) -> MergeSession:
    """Open a merge session in which conflicts are resolved one at a time."""
    handle.require_writable("merging")
    source, target = _open_source(handle, branches[0]), handle.open_branch_state(branches[1])
    elsewhere = choose_merge_engine(engine)
    options = MergeOptions(check_granularity(granularity), collapse_edges, offload_engine=elsewhere)
    metadata = handle.with_actor(write_options).commit_metadata()
    if metadata.message is None:
        metadata = replace(metadata, message=_merge_message(source, target))
    request = MergeRequest(options, commit_metadata=metadata)
    return MergeSession(open_merge(source, target), request, lambda merged: _finish(handle, merged))


@dataclass(frozen=True, slots=True)
class Replay:
    """A revert or cherry-pick, with the commit or range, the branch to write to, and the parent to compare with."""

    verb: ReplayKind
    commit: Revision
    branch: str | None
    mainline: int | None


def replay_commit(handle: Handle, revision: Replay, request: MergeRequest, options: WriteOptions) -> MergeResult:
    """Revert or cherry-pick a commit on a branch, by default the handle's branch."""
    verb, action = revision.verb, f"a {revision.verb.replace('_', '-')}"
    handle.require_branch(action)
    if not request.dry_run:
        handle.require_writable(action)
    check_revision_type(revision.commit)
    target = handle.open_branch_state(revision.branch)
    source = describe_revision(revision.commit), revision.mainline
    description = describe_merge_request(verb, target.name, source, request)
    with log_operation(verb, target.name):
        call = request, options, description
        return _run_once(handle, target, call, lambda keyed: _replay_revision(handle, revision, target, keyed))


def _replay_revision(handle: Handle, revision: Replay, target: BranchState, request: MergeRequest) -> MergeResult:
    verb = revision.verb
    nearest, origin = handle.latest_snapshot(), handle.branch_state
    if verb == "revert" and target is not origin:  # `HEAD` refers to the head of the target branch
        nearest, origin = manifest_snapshot(handle.store, target, target.last_known()), target
    if verb == "revert" and is_range(revision.commit):
        ends = resolve_range(handle.store, origin, nearest, _require_no_mainline(revision))
        request = _with_message(request, f"Revert {ends[0].commit_id}..{ends[1].commit_id}")
        return _finish(handle, revert_range(target, *ends, request))
    snapshot = resolve_revision(handle.store, origin, nearest, revision.commit)
    request = _with_message(request, _replay_message(verb, snapshot.commit))
    return _finish(handle, replay(verb, target, snapshot, request, revision.mainline))


def _with_message(request: MergeRequest, default: str | None) -> MergeRequest:
    """Return a request whose commit has a message: the caller's message, or else a default one."""
    metadata = request.commit_metadata
    return replace(request, commit_metadata=replace(metadata, message=metadata.message or default))


def _require_no_mainline(revision: Replay) -> str:
    """Return the text of the range to revert. Reject a parent number, which would be ambiguous for several commits."""
    if revision.mainline is not None:
        message = f"mainline {revision.mainline} does not apply to the range '{revision.commit}'"
        raise InputError(message, reason="expected a single merge commit", hint="omit `mainline` to revert a range")
    return str(revision.commit)


def reset_branch(
    handle: Handle, branch: str, revision: Revision, request: MergeRequest, options: WriteOptions
) -> MergeResult:
    """Reset a branch to the state at a revision, which is resolved relative to that branch."""
    action = "resetting a branch"
    handle.require_branch(action)
    if not request.dry_run:
        handle.require_writable(action)
    check_revision_type(revision)
    target = handle.open_branch_state(branch)

    def run(keyed: MergeRequest) -> MergeResult:
        head = manifest_snapshot(handle.store, target, target.refresh())
        snapshot = resolve_revision(handle.store, target, head, revision)
        retained_by = find_branch_with_commit(handle.store, target, snapshot.commit_id)
        keyed = _with_message(keyed, _message_about("Reset to", snapshot.commit))
        return _finish(handle, reset(target, snapshot, retained_by, keyed))

    description = (RESET_OPERATION, target.name, describe_revision(revision))
    with log_operation(RESET_OPERATION, target.name):
        return _run_once(handle, target, (request, options, description), run)


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


def _merge_message(source: MergeSource, target: BranchState) -> str:
    """Return the default message for a merge commit, which mentions both sides."""
    kind = "branch" if isinstance(source, BranchState) else "commit"
    return f"Merge {kind} '{source.name}' into {target.name}"


def _finish(handle: Handle, merged: MergeReport) -> MergeResult:
    """Return the result of a merge. If the handle is on the target, move it to the new commit."""
    moves_handle = merged.merge_inputs.target_branch.ulid == handle.branch_state.ulid
    if merged.commit is not None and moves_handle:
        handle.refresh()
    return build_merge_result(merged)


def _delete_merged_branch(handle: Handle, result: MergeResult, source_name: str) -> MergeResult:
    """Delete the source. A failure does not affect the merge, which has already been published.

    If the merge is repeated, the first request may have deleted the branch. A branch with the same name that has been
    created since then has a different head, so it is kept.
    """
    try:
        bound, head = handle.branch_name, result.source
        delete_branch(handle.store, source_name, current_branch=bound, expected_head=head)
    except OmnigraphError as error:
        was_deleted = isinstance(error, BranchNotFound) and find_highest_number(handle.store, source_name) > 0
        if not (result.replayed and was_deleted):
            return replace(result, branch_delete_error=str(error))
    return replace(result, branch_deleted=True)


def _replay_message(verb: ReplayKind, commit: Commit) -> str | None:
    """Return the default message for a revert or cherry-pick, or None if the picked commit has no message."""
    if verb == "cherry_pick":
        return commit.message
    return _message_about("Revert", commit)


def _message_about(action: str, commit: Commit) -> str:
    return f'{action} "{commit.message}"' if commit.message else f"{action} {commit.id}"
