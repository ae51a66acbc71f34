"""Branches: create from a head or a past commit, list, delete. Cost does not depend on tables.

A branch is its own manifest dataset plus a name. Creation goes through an intent, because it names
states that a collector could be about to remove; deletion closes the manifest before the name.
"""

from dataclasses import replace

from omnigraph import ids
from omnigraph.errors import BranchBusy, BranchNotFound, ConcurrentCommit, InputError
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
    """The line of a branch by name. A name left behind by a cut-off deletion is closed here."""
    ref = refs.find_ref(store, names.clean(name))
    line = line_of(store, ref.name, ref.ulid)
    if line.base().state.head.closed:
        refs.release(store, ref)
        raise BranchNotFound(f"no branch '{ref.name}'", branch=ref.name)
    return line


def create_branch(
    store: Store, name: str, source: Line, *, commit_id: str | None = None, actor: str | None = None
) -> Ref:
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
    return finish_create(store, intent, state, numbers.get(text, 0) + 1)


def finish_create(store: Store, intent: Intent, state: State, number: int) -> Ref:
    """Write the manifest, then take the name; whoever is cut off between leaves garbage only."""
    creates = intent.creates or ids.new_ulid()
    head = Head(intent.base_commit, creates, fork=intent.base_commit)
    if not manifest_exists(store, creates):
        create_manifest(store, creates, replace(state, head=head))
    fork = intent.base_commit
    ref = Ref(intent.facts["name"], creates, number, intent.branch, fork)
    try:
        return refs.take(store, ref)
    finally:
        intents.retire(store, intent, ("json", "verdict"))


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
