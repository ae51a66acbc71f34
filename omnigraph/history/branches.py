"""Branches: create from a head or a past commit, list, delete. Cost does not depend on tables.

A branch is its own manifest dataset plus a name. Creation goes through an intent, because it names
states that a collector could be about to remove; deletion closes the manifest before the name.
"""

from dataclasses import replace

from omnigraph import ids
from omnigraph.errors import (
    BranchBusy,
    BranchNotFound,
    ConcurrentCommit,
    InputError,
    InternalError,
)
from omnigraph.storage import layout
from omnigraph.storage.cell import LostSwap, UnsureSwap
from omnigraph.storage.store import Store

from . import intent as intents
from . import names, refs
from .intent import Intent
from .line import Line, line_of
from .log import Log
from .manifest import Opened, create_manifest, is_newest, manifest_exists, swap_state
from .refs import Ref
from .state import Head, State

_CLOSING_ATTEMPTS = 50


def list_branches(store: Store) -> list[str]:
    """The names of all branches, `main` included."""
    return refs.open_names(refs.list_numbers(store))


def open_line(store: Store, name: str) -> Line:
    """The line of a branch by name, at its newest state.

    A name left behind by a cut-off deletion is closed here, unless the store only reads.
    """
    ref = refs.find_ref(store, names.clean(name))
    line = line_of(store, ref.name, ref.ulid)
    if line.refresh().state.head.closed:
        if not store.effects.read_only:
            refs.release(store, ref)
        raise BranchNotFound(f"no branch '{ref.name}'", branch=ref.name)
    return line


def create_branch(
    store: Store, name: str, source: Line, *, commit_id: str | None = None, actor: str | None = None
) -> Line:
    """A new branch from the head of `source`, or from a commit in its log."""
    text = names.check_new(name)
    numbers = refs.list_numbers(store)
    names.check_disjoint(text, [one for one in refs.open_names(numbers) if one != layout.MAIN])
    base = source.base()
    wanted = commit_id or base.state.head.commit_id
    intent = _intent(text, source, wanted, actor)
    intents.arm(store, intent)
    state = _guarded(store, source, base, intent, historical=commit_id is not None)
    if intents.decide(store, intent, "publish") != "publish":
        raise ConcurrentCommit(f"the creation of branch '{text}' took too long and was discarded")
    opened = create_manifest(store, _created(intent), forked(intent, state))
    take_name(store, intent, numbers.get(text, 0) + 1)
    line = line_of(store, text, _created(intent))
    line.advance(opened)
    return line


def finish_create(store: Store, intent: Intent, state: State, number: int) -> None:
    """Go on where a creation was cut off: write the manifest, then take the name."""
    if not manifest_exists(store, _created(intent)):
        create_manifest(store, _created(intent), forked(intent, state))
    take_name(store, intent, number)


def forked(intent: Intent, state: State) -> State:
    """The first state of the branch that an intent creates."""
    return replace(state, head=Head(intent.base_commit, _created(intent), fork=intent.base_commit))


def take_name(store: Store, intent: Intent, number: int) -> None:
    """Name a manifest that is written; whoever was cut off before leaves garbage only."""
    name, parent, fork = intent.facts["name"], intent.branch, intent.base_commit
    try:
        refs.take(store, Ref(name, _created(intent), number, parent, fork))
    finally:
        intents.retire(store, intent, ("json", "verdict"))


def _created(intent: Intent) -> str:
    if intent.creates is None:
        raise InternalError(f"intent {intent.id} creates no branch")
    return intent.creates


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
    """The state to fork, proved to be out of a collector's reach now that the intent stands."""
    try:
        newest = source.refresh()
        if newest.state.head.closed:
            raise BranchNotFound(f"no branch '{source.name}'", branch=source.name)
        if historical:
            return _past_state(store, newest.state, intent.base_commit)
        if newest.state.head != base.state.head:
            raise ConcurrentCommit(f"branch '{source.name}' moved while it was forked")
        return newest.state
    except BaseException:
        if intents.decide(store, intent, "discard") == "discard":
            intents.retire(store, intent, ("json", "verdict"))
        raise


def _past_state(store: Store, state: State, commit_id: str) -> State:
    """The state of a past commit, with the whole log of the branch: more than it stands on."""
    tables, schema = Log(store, state).state_of(commit_id)
    for one in tables.values():
        store.open(one.location, one.lance_version)
    return replace(state, tables=tables, schema=schema)


def delete_branch(store: Store, name: str, *, bound: str | None = None) -> None:
    """Close a branch and release its name. Its commits stay readable where other logs hold them."""
    text = names.clean(name)
    if text == layout.MAIN:
        raise InputError("'main' cannot be deleted", reason="main is the default line")
    if text == bound:
        raise BranchBusy(f"this handle is on branch '{text}'", branch=text)
    ref = refs.find_ref(store, text)
    line = line_of(store, text, ref.ulid)
    already = _close(store, line)
    refs.release(store, ref)
    if already:
        raise BranchNotFound(f"no branch '{text}'", branch=text)


def _close(store: Store, line: Line) -> bool:
    """Publish the closing version; True when somebody else had done it."""
    nonce = ids.nonce()
    with line.turn():
        for _ in range(_CLOSING_ATTEMPTS):
            base = line.reload()
            if base.state.head.closed:
                return base.state.head.nonce != nonce
            try:
                closed = swap_state(store, base, base.state.closing(nonce))
            except (LostSwap, UnsureSwap):
                continue
            if is_newest(closed):
                line.advance(closed)
                return False
    raise ConcurrentCommit(f"branch '{line.name}' was too busy to be deleted")
