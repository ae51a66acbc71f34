"""A branch gets another name: the new one is opened, then the old one is closed.

Both name the same manifest, so that nobody who holds the branch notices. It goes through an intent:
who is cut off between the two leaves both names, and whoever opens the graph next closes the old
one. Of several who rename one branch, the one that closes the old name has renamed it.
"""

from omnigraph import ids
from omnigraph.errors import AlreadyExists, BranchNotFound, ConcurrentCommit, InputError, NotFound
from omnigraph.storage import layout
from omnigraph.storage.failures import reported, undecided
from omnigraph.storage.store import Store

from . import intent as intents
from . import names, refs
from .branches import free_number, open_line, others
from .intent import Intent
from .line import Line
from .manifest import read_manifest
from .refs import Ref

RENAME = "branch_rename"
_PARTS = ("json", "verdict")


def rename_branch(store: Store, name: str, new: str, *, actor: str | None = None) -> Line:
    """Give a branch another name; handles on it go on, whatever name they know.

    Raises `BranchNotFound`, and `AlreadyExists` when the name is taken or in the way.
    """
    text, wanted = names.clean(name), names.check_new(new)
    if text == layout.MAIN:
        raise InputError("'main' cannot be renamed", reason="main is the default line")
    if text == wanted:
        raise AlreadyExists(f"branch '{text}' has that name already", branch=text)
    with reported("none"):
        head = open_line(store, text).base().state.head.commit_id
        old = refs.find_ref(store, text)
        number = free_number(store, wanted, text)
        intent = _intent(old, wanted, number, head, actor)
        intents.arm(store, intent)
    with undecided():
        if intents.decide(store, intent, "publish") != "publish":
            raise ConcurrentCommit(f"the renaming of '{text}' took too long and was discarded")
        try:
            finish_rename(store, intent)
        except (AlreadyExists, NotFound):
            intents.retire(store, intent, _PARTS)
            raise
        intents.retire(store, intent, _PARTS)
        return open_line(store, wanted)


def finish_rename(store: Store, intent: Intent) -> None:
    """Open the new name and close the old one, as far as that is not done; others may do the same.

    Raises `AlreadyExists` or `BranchNotFound` when it cannot be: then the new name is not open.
    """
    old, made = _refs(intent)
    refs.claim(store, made, {"nonce": intent.id})
    try:
        _check(store, old, made)
    except (AlreadyExists, NotFound):
        refs.release(store, made)
        raise
    if not refs.hand_over(store, old, intent.id):
        refs.release(store, made)
        raise BranchNotFound(f"branch '{old.name}' was renamed or deleted", branch=old.name)


def _check(store: Store, old: Ref, made: Ref) -> None:
    """Names that appeared meanwhile are in the way; a branch that was deleted gets no name."""
    numbers = refs.list_numbers(store)
    if numbers.get(old.name, 0) > old.number:
        return  # closed already: by this very operation, or the closing will tell
    names.check_disjoint(made.name, others(store, made.name, numbers, old.name))
    if read_manifest(store, old.ulid).state.head.closed:
        raise BranchNotFound(f"no branch '{old.name}'", branch=old.name)


def _refs(intent: Intent) -> tuple[Ref, Ref]:
    facts = intent.facts
    origin = facts["parent"], facts["fork_commit"]
    old = Ref(intent.branch, intent.branch_ulid, facts["old_number"], *origin)
    return old, Ref(facts["name"], intent.branch_ulid, facts["number"], *origin)


def _intent(old: Ref, new: str, number: int, head: str, actor: str | None) -> Intent:
    return Intent(
        id=ids.new_ulid(),
        operation=RENAME,
        branch=old.name,
        branch_ulid=old.ulid,
        base_commit=head,
        created_at=ids.now_micros(),
        actor=actor,
        facts={
            "name": new,
            "number": number,
            "old_number": old.number,
            "parent": old.parent,
            "fork_commit": old.fork_commit,
        },
    )
