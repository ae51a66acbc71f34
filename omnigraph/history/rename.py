"""Rename a branch: open the new name, verify it, then close the old one.

Both names lead to the same manifest, so open handles are not affected. The rename is recorded in an
intent: after a crash between the two steps both names exist, and the next read-write open closes
the old one. Of several concurrent renames, the one that closes the old name wins. The old name must
never be closed before the new one is proved to lead to the branch; otherwise a store that lost
the new name would make the branch unreachable.
"""

from collections.abc import Mapping

from omnigraph import ids
from omnigraph.errors import (
    AlreadyExists,
    BranchNotFound,
    ConcurrentCommit,
    InputError,
    NotFound,
    StorageError,
)
from omnigraph.storage import layout
from omnigraph.storage.failures import reported, undecided
from omnigraph.storage.store import Store

from . import intent as intents
from . import names, refs
from .branches import free_number, open_line, others
from .intent import Intent
from .line import Line
from .manifest import read_manifest
from .recovery_failure import judge_failure
from .refs import Ref

RENAME = "branch_rename"
_PARTS = ("json", "verdict")


class NameNotShownError(StorageError):
    """A ref object was written, but the store does not return it; the branch keeps its old name."""

    code = "StorageError"
    kind = "permanent"
    effect = "none"
    hint = "choose another name; the branch still exists under its old one"


def rename_branch(store: Store, name: str, new: str, *, actor: str | None = None) -> Line:
    """Rename a branch; open handles keep working, whichever name they were opened with.

    Raises `BranchNotFound`, or `AlreadyExists` if the new name exists or conflicts with another.
    """
    text, wanted = names.clean(name), names.check_new(new)
    if text == layout.MAIN:
        raise InputError("'main' cannot be renamed", reason="main is the default branch")
    if text == wanted:
        raise AlreadyExists(f"branch '{text}' already has that name", branch=text)
    with reported("none"):
        head = open_line(store, text).base().state.head.commit_id
        old = refs.find_ref(store, text)
        number = free_number(store, wanted, text)
        intent = _intent(old, wanted, number, head, actor)
        intents.arm(store, intent)
    with undecided():
        if intents.decide(store, intent, "publish") != "publish":
            raise ConcurrentCommit(f"renaming '{text}' took too long and was discarded")
    _carry_out(store, intent)
    with undecided():
        return open_line(store, wanted)


def _carry_out(store: Store, intent: Intent) -> None:
    """Finish one's own rename; retire the intent as soon as the outcome is known."""
    try:
        with reported("unknown"):
            finish_rename(store, intent)
    except (AlreadyExists, NotFound, NameNotShownError):
        intents.retire(store, intent, _PARTS)
        raise
    except Exception as error:
        untouched = judge_failure(error) == "for_good" and _has_old_name_only(store, intent)
        if isinstance(error, StorageError):
            error.effect = "none" if untouched else "unknown"
        if untouched:
            intents.retire(store, intent, _PARTS)
        raise
    intents.retire(store, intent, _PARTS)


def finish_rename(store: Store, intent: Intent) -> None:
    """Open the new name and close the old one; several processes may do so at once.

    Steps that are done already are skipped. Raises `AlreadyExists`, `BranchNotFound` or
    `NameNotVisibleError` if the rename is impossible: then the new name is closed again, and the
    old one is unchanged.
    """
    old, made = rename_refs(intent)
    refs.claim(store, made, {"nonce": intent.id})
    try:
        _check(store, old, made)
    except (AlreadyExists, NotFound, NameNotShownError):
        refs.release(store, made)
        raise
    if not refs.hand_over(store, old, made.name, intent.id):
        refs.release(store, made)
        raise BranchNotFound(f"branch '{old.name}' was renamed or deleted", branch=old.name)


def _check(store: Store, old: Ref, made: Ref) -> None:
    """Refuse names that conflict by now, and branches that were deleted.

    Unless the old name is closed already, the new one must lead to the branch.
    """
    numbers = refs.list_numbers(store)
    if numbers.get(old.name, 0) > old.number:
        return  # closed already: by this very rename, or close_renamed_name will find out
    names.check_disjoint(made.name, others(store, made.name, numbers, old.name))
    if read_manifest(store, old.ulid).state.head.closed:
        raise BranchNotFound(f"no branch '{old.name}'", branch=old.name)
    if numbers.get(made.name, 0) > made.number:
        _check_named_elsewhere(store, old, numbers)
    elif not refs.is_shown(store, made):
        raise NameNotShownError(
            f"the name '{made.name}' was written, but the store does not show it;"
            f" the branch is still called '{old.name}'"
        )


def _check_named_elsewhere(store: Store, old: Ref, numbers: Mapping[str, int]) -> None:
    """The new name was closed since: close the old one only if a third name leads to the branch."""
    for name, number in numbers.items():
        if number % 2 and name != old.name:
            ref = refs.read_ref(store, name, number)
            if ref is not None and ref.ulid == old.ulid:
                return
    raise BranchNotFound(f"renaming '{old.name}' was undone", branch=old.name)


def _has_old_name_only(store: Store, intent: Intent) -> bool:
    """Whether a failed rename changed nothing; False if that cannot be determined."""
    old, made = rename_refs(intent)
    try:
        return refs.is_shown(store, old) and not _is_open(store, made)
    except StorageError:
        return False


def _is_open(store: Store, ref: Ref) -> bool:
    """Whether a name may be open; a name that the store cannot even look up is not."""
    try:
        return refs.look_up(store, ref.name, ref.place) is not None
    except Exception as error:
        return judge_failure(error) != "for_good"


def rename_refs(intent: Intent) -> tuple[Ref, Ref]:
    """Return the old and the new ref of the branch that an intent renames."""
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
