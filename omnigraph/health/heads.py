"""Every branch and tag with its newest readable state.

Owns the findings about refs and manifests. A state that cannot be read is reported, and the newest
older one that can is used instead.
"""

from dataclasses import dataclass

from omnigraph.errors import GraphNotInitialized, OmnigraphError, StorageError
from omnigraph.history import refs
from omnigraph.history.manifest import Opened, manifest_exists, read_manifest
from omnigraph.history.refs import Ref
from omnigraph.history.remains import graph_trace
from omnigraph.storage import layout
from omnigraph.storage.head import attached_versions
from omnigraph.storage.store import Store

from .finding import Finding

RESTORE = "restore the file from a backup, or continue from the newest readable commit"


@dataclass(frozen=True, slots=True)
class Head:
    """A branch or tag and the state it shows; `is_newest` unless an older state had to be used."""

    ref: Ref
    opened: Opened
    newest: bool = True

    @property
    def label(self) -> str:
        """The name of the branch or tag, as findings show it."""
        return label(self.ref)


def label(ref: Ref) -> str:
    """Return the name of a branch, or `tag NAME` for a tag."""
    return ref.name if ref.place == layout.REFS else f"tag {ref.name}"


def read_heads(store: Store, found: list[Finding]) -> list[Head]:
    """Read every branch and tag; faults are appended to `findings`."""
    if not manifest_exists(store) and graph_trace(store) is None:
        raise GraphNotInitialized(f"no graph at {store.root.uri}")
    heads = [_read(store, ref, found) for ref in _names(store, found)]
    return [one for one in heads if one is not None and not one.opened.state.head.closed]


def read_again(store: Store, head: Head) -> Head | None:
    """Read a head again; None when the ref was deleted, unchanged when it cannot be read."""
    ref = head.ref
    numbered = ref == refs.MAIN_REF or refs.highest_number(store, ref.name, ref.place) == ref.number
    if not numbered:
        return None
    try:
        opened = read_manifest(store, ref.ulid)
    except OmnigraphError:
        return head
    return None if opened.state.head.closed else Head(ref, opened)


def _names(store: Store, found: list[Finding]) -> list[Ref]:
    every = [refs.MAIN_REF]
    for place in (layout.REFS, layout.TAGS):
        for name, number in sorted(refs.list_numbers(store, place).items()):
            try:
                ref = refs.read_ref(store, name, number, place) if number % 2 else None
            except StorageError as error:
                where = layout.ref_name(name, number, place)
                at = label(Ref(name, "", place=place))
                hint = error.hint or RESTORE
                found.append(Finding("ref", error.message, branch=at, name=where, hint=hint))
                continue
            every += [ref] if ref is not None else []
    return every


def _read(store: Store, ref: Ref, found: list[Finding]) -> Head | None:
    try:
        return Head(ref, read_manifest(store, ref.ulid))
    except OmnigraphError as error:
        if refs.highest_number(store, ref.name, ref.place) != ref.number:
            return None  # deleted since it was listed
        place = layout.manifest_directory(ref.ulid)
        message = error.message if not isinstance(error, GraphNotInitialized) else "it is missing"
        found.append(Finding("manifest", message, branch=label(ref), name=place, hint=RESTORE))
    return _older(store, ref)


def _older(store: Store, ref: Ref) -> Head | None:
    """Return the newest state of a branch that can still be read."""
    place = layout.manifest_directory(ref.ulid)
    for version in reversed(attached_versions(store, place)):
        try:
            return Head(ref, read_manifest(store, ref.ulid, version), newest=False)
        except OmnigraphError:
            continue
    return None
