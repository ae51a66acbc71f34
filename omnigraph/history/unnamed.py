"""Open manifests below `__branches/` that no open ref references, and why.

A crashed creation leaves such a manifest: it was never named and is garbage. Any other one has lost
its ref object or its closing version. This module only reads; callers decide what to do.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from omnigraph.errors import GraphNotInitialized, StorageError
from omnigraph.storage import layout
from omnigraph.storage.failures import DamagedError
from omnigraph.storage.layout import intent_name
from omnigraph.storage.store import Store
from omnigraph.storage.torn import TornError

from . import intent as intents
from . import refs
from .intent import Pending
from .manifest import Opened, read_manifest
from .origin import RefKind
from .rename import RENAME

PLACES = (layout.REFS, layout.TAGS)
_LISTINGS = 10
Status = Literal["never_named", "ref_lost", "closing_lost", "unknown", "unreadable"]


@dataclass(frozen=True, slots=True)
class Unnamed:
    """An open manifest without a name.

    `never_named` is garbage. `ref_lost` had a name. `closing_lost` was deleted, but the version
    that closed it is missing. `unknown` was never written to, and nothing tells whether it had a
    name: an older release created it, or the record of its creation is lost.
    """

    ulid: str
    status: Status
    opened: Opened | None = field(default=None, repr=False)
    kind: RefKind | None = None
    name: str | None = None
    reason: str = ""

    @property
    def directory(self) -> str:
        """The directory of the manifest."""
        return layout.manifest_directory(self.ulid)

    @property
    def label(self) -> str:
        """How findings refer to the branch or tag: by name, or else by ULID."""
        return f"tag {self.name or self.ulid}" if self.kind == "tag" else self.name or self.ulid

    @property
    def commit_id(self) -> str | None:
        """The head commit."""
        return self.opened.state.head.commit_id if self.opened is not None else None

    def to_json(self) -> dict[str, Any]:
        """Return the manifest as reports show it."""
        return {
            "manifest": self.directory,
            "status": self.status,
            "kind": self.kind,
            "name": self.name,
            "graph_commit_id": self.commit_id,
        }


@dataclass(frozen=True, slots=True)
class DamagedRef:
    """The highest ref object of a name, which opens it but cannot be parsed."""

    place: str
    name: str
    number: int
    reason: str

    @property
    def path(self) -> str:
        """The name of the ref object."""
        return layout.ref_name(self.name, self.number, self.place)


@dataclass(frozen=True, slots=True)
class Names:
    """All refs at one moment: highest numbers, ULIDs of open names, damaged ref objects."""

    numbers: Mapping[str, Mapping[str, int]]
    ulids: frozenset[str]
    damaged: tuple[DamagedRef, ...]


def find_unnamed(store: Store, ulids: Iterable[str] | None = None) -> tuple[list[Unnamed], Names]:
    """Return every open manifest, of those given, that no name leads to, and the refs as listed.

    The reading order matters with live operations: a creation arms its intent before it writes
    the manifest and removes the intent after naming it; a deletion closes the manifest before the
    name. Listing manifests, then intents, then names never takes a live branch for a lost one.
    """
    existing = sorted(branch_ulids(store) if ulids is None else ulids)
    busy = _busy_ulids(store)
    names = read_names(store)
    candidates = [ulid for ulid in existing if ulid not in busy and ulid not in names.ulids]
    unclosed = [found for ulid in candidates if (found := _read_open(store, ulid)) is not None]
    if not unclosed:
        return [], names
    ref_objects = _read_ref_objects(store)
    judged = [_judge(store, one, ref_objects) for one in unclosed if not _is_pending(store, one)]
    return judged, names


def branch_ulids(store: Store) -> set[str]:
    """List the manifests below `__branches/` that have a version; costs one listing."""
    found = (one.name.split("/") for one in store.objects.list(layout.BRANCHES))
    return {parts[1] for parts in found if len(parts) > 3 and parts[2] == "_versions"}


def _busy_ulids(store: Store) -> set[str]:
    """Return the ULIDs that an intent is about to name or rename, including intents set aside."""
    listed = intents.listing(store)
    waiting = [*listed.pending, *(one.kept for one in listed.set_aside)]
    known = [one.intent for one in waiting if isinstance(one, Pending)]
    created = {one.creates for one in known if one.creates is not None}
    return created | {one.branch_ulid for one in known if one.operation == RENAME}


def read_names(store: Store) -> Names:
    """List the refs at one moment: two equal listings in a row prove that nothing changed."""
    before: dict[str, dict[str, int]] = {}
    for _ in range(_LISTINGS):
        numbers = {place: refs.list_numbers(store, place) for place in PLACES}
        if numbers == before:
            break
        before = numbers
    ulids, damaged = set[str](), list[DamagedRef]()
    for place in PLACES:
        for name, number in sorted(numbers[place].items()):
            try:
                ref = refs.read_ref(store, name, number, place) if number % 2 else None
            except DamagedError as error:
                damaged.append(DamagedRef(place, name, number, error.message))
                continue
            ulids |= {ref.ulid} if ref is not None else set()
    return Names(numbers, frozenset(ulids), tuple(damaged))


def _read_open(store: Store, ulid: str) -> Unnamed | None:
    """Read a manifest unless it is closed; one torn by a power loss was never named."""
    try:
        opened = read_manifest(store, ulid)
    except (GraphNotInitialized, TornError):
        return None
    except StorageError as error:
        return Unnamed(ulid, "unreadable", reason=error.message)
    return None if opened.state.head.closed else Unnamed(ulid, "unknown", opened)


@dataclass(frozen=True, slots=True)
class _RefObject:
    """One ref object, of any number, that can be parsed."""

    place: str
    name: str
    number: int
    facts: Mapping[str, Any]


def _read_ref_objects(store: Store) -> list[_RefObject]:
    """Read all ref objects, including superseded numbers."""
    found: list[_RefObject] = []
    for place in PLACES:
        for one in store.objects.list(place):
            parsed = layout.parse_ref_name(one.name, place)
            try:
                facts = store.objects.read_json(one.name) if parsed is not None else None
            except StorageError:
                continue  # damaged; reported under its name
            if parsed is not None and facts is not None:
                found.append(_RefObject(place, *parsed, facts))
    return found


def _judge(store: Store, one: Unnamed, ref_objects: Sequence[_RefObject]) -> Unnamed:
    """Find out why no name leads to an open manifest."""
    if one.opened is None:
        return one
    state, ulid = one.opened.state, one.ulid
    mine = [ref for ref in ref_objects if ulid in (ref.facts.get("ulid"), ref.facts.get("deleted"))]
    published = one.opened.version > 1 or state.head.commit_id != state.head.fork
    origin = state.origin
    kind: RefKind | None = origin.kind if origin is not None else "branch" if published else None
    kind = kind or (refs.kind_of(mine[0].place) if mine else None)
    name = _last_name(one.opened, mine)
    if _was_deleted(ulid, name, mine):
        return Unnamed(ulid, "closing_lost", one.opened, kind, name)
    if published or mine:
        return Unnamed(ulid, "ref_lost", one.opened, kind, name)
    if origin is None:
        return Unnamed(ulid, "unknown", one.opened)
    status = _by_audit(store, origin.operation_id)
    return Unnamed(ulid, status, one.opened, None if status == "unknown" else kind, name)


def _last_name(opened: Opened, mine: Sequence[_RefObject]) -> str | None:
    """Return the last known name of a manifest; None after a rename to an unknown name."""
    state = opened.state
    renames = [ref for ref in mine if str(ref.facts.get("nonce")).startswith("renamed-")]
    latest = max(renames, key=lambda ref: str(ref.facts["nonce"]), default=None)
    if latest is not None and latest.facts.get("renamed_to"):
        return str(latest.facts["renamed_to"])
    known = [one.branch for one in state.tail if one.id == state.head.commit_id != state.head.fork]
    known += [state.origin.name] if state.origin is not None else []
    known += [ref.name for ref in mine]
    former = {ref.name for ref in renames}  # older releases did not record the new name
    return next((name for name in known if name is not None and name not in former), None)


def _was_deleted(ulid: str, name: str | None, mine: Sequence[_RefObject]) -> bool:
    """Whether the last name was closed by a deletion, which closes the manifest first.

    A failed rename closes the new name in the same way, so any other name proves nothing.
    """
    nonce = f"deleted-{ulid}"
    return any(ref.name == name and ref.facts.get("nonce") == nonce for ref in mine)


def _is_pending(store: Store, one: Unnamed) -> bool:
    """Whether the intent of its creation still exists: then recovery has not ended it yet."""
    origin = one.opened.state.origin if one.opened is not None else None
    return origin is not None and store.objects.read(intent_name(origin.operation_id)) is not None


def _by_audit(store: Store, operation_id: str) -> Status:
    """Classify a manifest by the audit record of its creation.

    Only a discarded creation is known to have named nothing. A dropped one may have been carried
    out before its record was damaged.
    """
    try:
        facts = store.objects.read_json(f"{layout.AUDIT}/{operation_id}.json")
    except StorageError:
        return "unknown"
    kind = facts.get("recovery_kind") if facts is not None else None
    if kind == "discarded":
        return "never_named"
    return "ref_lost" if kind in (None, "finished") else "unknown"
