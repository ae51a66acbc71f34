"""Repair of manifests: provably published versions that are missing are published again.

Commits keep their ids, parents and version numbers; nothing is invented. What may be an interrupted
write is left alone. Each version goes through the ordinary swap, so that the repair loses against a
live writer or a running cleanup, never the other way round.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from omnigraph import ids
from omnigraph.errors import ConcurrentCommit, InputError, OmnigraphError
from omnigraph.history import refs
from omnigraph.history.branches import past_state
from omnigraph.history.commit import Commit
from omnigraph.history.line import line_of
from omnigraph.history.manifest import Opened, create_manifest, is_newest, swap_state
from omnigraph.history.refs import Ref
from omnigraph.history.retention.condemned import check_kept
from omnigraph.history.state import State
from omnigraph.history.unnamed import PLACES
from omnigraph.storage import layout
from omnigraph.storage.cell import LostSwap, UnsureSwap
from omnigraph.storage.failures import DamagedError
from omnigraph.storage.store import Store

from .fragments import Fragment, list_files, newer_fragments
from .heads import label
from .lost_versions import LostVersions
from .restore_names import record_repair_event

VersionAction = Literal["preview", "restored", "refused"]


@dataclass(frozen=True, slots=True)
class VersionRepair:
    """A branch or tag that lost its newest manifest versions, and what was done about it."""

    branch: str
    manifest: str
    version: int
    commits: tuple[str, ...]
    action: VersionAction
    reason: str | None = None

    def __str__(self) -> str:
        said = f"{self.branch} ({self.manifest}): versions above {self.version} lost, {self.action}"
        return f"{said}: {self.reason}" if self.reason else said

    def to_json(self) -> dict[str, Any]:
        """Return the row as JSON-compatible data."""
        return {
            "branch": self.branch,
            "manifest": self.manifest,
            "manifest_version": self.version,
            "graph_commit_ids": list(self.commits),
            "action": self.action,
            "reason": self.reason,
        }


def repair_versions(
    store: Store,
    lost: Sequence[LostVersions],
    *,
    confirm: bool,
    actor: str | None,
    accept: str | None = None,
) -> tuple[VersionRepair, ...]:
    """Publish provably lost commits again, where the branch has not moved on since.

    `acknowledged_commit` is a commit that the caller knows to have been acknowledged.
    """
    accepted = [one.accept(accept) for one in lost]
    if accept is not None and not any(accepted):
        raise InputError(
            f"commit {accept} is not among those that can be published again",
            reason="unknown commit",
            hint="run `omnigraph check` to list them",
        )
    rows: list[VersionRepair] = []
    for one in lost:
        if not one.proofs:
            continue
        row = _row(one.past.head.ref, one.opened.version, [found.id for found, _ in one.chain])
        if not one.chain or len(one.chain) < len(one.commits):
            rows.append(_refused(row, confirm, "the lost commits do not follow the head"))
            continue
        rows.append(_apply(row, confirm, lambda one=one: _publish_chain(store, one, actor)))
    return tuple(rows)


def repair_missing_manifests(
    store: Store, *, confirm: bool, actor: str | None
) -> tuple[VersionRepair, ...]:
    """Restore manifests that a ref names and that have no version left."""
    rows: list[VersionRepair] = []
    for ref in [refs.MAIN_REF, *_open_refs(store)]:
        files = list_files(store, ref.ulid)
        if files.versions:
            continue
        proved = _proved_states(newer_fragments(store, ref.ulid, files))
        if ref == refs.MAIN_REF and len(proved) < 2:
            continue  # a crashed init leaves the same files
        row = _row(ref, 0, [one.state.head.commit_id for one in proved])
        if not proved:
            rows.append(_refused(row, confirm, "its first state is missing, too"))
            continue
        rows.append(
            _apply(row, confirm, lambda ref=ref, p=proved: _write_manifest(store, ref, p, actor))
        )
    return tuple(rows)


def _open_refs(store: Store) -> list[Ref]:
    found: list[Ref] = []
    for place in PLACES:
        for name, number in sorted(refs.list_numbers(store, place).items()):
            try:
                ref = refs.read_ref(store, name, number, place) if number % 2 else None
            except DamagedError:
                continue  # repaired by `restore_names`
            found += [ref] if ref is not None else []
    return found


def _row(ref: Ref, version: int, commits: Sequence[str]) -> VersionRepair:
    place = layout.manifest_directory(ref.ulid)
    return VersionRepair(label(ref), place, version, tuple(commits), "preview")


def _refused(row: VersionRepair, confirm: bool, reason: str) -> VersionRepair:
    return replace(row, action="refused" if confirm else "preview", reason=reason)


def _apply(row: VersionRepair, confirm: bool, work: Any) -> VersionRepair:
    if not confirm:
        return replace(row, reason="would be restored")
    try:
        work()
    except OmnigraphError as error:
        return replace(row, action="refused", reason=error.message)
    return replace(row, action="restored")


def _publish_chain(store: Store, lost: LostVersions, actor: str | None) -> None:
    ref = lost.past.head.ref
    line = line_of(store, ref.name, ref.ulid)
    with line.turn():
        base = lost.opened
        for commit, state in lost.chain:
            base = _publish_again(store, base, commit, state)
        line.advance(base)
    record_repair_event(store, "restore_version", ref.name, lost.chain[-1][0].id, actor)


def _publish_again(store: Store, base: Opened, commit: Commit, state: State) -> Opened:
    """Publish a commit under its own version; versions without a commit are repeated before it."""
    past = past_state(store, state, commit.id)
    check_kept(store, past, commit.id)
    while base.version + 1 < commit.manifest_version:
        head = replace(base.state.head, nonce=ids.nonce())
        base = _swap(store, base, replace(base.state, head=head))
    head = replace(base.state.head, commit_id=commit.id, nonce=None)
    return _swap(store, base, replace(past, head=head, origin=base.state.origin))


def _swap(store: Store, base: Opened, state: State) -> Opened:
    try:
        opened = swap_state(store, base, state)
    except (LostSwap, UnsureSwap) as error:
        raise _overtaken() from error
    if not is_newest(opened):
        raise _overtaken()
    return opened


def _overtaken() -> ConcurrentCommit:
    return ConcurrentCommit("the branch was written to meanwhile", hint="run the repair again")


def _proved_states(fragments: list[Fragment]) -> list[Fragment]:
    """Return consecutive states from version 1; the last of several may be an interrupted write."""
    found: list[Fragment] = []
    for one in fragments:
        if one.version == len(found) + 1:
            found.append(one)
    return found[:-1] if len(found) > 1 else found


def _write_manifest(store: Store, ref: Ref, proved: list[Fragment], actor: str | None) -> None:
    opened = create_manifest(store, ref.ulid, proved[0].state)
    for one in proved[1:]:
        opened = _swap(store, opened, one.state)
    record_repair_event(store, "restore_version", ref.name, opened.state.head.commit_id, actor)
