"""Branches: create from a head or a past commit, list, delete. Cost does not depend on tables.

A branch is a manifest dataset of its own plus a name. Creation needs an intent, because it refers
to states that a cleanup could be about to remove. Deletion closes the manifest before the name.
"""

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace

from omnigraph import ids
from omnigraph.errors import (
    AlreadyExists,
    BranchBusy,
    BranchNotFound,
    ConcurrentCommit,
    GraphNotInitialized,
    InputError,
    InternalError,
    NotFound,
    StorageError,
)
from omnigraph.storage import layout
from omnigraph.storage.cell import UnsyncedError
from omnigraph.storage.failures import reported, undecided
from omnigraph.storage.store import Store
from omnigraph.storage.torn import TornError

from . import intent as intents
from . import names, refs
from .audit import record
from .closing import close
from .intent import Intent
from .line import Line, ReplacedError, line_of
from .log import Log
from .manifest import (
    Opened,
    create_manifest,
    manifest_exists,
    read_manifest,
    secure,
)
from .mend import set_torn_aside
from .missing import missing_manifest
from .origin import Origin
from .recovery_failure import judge_failure
from .refs import Ref
from .retention.condemned import check_kept, check_unlisted
from .schemas import dropped_for_good, erased_by
from .state import Head, State

_FORK_ATTEMPTS = 4
_PARTS = ("json", "verdict")  # parts of an intent without a lease: it ends with its owner
TAG = "tag_create"
CREATIONS = ("branch_create", TAG)  # operations whose intent creates a manifest and names it
Intend = Callable[[str], Intent]  # builds the intent of a creation, given its starting commit


def list_branches(store: Store) -> list[str]:
    """Return the names of all branches, `main` included: one listing.

    A name whose deletion was interrupted is listed until the branch is opened for writing.
    """
    return refs.open_names(refs.list_numbers(store))


def open_line(store: Store, name: str) -> Line:
    """Open a branch by name, at its newest state.

    Releases a name left behind by an interrupted deletion, unless the store is read-only.
    """
    return line_behind(store, refs.find_ref(store, names.clean(name)))


def line_behind(store: Store, ref: Ref) -> Line:
    """Open the branch that a ref points to, at its newest state."""
    line = line_of(store, ref.name, ref.ulid)
    try:
        newest = _newest(line)
    except ReplacedError:  # the state cached in this process belonged to another graph
        line = line_of(store, ref.name, ref.ulid)
        newest = _newest(line)
    except GraphNotInitialized as error:
        raise missing_manifest(store, ref) from error
    if newest.state.head.closed:
        if not store.effects.read_only:
            refs.release(store, ref)
        raise BranchNotFound(f"no branch '{ref.name}'", branch=ref.name)
    line.name = ref.name  # it may have been renamed since this process cached it
    return line


def _newest(line: Line) -> Opened:
    """Load the newest state; a torn version that was never acknowledged is set aside first."""
    try:
        return line.refresh()
    except TornError:
        if line.store.effects.read_only:
            raise
        set_torn_aside(line.store, line.name, line.ulid)
        return line.reload()


def create_branch(
    store: Store, name: str, source: Line, *, commit_id: str | None = None, actor: str | None = None
) -> Line:
    """Create a branch from the head of `source_branch`, or from a commit in its log."""
    text = names.check_new(name)
    with reported("none"):
        number = free_number(store, text)
        intent, state = armed(
            store, source, commit_id, lambda base: _intent(text, source, base, actor)
        )
    return carry_out(store, intent, state, number)


def carry_out(store: Store, intent: Intent, state: State, number: int) -> Line:
    """Request the verdict, then create what the intent describes, or find it already created."""
    line = line_of(store, intent.facts["name"], _created(intent))
    with undecided():
        if intents.decide(store, intent, "publish") != "publish":
            return _made_by_another(store, line, place_of(intent))
        _make(store, intent, line, state, number)
    return line


def place_of(intent: Intent) -> str:
    """Return the directory that holds the ref of what an intent creates."""
    return layout.TAGS if intent.operation == TAG else layout.REFS


def _make(store: Store, intent: Intent, line: Line, state: State, number: int) -> None:
    """Write the manifest, take the name, and retire the intent once the outcome is known."""
    naming = False
    try:
        line.advance(_write_manifest(store, intent, state, number))
        naming = True
        take_name(store, intent, number)
    except (AlreadyExists, NotFound):
        _discard(store, intent)
        raise
    except BaseException as error:
        # Before the name is taken nothing refers to the manifest, and nobody else will name it.
        if not naming or _name_is_refused(store, intent, error):
            _discard(store, intent)
        raise
    intents.retire(store, intent, _PARTS)


def _name_is_refused(store: Store, intent: Intent, error: BaseException) -> bool:
    """Return whether the store rejects the name permanently, also for anyone who retries."""
    if not isinstance(error, Exception) or judge_failure(error) != "for_good":
        return False
    try:
        ref = refs.look_up(store, intent.facts["name"], place_of(intent))
    except Exception as failure:
        return judge_failure(failure) == "for_good"
    return ref is None or ref.ulid != intent.creates


def _discard(store: Store, intent: Intent) -> None:
    """Record that a manifest was never named, then remove the intent.

    Without that record, a manifest whose intent is gone counts as named with a lost ref object.
    If the record cannot be written, the intent stays and recovery ends the creation.
    """
    with suppress(StorageError, OSError):
        record(store, intent, "discarded")
        intents.retire(store, intent, _PARTS)


def _made_by_another(store: Store, line: Line, place: str) -> Line:
    """The intent is over or to be discarded: the ref tells whether another process finished it."""
    with suppress(NotFound):
        if refs.find_ref(store, line.name, place).ulid == line.ulid:
            return line
    raise ConcurrentCommit(f"the creation of '{line.name}' took too long and was discarded")


def _write_manifest(store: Store, intent: Intent, state: State, number: int) -> Opened:
    """Write the manifest of a new branch, or load the one that another wrote for this intent."""
    try:
        return create_manifest(store, _created(intent), forked(intent, state, number))
    except UnsyncedError:
        raise
    except Exception:
        if not manifest_exists(store, _created(intent)):
            raise
        return _made(store, intent)


def _made(store: Store, intent: Intent) -> Opened:
    """Load an existing manifest and sync it, because its writer may not have done so yet."""
    opened = read_manifest(store, _created(intent))
    secure(opened)
    return opened


def finish_create(store: Store, intent: Intent, state: State, number: int) -> None:
    """Resume an interrupted creation: write the manifest, then take the name.

    Several processes may resume it at the same time: whoever writes the manifest, there is one.
    """
    there = manifest_exists(store, _created(intent))
    made = _made(store, intent) if there else _write_manifest(store, intent, state, number)
    if made.state.head.closed:
        raise BranchNotFound(f"'{intent.facts['name']}' was deleted in the meantime")
    take_name(store, intent, number)


def forked(intent: Intent, state: State, number: int) -> State:
    """Return the first state of the branch or tag that an intent creates, with its origin record.

    `ref_number` is the number of the ref object that will name it.
    """
    head = Head(intent.base_commit, _created(intent), fork=intent.base_commit)
    origin = Origin(
        "tag" if intent.operation == TAG else "branch",
        intent.facts["name"],
        number,
        intent.id,
        intent.branch,
        intent.branch_ulid,
        intent.created_at,
        intent.actor,
        intent.message,
    )
    return replace(state, head=head, origin=origin)


def take_name(store: Store, intent: Intent, number: int) -> None:
    """Name a manifest that is already written; a crash before this point leaves only garbage."""
    name, parent, fork = intent.facts["name"], intent.branch, intent.base_commit
    ref = Ref(name, _created(intent), number, parent, fork, place_of(intent))
    if intent.operation == TAG:
        _take_tag(store, ref, intent)
        return
    numbers = refs.take(store, ref)
    try:
        names.check_disjoint(name, others(store, name, numbers))
    except AlreadyExists:
        # Both saw a free name, and each now sees the other: neither may stay.
        close(store, line_of(store, name, ref.ulid))
        refs.release(store, ref)
        raise


def _take_tag(store: Store, ref: Ref, intent: Intent) -> None:
    """Create the ref of a tag, with its author and message; tag names may overlap freely.

    Reads the highest number again before reporting success.
    """
    told = {
        "created_at": intent.created_at,
        "actor_id": intent.actor,
        "message": intent.message,
    }
    refs.claim(store, ref, told)
    if refs.highest_number(store, ref.name, ref.place) != ref.number:
        raise refs.missing(ref.name, ref.place)


def free_number(store: Store, name: str, old: str | None = None) -> int:
    """Return the number to take a name with; a leftover of an interrupted deletion is closed."""
    numbers = refs.list_numbers(store)
    number = numbers.get(name, 0)
    names.check_disjoint(name, others(store, name, numbers, old))
    if number % 2:
        if not _left_behind(store, name):
            names.check_disjoint(name, [name])
        number += 1
    return number + 1


def others(
    store: Store, name: str, numbers: Mapping[str, int], old: str | None = None
) -> list[str]:
    """Return other branch names that conflict with a name and are not mere leftovers."""
    found = names.overlapping(name, refs.open_names(numbers))
    return [one for one in found if one not in (name, old) and not _left_behind(store, one)]


def _left_behind(store: Store, name: str) -> bool:
    """Return whether the branch behind an open name is closed; if so, its name is released."""
    try:
        open_line(store, name)
    except BranchNotFound:
        return True
    return False


def _created(intent: Intent) -> str:
    if intent.creates is None:
        raise InternalError(f"intent {intent.id} creates no branch")
    return intent.creates


def armed(
    store: Store, source: Line, commit_id: str | None, intend: Intend
) -> tuple[Intent, State]:
    """Arm an intent and return it with the state it protects, even if the source moves on."""
    for tries in range(_FORK_ATTEMPTS):
        base = source.base()
        intent = intend(commit_id or base.state.head.commit_id)
        intents.arm(store, intent)
        # A source that never rests is forked at the commit the intent names, which still exists.
        past = commit_id is not None or tries == _FORK_ATTEMPTS - 1
        with suppress(_MovedError):
            return intent, _guarded(store, source, base, intent, historical=past)
    raise InternalError(f"branch '{source.name}' could not be forked")


class _MovedError(Exception):
    """The source moved between reading its state and arming the intent."""


def _intent(name: str, source: Line, commit_id: str, actor: str | None) -> Intent:
    return Intent(
        id=ids.new_ulid(),
        operation="branch_create",
        branch=source.name,
        branch_ulid=source.ulid,
        base_commit=commit_id,
        created_at=ids.now_micros(),
        actor=actor,
        creates=ids.new_ulid(),
        facts={"name": name},
    )


def _guarded(
    store: Store, source: Line, base: Opened, intent: Intent, *, historical: bool
) -> State:
    """Return the state to fork, verified to be out of a cleanup's reach now the intent is armed."""
    try:
        if historical:
            newest = source.refresh()
            state = past_state(store, newest.state, intent.base_commit)
            check_kept(store, state, intent.base_commit)
            _check_not_erased(store, newest.state, state, intent.base_commit)
        else:
            check_unlisted(store, base.state, intent.base_commit)
        newest = source.refresh()  # if the branch was deleted, nothing protects what it named
        if not historical:
            state = newest.state
        if newest.state.head.closed:
            raise BranchNotFound(f"no branch '{source.name}'", branch=source.name)
        if not historical and state.head != base.state.head:
            raise _MovedError
        return state
    except BaseException:
        if intents.decide(store, intent, "discard") == "discard":
            intents.retire(store, intent, _PARTS)
        raise


def _check_not_erased(store: Store, newest: State, past: State, commit_id: str) -> None:
    """Refuse a fork that would bring back a type that its source dropped with its history."""
    erased = erased_by(store, newest)
    gone = next((key for key, one in sorted(past.tables.items()) if one.location in erased), None)
    if gone is not None:
        raise dropped_for_good(gone, commit_id)


def past_state(store: Store, state: State, commit_id: str) -> State:
    """Return the state of a past commit with the whole log of the branch, a superset of its own."""
    if state.head.commit_id == commit_id:
        return state
    log = Log(store, state)
    tables, schema = log.state_of(commit_id)
    streams = log.streams_of(commit_id, state.streams)
    return replace(state, tables=tables, schema=schema, streams=streams)


def delete_branch(
    store: Store, name: str, *, bound: str | None = None, head: str | None = None
) -> None:
    """Close a branch and release its name. Commits in the logs of other branches stay readable.

    With `expected_head`, delete only if the branch is at that commit, so later work is kept.
    """
    text = names.clean(name)
    if text == layout.MAIN:
        raise InputError("'main' cannot be deleted", reason="main is the default branch")
    if text == bound:
        raise BranchBusy(f"this handle is on branch '{text}'", branch=text)
    close_ref(store, refs.find_ref(store, text), head)


def close_ref(store: Store, ref: Ref, head: str | None = None) -> None:
    """Close the manifest behind a ref, then the ref; the second caller gets `NotFound`."""
    already = close(store, line_of(store, ref.name, ref.ulid), head)
    with undecided():
        refs.release(store, ref)
    if already:
        raise refs.missing(ref.name, ref.place)
