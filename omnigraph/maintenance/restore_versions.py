"""Restore manifests by republishing versions that are provably lost.

Commits keep their ids, parents and version numbers, and the repair adds no data of its own. Anything that may be an
interrupted write is left alone. Each version is published with an ordinary swap, so an active writer or a running
cleanup always wins a conflict with the repair.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from omnigraph.errors import ConcurrentCommit, InputError, OmnigraphError
from omnigraph.history import refs
from omnigraph.history.branch_state import branch_state_of
from omnigraph.history.branches import state_at_commit
from omnigraph.history.commit import Commit
from omnigraph.history.delete_queue import check_state_retained
from omnigraph.history.manifest import LoadedManifest, create_manifest, is_newest, swap_state
from omnigraph.history.refs import Ref
from omnigraph.history.state import GraphState
from omnigraph.publish.unnamed_manifests import REF_DIRECTORIES
from omnigraph.storage import layout
from omnigraph.storage.failures import DamagedError
from omnigraph.storage.manifest_cell import SwapConflict, SwapOutcomeUnknown
from omnigraph.storage.store import Store
from omnigraph.values import clock_and_ids

from .branch_heads import ref_label
from .lost_versions import LostVersionEvidence
from .orphan_fragments import OrphanFragment, list_manifest_files, read_newer_fragments
from .repair_report import VersionRepair
from .restore_names import record_repair_event


def repair_versions(
    store: Store,
    lost_versions: Sequence[LostVersionEvidence],
    *,
    confirm: bool,
    actor: str | None,
    acknowledged_commit: str | None = None,
) -> tuple[VersionRepair, ...]:
    """Republish commits that are provably lost, unless the branch has advanced in the meantime.

    The caller guarantees that `acknowledged_commit` was acknowledged, so the commit is published again.
    """
    accepted = [evidence.accept_commit(acknowledged_commit) for evidence in lost_versions]
    if acknowledged_commit is not None and not any(accepted):
        raise InputError(
            f"commit {acknowledged_commit} is not among the commits that can be republished",
            reason="unknown commit",
            hint="run `omnigraph check` to list these commits",
        )
    version_repairs: list[VersionRepair] = []
    for evidence in lost_versions:
        if not evidence.proofs:
            continue
        version_repair = _new_repair(
            evidence.branch_log.head.ref,
            evidence.manifest.version,
            [commit.id for commit, _ in evidence.restorable_commits],
        )
        if not evidence.restorable_commits or len(evidence.restorable_commits) < len(evidence.proved_commits):
            version_repairs.append(
                _refuse_repair(version_repair, confirm, "the lost commits do not follow the branch head")
            )
            continue
        version_repairs.append(
            _apply_repair(version_repair, confirm, lambda evidence=evidence: _republish_commits(store, evidence, actor))
        )
    return tuple(version_repairs)


def repair_missing_manifests(store: Store, *, confirm: bool, actor: str | None) -> tuple[VersionRepair, ...]:
    """Restore manifests that a ref points to but that have no versions left."""
    version_repairs: list[VersionRepair] = []
    for ref in [refs.MAIN_REF, *_list_open_refs(store)]:
        manifest_files = list_manifest_files(store, ref.ulid)
        if manifest_files.version_files:
            continue
        proved_fragments = _proved_fragments(read_newer_fragments(store, ref.ulid, manifest_files))
        if ref == refs.MAIN_REF and len(proved_fragments) < 2:
            continue  # a crashed init leaves the same files behind
        version_repair = _new_repair(ref, 0, [fragment.state.head.commit_id for fragment in proved_fragments])
        if not proved_fragments:
            version_repairs.append(_refuse_repair(version_repair, confirm, "the first version is also missing"))
            continue
        version_repairs.append(
            _apply_repair(
                version_repair,
                confirm,
                lambda ref=ref, fragments=proved_fragments: _write_manifest(store, ref, fragments, actor),
            )
        )
    return tuple(version_repairs)


def _list_open_refs(store: Store) -> list[Ref]:
    open_refs: list[Ref] = []
    for ref_directory in REF_DIRECTORIES:
        for ref_name, ref_number in sorted(refs.list_highest_numbers(store, ref_directory).items()):
            try:
                ref = refs.read_ref(store, ref_name, ref_number, ref_directory) if ref_number % 2 else None
            except DamagedError:
                continue  # `restore_names` repairs this ref
            open_refs += [ref] if ref is not None else []
    return open_refs


def _new_repair(ref: Ref, version: int, commit_ids: Sequence[str]) -> VersionRepair:
    manifest_path = layout.manifest_directory(ref.ulid)
    return VersionRepair(ref_label(ref), manifest_path, version, tuple(commit_ids), "preview")


def _refuse_repair(version_repair: VersionRepair, confirm: bool, reason: str) -> VersionRepair:
    return replace(version_repair, action="refused" if confirm else "preview", reason=reason)


def _apply_repair(version_repair: VersionRepair, confirm: bool, apply_change: Any) -> VersionRepair:
    if not confirm:
        return replace(version_repair, reason="would be restored")
    try:
        apply_change()
    except OmnigraphError as error:
        return replace(version_repair, action="refused", reason=error.message)
    return replace(version_repair, action="restored")


def _republish_commits(store: Store, evidence: LostVersionEvidence, actor: str | None) -> None:
    ref = evidence.branch_log.head.ref
    branch_state = branch_state_of(store, ref.name, ref.ulid)
    with branch_state.writer_slot():
        base = evidence.manifest
        for commit, state in evidence.restorable_commits:
            base = _republish_commit(store, base, commit, state)
        branch_state.advance(base)
    record_repair_event(store, "restore_version", ref.name, evidence.restorable_commits[-1][0].id, actor)


def _republish_commit(store: Store, base: LoadedManifest, commit: Commit, state: GraphState) -> LoadedManifest:
    """Publish a commit under its original version number. Fill any gap before it with versions that add no commit."""
    commit_state = state_at_commit(store, state, commit.id)
    check_state_retained(store, commit_state, commit.id)
    while base.version + 1 < commit.manifest_version:
        head = replace(base.state.head, nonce=clock_and_ids.new_nonce())
        base = _swap_manifest(store, base, replace(base.state, head=head))
    head = replace(base.state.head, commit_id=commit.id, nonce=None)
    return _swap_manifest(store, base, replace(commit_state, head=head, origin=base.state.origin))


def _swap_manifest(store: Store, base: LoadedManifest, state: GraphState) -> LoadedManifest:
    try:
        manifest = swap_state(store, base, state)
    except (SwapConflict, SwapOutcomeUnknown) as error:
        raise _concurrent_write_error() from error
    if not is_newest(manifest):
        raise _concurrent_write_error()
    return manifest


def _concurrent_write_error() -> ConcurrentCommit:
    return ConcurrentCommit("the branch was written to in the meantime", hint="run the repair again")


def _proved_fragments(fragments: list[OrphanFragment]) -> list[OrphanFragment]:
    """Return the states with consecutive versions, starting from version 1.

    If there are several states, the last one is omitted, because it may be an interrupted write.
    """
    consecutive: list[OrphanFragment] = []
    for fragment in fragments:
        if fragment.version == len(consecutive) + 1:
            consecutive.append(fragment)
    return consecutive[:-1] if len(consecutive) > 1 else consecutive


def _write_manifest(store: Store, ref: Ref, fragments: list[OrphanFragment], actor: str | None) -> None:
    manifest = create_manifest(store, ref.ulid, fragments[0].state)
    for fragment in fragments[1:]:
        manifest = _swap_manifest(store, manifest, fragment.state)
    record_repair_event(store, "restore_version", ref.name, manifest.state.head.commit_id, actor)
