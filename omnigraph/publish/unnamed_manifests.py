"""Find manifests below `__branches/` that are not closed although no current ref points to them, and determine why.

A crashed creation leaves behind a manifest without a ref, which is garbage. Any other manifest without a ref has lost
its ref object or its closing version. This module never writes. Callers decide what to do with these manifests.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from omnigraph.errors import GraphNotInitialized, StorageError
from omnigraph.history import refs
from omnigraph.history.manifest import LoadedManifest, read_manifest
from omnigraph.history.origin_record import RefKind
from omnigraph.storage import layout
from omnigraph.storage.failures import DamagedError
from omnigraph.storage.layout import intent_name
from omnigraph.storage.store import Store
from omnigraph.storage.torn_versions import TornVersionError

from . import intent as intents
from .intent import PendingIntent
from .rename import RENAME

REF_DIRECTORIES = (layout.REFS, layout.TAGS)
_MAX_LISTINGS = 10
UnnamedStatus = Literal["never_named", "ref_lost", "closing_lost", "unknown", "unreadable"]


@dataclass(frozen=True, slots=True)
class UnnamedManifest:
    """A manifest that is not closed although no current ref points to it.

    The status `never_named` means that the manifest is garbage, and `ref_lost` means that its ref object was lost.
    `closing_lost` means that the branch or tag was deleted, but the version that closed it is missing. `unknown` means
    that nothing was ever published to the manifest and that it is unknown whether the manifest had a name, for example
    because an older release created it. `unreadable` means that the manifest could not be read, as `reason` explains.
    """

    ulid: str
    status: UnnamedStatus
    manifest: LoadedManifest | None = field(default=None, repr=False)
    kind: RefKind | None = None
    name: str | None = None
    reason: str = ""

    @property
    def directory(self) -> str:
        """The manifest's directory."""
        return layout.manifest_directory(self.ulid)

    @property
    def label(self) -> str:
        """The label of the branch or tag in reports: its name, or its ULID if the name is unknown."""
        return f"tag {self.name or self.ulid}" if self.kind == "tag" else self.name or self.ulid

    @property
    def commit_id(self) -> str | None:
        """The head commit."""
        return self.manifest.state.head.commit_id if self.manifest is not None else None

    def to_json(self) -> dict[str, Any]:
        """Return the manifest as JSON-compatible data for reports."""
        return {
            "manifest": self.directory,
            "status": self.status,
            "kind": self.kind,
            "name": self.name,
            "graph_commit_id": self.commit_id,
        }


@dataclass(frozen=True, slots=True)
class DamagedRef:
    """A ref object that is the current one for a name in use, but is damaged and cannot be parsed."""

    ref_directory: str
    name: str
    number: int
    reason: str

    @property
    def object_name(self) -> str:
        """The name of the ref object."""
        return layout.ref_name(self.name, self.number, self.ref_directory)


@dataclass(frozen=True, slots=True)
class RefListing:
    """All refs at one point in time: each name's highest number, the ULIDs of named manifests, and damaged refs."""

    highest_numbers: Mapping[str, Mapping[str, int]]
    named_ulids: frozenset[str]
    damaged_refs: tuple[DamagedRef, ...]


def find_manifests_without_ref(
    store: Store, ulids: Iterable[str] | None = None
) -> tuple[list[UnnamedManifest], RefListing]:
    """Return the manifests that are not closed although no name points to them, and the listed refs.

    By default, all manifests below `__branches/` are checked. The order of the listings matters, because other
    operations may be running. A creation writes its intent before the manifest, and removes the intent after it has
    claimed the name. A deletion closes the manifest before it releases the name. Listing manifests first, then intents,
    and then names ensures that a live branch is never mistaken for a lost one.
    """
    existing_ulids = sorted(list_manifest_ulids(store) if ulids is None else ulids)
    busy_ulids = _busy_ulids(store)
    ref_listing = list_refs_consistently(store)
    candidates = [ulid for ulid in existing_ulids if ulid not in busy_ulids and ulid not in ref_listing.named_ulids]
    unclosed = [
        unclosed_manifest for ulid in candidates if (unclosed_manifest := _read_open_manifest(store, ulid)) is not None
    ]
    if not unclosed:
        return [], ref_listing
    ref_objects = _read_ref_objects(store)
    classified = [_classify(store, unnamed, ref_objects) for unnamed in unclosed if not _is_pending(store, unnamed)]
    return classified, ref_listing


def list_manifest_ulids(store: Store) -> set[str]:
    """Return the ULIDs of all manifests below `__branches/` that have at least one version, using a single listing."""
    path_parts = (listed_file.name.split("/") for listed_file in store.objects.list(layout.BRANCHES))
    return {parts[1] for parts in path_parts if len(parts) > 3 and parts[2] == "_versions"}


def _busy_ulids(store: Store) -> set[str]:
    """Return the ULIDs of branches and tags that pending or set-aside intents create or rename."""
    intent_listing = intents.list_intents(store)
    waiting_intents = [
        *intent_listing.pending,
        *(listed_intent.listed_intent for listed_intent in intent_listing.set_aside),
    ]
    known_intents = [
        listed_intent.intent for listed_intent in waiting_intents if isinstance(listed_intent, PendingIntent)
    ]
    created_ulids = {
        listed_intent.created_ulid for listed_intent in known_intents if listed_intent.created_ulid is not None
    }
    return created_ulids | {
        listed_intent.branch_ulid for listed_intent in known_intents if listed_intent.operation == RENAME
    }


def list_refs_consistently(store: Store) -> RefListing:
    """List the refs as of one point in time by repeating the listing until two in a row are equal."""
    previous_numbers: dict[str, dict[str, int]] = {}
    for _ in range(_MAX_LISTINGS):
        highest_numbers = {
            ref_directory: refs.list_highest_numbers(store, ref_directory) for ref_directory in REF_DIRECTORIES
        }
        if highest_numbers == previous_numbers:
            break
        previous_numbers = highest_numbers
    named_ulids, damaged_refs = set[str](), list[DamagedRef]()
    for ref_directory in REF_DIRECTORIES:
        for ref_name, ref_number in sorted(highest_numbers[ref_directory].items()):
            try:
                ref = refs.read_ref(store, ref_name, ref_number, ref_directory) if ref_number % 2 else None
            except DamagedError as error:
                damaged_refs.append(DamagedRef(ref_directory, ref_name, ref_number, error.message))
                continue
            named_ulids |= {ref.ulid} if ref is not None else set()
    return RefListing(highest_numbers, frozenset(named_ulids), tuple(damaged_refs))


def _read_open_manifest(store: Store, ulid: str) -> UnnamedManifest | None:
    """Read a manifest, or return None if it is closed or was torn by a power loss. A torn manifest was never named."""
    try:
        manifest = read_manifest(store, ulid)
    except (GraphNotInitialized, TornVersionError):
        return None
    except StorageError as error:
        return UnnamedManifest(ulid, "unreadable", reason=error.message)
    return None if manifest.state.head.closed else UnnamedManifest(ulid, "unknown", manifest)


@dataclass(frozen=True, slots=True)
class _RefObject:
    """A readable ref object, either current or superseded."""

    ref_directory: str
    name: str
    number: int
    facts: Mapping[str, Any]


def _read_ref_objects(store: Store) -> list[_RefObject]:
    """Read all current and superseded ref objects, skipping damaged objects."""
    ref_objects: list[_RefObject] = []
    for ref_directory in REF_DIRECTORIES:
        for listed_file in store.objects.list(ref_directory):
            name_and_number = layout.parse_ref_name(listed_file.name, ref_directory)
            try:
                members = store.objects.read_json(listed_file.name) if name_and_number is not None else None
            except StorageError:
                continue  # a damaged ref object is reported under its name
            if name_and_number is not None and members is not None:
                ref_objects.append(_RefObject(ref_directory, *name_and_number, members))
    return ref_objects


def _classify(store: Store, unnamed: UnnamedManifest, ref_objects: Sequence[_RefObject]) -> UnnamedManifest:
    """Determine why no name points to a manifest that is not closed."""
    if unnamed.manifest is None:
        return unnamed
    state, ulid = unnamed.manifest.state, unnamed.ulid
    own_refs = [ref for ref in ref_objects if ulid in (ref.facts.get("ulid"), ref.facts.get("deleted"))]
    was_published = unnamed.manifest.version > 1 or state.head.commit_id != state.head.fork
    origin = state.origin
    ref_kind: RefKind | None = origin.kind if origin is not None else "branch" if was_published else None
    ref_kind = ref_kind or (refs.ref_kind_of(own_refs[0].ref_directory) if own_refs else None)
    last_name = _last_name(unnamed.manifest, own_refs)
    if _was_deleted(ulid, last_name, own_refs):
        return UnnamedManifest(ulid, "closing_lost", unnamed.manifest, ref_kind, last_name)
    if was_published or own_refs:
        return UnnamedManifest(ulid, "ref_lost", unnamed.manifest, ref_kind, last_name)
    if origin is None:
        return UnnamedManifest(ulid, "unknown", unnamed.manifest)
    status = _classify_by_audit(store, origin.operation_id)
    return UnnamedManifest(ulid, status, unnamed.manifest, None if status == "unknown" else ref_kind, last_name)


def _last_name(manifest: LoadedManifest, own_refs: Sequence[_RefObject]) -> str | None:
    """Return a manifest's last known name, or None after a rename to an unknown name."""
    state = manifest.state
    rename_refs = [ref for ref in own_refs if str(ref.facts.get("nonce")).startswith("renamed-")]
    latest_rename = max(rename_refs, key=lambda ref: str(ref.facts["nonce"]), default=None)
    if latest_rename is not None and latest_rename.facts.get("renamed_to"):
        return str(latest_rename.facts["renamed_to"])
    known_names = [commit.branch for commit in state.tail if commit.id == state.head.commit_id != state.head.fork]
    known_names += [state.origin.name] if state.origin is not None else []
    known_names += [ref.name for ref in own_refs]
    former_names = {ref.name for ref in rename_refs}  # older releases did not record the new name
    return next((name for name in known_names if name is not None and name not in former_names), None)


def _was_deleted(ulid: str, last_name: str | None, own_refs: Sequence[_RefObject]) -> bool:
    """Return whether a deletion released a manifest's last name.

    Only the last name counts, because a failed rename releases the new name in the same way as a deletion.
    """
    deletion_nonce = f"deleted-{ulid}"
    return any(ref.name == last_name and ref.facts.get("nonce") == deletion_nonce for ref in own_refs)


def _is_pending(store: Store, unnamed: UnnamedManifest) -> bool:
    """Return whether the intent that created a manifest still exists, which means that the creation is unfinished."""
    origin = unnamed.manifest.state.origin if unnamed.manifest is not None else None
    return origin is not None and store.objects.read(intent_name(origin.operation_id)) is not None


def _classify_by_audit(store: Store, operation_id: str) -> UnnamedStatus:
    """Classify a manifest by the audit record for its creation.

    Only a discarded creation is guaranteed not to have claimed a name. A dropped creation may have been completed
    before its record was damaged.
    """
    try:
        audit_record = store.objects.read_json(f"{layout.AUDIT}/{operation_id}.json")
    except StorageError:
        return "unknown"
    outcome_kind = audit_record.get("recovery_kind") if audit_record is not None else None
    if outcome_kind == "discarded":
        return "never_named"
    return "ref_lost" if outcome_kind in (None, "finished") else "unknown"
