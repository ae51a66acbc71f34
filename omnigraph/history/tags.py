"""Tags: names for single commits that stay readable whatever happens to branches.

A tag is stored like a branch: a manifest of its own behind a numbered name. It is never published
to again. Deleting it closes its manifest first, so a crashed creation cannot bring the tag back.
"""

import logging
from contextlib import suppress
from dataclasses import dataclass

from omnigraph import ids
from omnigraph.errors import AlreadyExists, GraphNotInitialized, NotFound, SnapshotNotFound
from omnigraph.storage import layout
from omnigraph.storage.failures import DamagedError, reported
from omnigraph.storage.store import Store

from . import branches, names, refs
from .intent import Intent
from .line import Line, line_of
from .log import Log
from .manifest import Opened, read_manifest
from .missing import missing_manifest
from .refs import Ref
from .snapshot import Snapshot, find_commit

_log = logging.getLogger("omnigraph")


@dataclass(frozen=True, slots=True)
class Tag:
    """A named commit: the branch it was found on, and who tagged it, when and why."""

    name: str
    commit_id: str
    branch: str | None
    ulid: str
    created_at: int = 0
    actor: str | None = None
    message: str | None = None


def create_tag(
    store: Store,
    name: str,
    source: Line,
    *,
    commit_id: str | None = None,
    actor: str | None = None,
    message: str | None = None,
) -> Tag:
    """Tag the head of a branch, or a past commit of any branch.

    Raises `HistoryReclaimed` for a commit whose state was cleaned up.
    """
    text = names.check_new(name, "tag")
    with reported("none"):
        number = free_tag_number(store, text)
        if commit_id is not None:
            source = line_with(store, source, commit_id)

        def intend(base: str) -> Intent:
            return _intent(text, source, base, actor, message)

        intent, state = branches.armed(store, source, commit_id, intend)
    line = branches.carry_out(store, intent, state, number)
    created = intent.created_at
    return Tag(text, intent.base_commit, source.name, line.ulid, created, actor, message)


def line_with(store: Store, line: Line, commit_id: str) -> Line:
    """Find the branch whose log has a commit, this one first; or a tag that alone keeps it.

    The state of a tag carries the name of the branch it was created from; nothing publishes to it.
    """
    try:
        return find_commit(store, line, commit_id)[0]
    except SnapshotNotFound:
        for tag in list_tags(store):
            with suppress(NotFound):  # deleted since the listing
                ref = refs.find_ref(store, tag.name, layout.TAGS)
                if Log(store, _opened(store, ref).state).find(commit_id) is not None:
                    return line_of(store, tag.branch or layout.MAIN, tag.ulid)
        raise


def list_tags(store: Store) -> list[Tag]:
    """List all tags by name: one listing, one read each. Damaged ref objects are only logged."""
    numbers = refs.list_numbers(store, layout.TAGS)
    found = [_readable(store, name, number) for name, number in numbers.items() if number % 2]
    return sorted((one for one in found if one is not None), key=lambda one: one.name)


def _readable(store: Store, name: str, number: int) -> Tag | None:
    try:
        return _read(store, name, number)
    except DamagedError as error:
        _log.warning("tag '%s' was skipped: %s", name, error.message)
        return None


def find_tag(store: Store, name: str) -> Tag:
    """Find a tag by name; raise `NotFound` if there is none."""
    text = names.clean(name, "tag")
    number = refs.highest_number(store, text, layout.TAGS)
    found = _read(store, text, number) if number % 2 else None
    if found is None:
        raise refs.missing(text, layout.TAGS, refs.known_names(store, layout.TAGS))
    return found


def open_tag(store: Store, name: str) -> Snapshot:
    """Open the snapshot of a tag; a cleanup never removes what a tag references."""
    return shown_by(store, refs.find_ref(store, names.clean(name, "tag"), layout.TAGS))


def shown_by(store: Store, ref: Ref) -> Snapshot:
    """Open the snapshot behind the ref of a tag."""
    opened = _opened(store, ref)
    head, state = opened.state.head.commit_id, opened.state
    log = Log(store, state)
    version = log.get(head).manifest_version
    branch = ref.parent or layout.MAIN
    return Snapshot(store, branch, head, version, state.schema, dict(state.tables), log)


def delete_tag(store: Store, name: str) -> None:
    """Delete a tag; its commit stays while branches, other tags or its age retain it."""
    branches.close_ref(store, refs.find_ref(store, names.clean(name, "tag"), layout.TAGS))


def _opened(store: Store, ref: Ref) -> Opened:
    """Load the manifest behind a ref; finish a deletion that crashed before it closed the name."""
    try:
        opened = read_manifest(store, ref.ulid)
    except GraphNotInitialized as error:
        raise missing_manifest(store, ref) from error
    if opened.state.head.closed:
        if not store.effects.read_only:
            refs.release(store, ref)
        raise refs.missing(ref.name, ref.place)
    return opened


def free_tag_number(store: Store, name: str) -> int:
    """Return the number to create a tag under; close a name that a crashed deletion left open."""
    numbers = refs.list_numbers(store, layout.TAGS)
    number = numbers.get(name, 0)
    if number % 2 and _stands(store, name, number):
        raise AlreadyExists(f"tag '{name}' already exists", what=f"tag '{name}'")
    open_names = (other for other, number in numbers.items() if number % 2)
    variant = names.find_case_variant(name, open_names)
    if variant is not None and _stands(store, variant, numbers[variant]):
        message = f"tag '{name}' differs only in case from tag '{variant}'"
        raise AlreadyExists(message, what=f"tag '{variant}'")
    return number + 1 + number % 2


def _stands(store: Store, name: str, number: int) -> bool:
    ref = refs.read_ref(store, name, number, layout.TAGS)
    if ref is None:
        return True
    try:
        _opened(store, ref)
    except NotFound:
        return False
    return True


def _intent(
    name: str, source: Line, commit_id: str, actor: str | None, message: str | None
) -> Intent:
    return Intent(
        id=ids.new_ulid(),
        operation=branches.TAG,
        branch=source.name,
        branch_ulid=source.ulid,
        base_commit=commit_id,
        created_at=ids.now_micros(),
        actor=actor,
        message=message,
        creates=ids.new_ulid(),
        facts={"name": name},
    )


def _read(store: Store, name: str, number: int) -> Tag | None:
    ref = refs.read_ref(store, name, number, layout.TAGS)
    if ref is None or ref.fork_commit is None:
        return None
    facts = store.objects.read_json(layout.ref_name(name, number, layout.TAGS)) or {}
    told = (facts.get("created_at", 0), facts.get("actor_id"), facts.get("message"))
    return Tag(name, ref.fork_commit, ref.parent, ref.ulid, *told)
