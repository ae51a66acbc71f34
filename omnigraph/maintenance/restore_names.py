"""Restore branch and tag names: rewrite or drop lost or damaged ref objects.

If a manifest's name is known, the name is restored. For all other manifests, the caller decides what to do. Without
`confirm`, the repair is only previewed. A name's ref numbers are never reused: a restored ref object gets the next odd
number.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from omnigraph.errors import AlreadyExists, InputError, OmnigraphError, UsageError
from omnigraph.history import name_conflicts, refs
from omnigraph.history.branch_state import branch_state_of
from omnigraph.history.delete_queue import check_head_not_queued
from omnigraph.history.manifest import manifest_exists
from omnigraph.history.origin_record import RefKind
from omnigraph.history.recovery_records import RecoveryRecord
from omnigraph.history.refs import Ref
from omnigraph.publish.branch_lifecycle import conflicting_names, next_ref_number
from omnigraph.publish.closing_version import publish_closing_version
from omnigraph.publish.tag_lifecycle import free_tag_number
from omnigraph.publish.unnamed_manifests import (
    REF_DIRECTORIES,
    DamagedRef,
    RefListing,
    UnnamedManifest,
    find_manifests_without_ref,
    list_refs_consistently,
)
from omnigraph.storage import layout
from omnigraph.storage.store import Store
from omnigraph.values import clock_and_ids

from .repair_report import NameAction, NameRepair


@dataclass(frozen=True, slots=True)
class NameChoice:
    """The caller's decision: a manifest to restore and its name, or a manifest to drop.

    `drop` is the ULID of a manifest, or a name whose ref object does not point to a manifest.
    """

    restore: str | None = None
    name: str | None = None
    tag: bool = False
    drop: str | None = None

    def check(self) -> None:
        """Raise an error if the options contradict one another."""
        if self.restore is not None and self.drop is not None:
            raise UsageError(reason="'restore' and 'drop' are mutually exclusive")
        if self.restore is None and (self.name is not None or self.tag):
            raise UsageError(reason="'name' and 'tag' can be used only with 'restore'")


def repair_names(
    store: Store, choice: NameChoice, *, confirm: bool, actor: str | None = None
) -> tuple[NameRepair, ...]:
    """Restore every known name, and apply the caller's choice for other manifests."""
    choice.check()
    all_unnamed, ref_names = find_manifests_without_ref(store)
    repairable = [manifest for manifest in all_unnamed if manifest.status not in ("never_named", "unreadable")]
    repair_run = _NameRepairRun(store, choice, confirm, actor, ref_names)
    name_repairs = [
        repair_run.repair_manifest(manifest, _is_name_unique(manifest, repairable)) for manifest in repairable
    ]
    name_repairs += repair_run.repair_refs({(manifest.kind, manifest.name) for manifest in repairable})
    repair_run.check_choice_used()
    return tuple(name_repairs)


def _is_name_unique(manifest: UnnamedManifest, manifests: list[UnnamedManifest]) -> bool:
    return Counter((candidate.kind, candidate.name) for candidate in manifests)[manifest.kind, manifest.name] == 1


@dataclass(slots=True)
class _NameRepairRun:
    """The state of one name repair."""

    store: Store
    choice: NameChoice
    confirm: bool
    actor: str | None
    ref_names: RefListing
    choice_used: bool = False

    def repair_manifest(self, manifest: UnnamedManifest, is_name_unique: bool) -> NameRepair:
        """Restore the name of one manifest, or close or drop the manifest. If this is not possible, report why."""
        name_repair = NameRepair(
            manifest.directory, manifest.status, manifest.kind, manifest.name, manifest.commit_id, "no_op"
        )
        choice = self.choice
        if choice.drop == manifest.ulid:
            self.choice_used = True
            return self._apply_action(name_repair, "dropped", lambda: self._close_manifest(manifest, "drop_branch"))
        if choice.restore == manifest.ulid:
            self.choice_used = True
            kind: RefKind = "tag" if choice.tag else manifest.kind or "branch"
            name_repair = replace(name_repair, kind=kind, name=choice.name or manifest.name)
            return self._apply_action(
                name_repair, "restored", lambda: self._restore_name(manifest, name_repair.name, kind)
            )
        if choice.restore is not None or choice.drop is not None:
            return name_repair
        if manifest.status == "closing_lost":
            return self._apply_action(name_repair, "closed", lambda: self._close_manifest(manifest, "close_branch"))
        if manifest.name is None or manifest.kind is None or not is_name_unique:
            cause = "the name is unknown" if is_name_unique else "several manifests had this name"
            advice = f"{cause}: pass restore={manifest.ulid} and a name, or drop={manifest.ulid}"
            return replace(name_repair, action="refused" if self.confirm else "preview", reason=advice)
        return self._apply_action(
            name_repair, "restored", lambda: self._restore_name(manifest, manifest.name, manifest.kind)
        )

    def repair_refs(self, repaired_names: set[tuple[RefKind | None, str | None]]) -> Iterator[NameRepair]:
        """Repair refs that point to no manifest because the ref is damaged or the manifest is missing."""
        for damaged_ref in self.ref_names.damaged_refs:
            kind = refs.ref_kind_of(damaged_ref.ref_directory)
            if (kind, damaged_ref.name) in repaired_names and self.choice.drop != damaged_ref.name:
                continue  # the ref points to an existing manifest
            yield self._repair_damaged_ref(damaged_ref, "ref_damaged", kind)
        if self.choice.drop is None or self.choice_used:
            return
        for ref_directory in REF_DIRECTORIES:
            number = self.ref_names.highest_numbers[ref_directory].get(self.choice.drop, 0)
            ref = self._read_ref(self.choice.drop, number, ref_directory)
            if ref is not None and not manifest_exists(self.store, ref.ulid):
                dangling = DamagedRef(ref_directory, ref.name, number, "the manifest is missing")
                yield self._repair_damaged_ref(dangling, "manifest_missing", refs.ref_kind_of(ref_directory))

    def _read_ref(self, ref_name: str, number: int, ref_directory: str) -> Ref | None:
        is_damaged = any(
            (damaged_ref.name, damaged_ref.ref_directory) == (ref_name, ref_directory)
            for damaged_ref in self.ref_names.damaged_refs
        )
        return None if is_damaged or not number % 2 else refs.read_ref(self.store, ref_name, number, ref_directory)

    def _repair_damaged_ref(self, damaged_ref: DamagedRef, status: str, kind: RefKind) -> NameRepair:
        name_repair = NameRepair(
            damaged_ref.object_name, status, kind, damaged_ref.name, None, "no_op", damaged_ref.reason
        )
        if self.choice.drop == damaged_ref.name:
            self.choice_used = True
            return self._apply_action(
                replace(name_repair, reason=None), "dropped", lambda: self._close_name(damaged_ref)
            )
        advice = f"the manifest is unknown: pass restore=ULID and name={damaged_ref.name},"
        advice += f" or drop={damaged_ref.name}"
        return replace(name_repair, action="refused" if self.confirm else "preview", reason=advice)

    def check_choice_used(self) -> None:
        """Raise an error if the choice does not match anything that needs repair."""
        target = self.choice.restore or self.choice.drop
        if target is not None and not self.choice_used:
            raise InputError(
                f"no lost or damaged branch or tag matches '{target}'",
                reason="unknown manifest",
                hint="run `omnigraph repair` to list the names that need repair",
            )

    def _apply_action(self, name_repair: NameRepair, action: NameAction, apply_change: Any) -> NameRepair:
        if not self.confirm:
            return replace(name_repair, action="preview", reason=f"would be {action}")
        try:
            apply_change()
        except OmnigraphError as error:
            if error.effect != "none":
                raise
            return replace(name_repair, action="refused", reason=error.message)
        return replace(name_repair, action=action)

    def _restore_name(self, manifest: UnnamedManifest, name: str | None, kind: RefKind | None) -> None:
        if name is None or kind is None or manifest.manifest is None:
            raise InputError(f"{manifest.directory} requires a name", reason="unknown name")
        # A name that the manifest already had stays valid, even if it violates the rules for new names.
        valid_name = name if name == manifest.name else name_conflicts.check_new_ref_name(name, kind)
        ref = self._next_ref(manifest, valid_name, kind)
        check_head_not_queued(self.store, manifest.manifest.state, manifest.manifest.state.head.commit_id)
        refs.create_ref_object(self.store, ref, _ref_facts(manifest, kind))
        self._check_name_conflicts(ref)
        self._record_event("restore_name", ref.name, manifest.commit_id)

    def _next_ref(self, manifest: UnnamedManifest, name: str, kind: RefKind) -> Ref:
        """Return the ref to write. Its number is higher than all known ref numbers for the name."""
        ref_directory = layout.TAGS if kind == "tag" else layout.REFS
        damaged_refs = [
            damaged_ref
            for damaged_ref in self.ref_names.damaged_refs
            if (damaged_ref.ref_directory, damaged_ref.name) == (ref_directory, name)
        ]
        if damaged_refs:
            number = damaged_refs[0].number + 2
        elif kind == "tag":
            number = free_tag_number(self.store, name)
        else:
            number = next_ref_number(self.store, name)
        origin = manifest.manifest.state.origin if manifest.manifest is not None else None
        if origin is not None and (origin.name, origin.ref_directory) == (name, ref_directory):
            number = max(number, origin.number)
        fork = manifest.manifest.state.head.fork if manifest.manifest is not None else None
        return Ref(name, manifest.ulid, number, origin.parent if origin is not None else None, fork, ref_directory)

    def _check_name_conflicts(self, ref: Ref) -> None:
        """Withdraw the ref if its name conflicts with another name, or if the manifest already has a different name."""
        current_names = list_refs_consistently(self.store)
        try:
            if ref.directory == layout.REFS:
                ref_numbers = current_names.highest_numbers[ref.directory]
                name_conflicts.check_disjoint(ref.name, conflicting_names(self.store, ref.name, ref_numbers))
            self._check_only_name(ref, current_names)
        except AlreadyExists:
            refs.withdraw_name(self.store, ref, clock_and_ids.new_ulid())
            raise

    def _check_only_name(self, ref: Ref, current_names: RefListing) -> None:
        for ref_directory in REF_DIRECTORIES:
            for ref_name, number in current_names.highest_numbers[ref_directory].items():
                other_ref = self._read_ref(ref_name, number, ref_directory)
                if other_ref is not None and other_ref.ulid == ref.ulid and other_ref != ref:
                    ref_kind = refs.ref_kind_of(ref_directory)
                    message = f"{ref_kind} '{ref_name}' already refers to this manifest"
                    raise AlreadyExists(message, branch=ref_name)

    def _close_manifest(self, manifest: UnnamedManifest, operation: str) -> None:
        publish_closing_version(self.store, branch_state_of(self.store, manifest.label, manifest.ulid))
        self._record_event(operation, manifest.label, manifest.commit_id)

    def _close_name(self, damaged_ref: DamagedRef) -> None:
        tombstone_path = layout.ref_name(damaged_ref.name, damaged_ref.number + 1, damaged_ref.ref_directory)
        self.store.objects.create_json(tombstone_path, {"deleted": None, "nonce": "dropped"})
        self._record_event("drop_name", damaged_ref.name, None)

    def _record_event(self, operation: str, branch: str, commit_id: str | None) -> None:
        record_repair_event(self.store, operation, branch, commit_id, self.actor)


def record_repair_event(store: Store, operation: str, branch: str, commit_id: str | None, actor: str | None) -> None:
    """Write the audit object for a repair that creates no commit."""
    event_id, created_at = clock_and_ids.new_ulid(), clock_and_ids.now_micros()
    outcome = RecoveryRecord(event_id, "repaired", operation, branch, actor, commit_id, created_at)
    store.objects.create_json(f"{layout.AUDIT}/{event_id}.json", outcome.to_json())


def _ref_facts(manifest: UnnamedManifest, kind: RefKind) -> dict[str, Any]:
    """Return the members of a restored ref. Concurrent repairs must return identical members."""
    facts: dict[str, Any] = {"nonce": f"restored-{manifest.ulid}"}
    origin = manifest.manifest.state.origin if manifest.manifest is not None else None
    if kind == "tag" and origin is not None:
        facts |= {"created_at": origin.created_at, "actor_id": origin.actor}
        facts |= {"message": origin.message}
    return facts
