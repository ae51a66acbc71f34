"""Names of branches and tags: numbered objects, of which the highest is the ref.

Odd numbers open a name, even numbers close it; none is ever replaced, so that a late request of a
deleted branch cannot touch its successor. A branch itself is its manifest, named by a ULID.
"""

from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from omnigraph import ids
from omnigraph.errors import AlreadyExists, BranchNotFound, NotFound, StorageError
from omnigraph.lang.schema.names import did_you_mean
from omnigraph.naming import quote_name
from omnigraph.storage import layout
from omnigraph.storage.failures import DamagedError
from omnigraph.storage.store import Store

from .origin import RefKind


@dataclass(frozen=True, slots=True)
class Ref:
    """An open name. `number` is that of its object; main has none. `place` tells tags apart."""

    name: str
    ulid: str
    number: int = 0
    parent: str | None = None
    fork_commit: str | None = None
    place: str = layout.REFS


_ORIGIN = {"parent", "fork_commit"}  # members of a ref object beside its ULID
MAIN_REF = Ref(layout.MAIN, layout.MAIN)


def list_numbers(store: Store, place: str = layout.REFS) -> dict[str, int]:
    """The highest number of every name that was ever used: one listing."""
    highest: dict[str, int] = {}
    for name, number in _listed(store, place, place):
        highest[name] = max(number, highest.get(name, 0))
    return highest


def open_names(numbers: Mapping[str, int]) -> list[str]:
    """The names that are open, sorted, main first of all names it sorts with."""
    return sorted([layout.MAIN, *(name for name, number in numbers.items() if number % 2)])


def find_ref(store: Store, name: str, place: str = layout.REFS) -> Ref:
    """The ref of an open name: one listing and one read; unknown is a `NotFound` with a guess."""
    found = look_up(store, name, place)
    if found is None:
        raise missing(name, place, known_names(store, place))
    return found


def look_up(store: Store, name: str, place: str = layout.REFS) -> Ref | None:
    """The ref of an open name; None for one that is not."""
    if name == layout.MAIN and place == layout.REFS:
        return MAIN_REF
    number = highest_number(store, name, place)
    return read_ref(store, name, number, place) if number % 2 else None


def read_ref(store: Store, name: str, number: int, place: str = layout.REFS) -> Ref | None:
    """What one object of a name says; None when it is not there, damage is told."""
    path = layout.ref_name(name, number, place)
    try:
        facts = store.objects.read_json(path)
    except StorageError as error:
        if error.kind != "permanent":
            raise
        raise _damaged(name, path, place) from error
    if facts is None:
        return None
    ulid = facts.get("ulid")
    if not isinstance(ulid, str) or not ids.is_ulid(ulid) or not facts.keys() >= _ORIGIN:
        raise _damaged(name, path, place)
    return Ref(name, ulid, number, facts["parent"], facts["fork_commit"], place)


def _damaged(name: str, path: str, place: str) -> DamagedError:
    message = f"the ref object of {kind_of(place)} '{name}', {path}, is damaged"
    hint = f"`omnigraph repair` says whether it can be restored; or restore {path} from a copy"
    return DamagedError(message, hint=hint)


def highest_number(store: Store, name: str, place: str = layout.REFS) -> int:
    """The highest number of one name, 0 when it was never used."""
    if not layout.can_have_refs(name):
        return 0
    directory = layout.ref_name(name, 0, place).rpartition("/")[0]
    # By name, too: a store may take the directory of one name for that of others ("a/." is "a").
    numbers = (number for found, number in _listed(store, directory, place) if found == name)
    return max(numbers, default=0)


def is_shown(store: Store, ref: Ref) -> bool:
    """Whether a name leads to its branch: by the ordinary lookup, and in the listing of names."""
    found = look_up(store, ref.name, ref.place)
    if found is None or (found.ulid, found.number) != (ref.ulid, ref.number):
        return False
    return list_numbers(store, ref.place).get(ref.name) == ref.number


def known_names(store: Store, place: str = layout.REFS) -> list[str]:
    """The names that a guess chooses from; none when the store cannot be asked just now."""
    with suppress(StorageError):
        found = open_names(list_numbers(store, place))
        return found if place == layout.REFS else [one for one in found if one != layout.MAIN]
    return []


def missing(name: str, place: str = layout.REFS, known: Iterable[str] = ()) -> NotFound:
    """The error of a name that is not open, with a guess from those that are."""
    hint = did_you_mean(name, known, f"list what exists: {kind_of(place)} list")
    if place == layout.REFS:
        return BranchNotFound(f"no branch {quote_name(name)}", branch=name, hint=hint)
    return NotFound(f"no tag {quote_name(name)}", what=f"tag '{name}'", hint=hint)


def _taken(name: str, place: str) -> AlreadyExists:
    message = f"{kind_of(place)} '{name}' already exists"
    if place == layout.REFS:
        return AlreadyExists(message, branch=name)
    return AlreadyExists(message, what=f"tag '{name}'")


def kind_of(place: str) -> RefKind:
    """What the names in a directory of ref objects are called."""
    return "branch" if place == layout.REFS else "tag"


def _listed(store: Store, directory: str, place: str) -> list[tuple[str, int]]:
    """Names and numbers; files that somebody else put there are passed over."""
    found = (layout.parse_ref_name(one.name, place) for one in store.objects.list(directory))
    return [one for one in found if one is not None]


def take(store: Store, ref: Ref) -> dict[str, int]:
    """Open a name for a branch under the ref's number; the loser gets `AlreadyExists`.

    Asks for the highest numbers again before it says yes, and gives them.
    """
    claim(store, ref)
    numbers = list_numbers(store)
    if numbers.get(ref.name) != ref.number:
        raise BranchNotFound(f"branch '{ref.name}' was deleted at once", branch=ref.name)
    return numbers


def claim(store: Store, ref: Ref, told: Mapping[str, Any] | None = None) -> None:
    """Write the object that opens a name; what else is `told` stands in it.

    A branch that exists already needs a `nonce` there: it may be given a name by several at once.
    """
    facts = {"ulid": ref.ulid, "parent": ref.parent, "fork_commit": ref.fork_commit}
    name = layout.ref_name(ref.name, ref.number, ref.place)
    if not store.objects.create_json(name, {"nonce": ref.ulid, **(told or {}), **facts}):
        raise _taken(ref.name, ref.place)


def hand_over(store: Store, ref: Ref, new: str, nonce: str) -> bool:
    """Close the old name of a branch that has a new one; False when somebody else closed it."""
    name = layout.ref_name(ref.name, ref.number + 1, ref.place)
    facts = {"deleted": ref.ulid, "renamed_to": new, "nonce": f"renamed-{nonce}"}
    return store.objects.create_json(name, facts)


def withdraw(store: Store, ref: Ref, nonce: str) -> None:
    """Close a name that was opened a moment ago, while the branch or tag itself stays open."""
    name = layout.ref_name(ref.name, ref.number + 1, ref.place)
    store.objects.create_json(name, {"deleted": ref.ulid, "nonce": f"withdrawn-{nonce}"})


def release(store: Store, ref: Ref) -> None:
    """Close a name, whoever comes first: the object says which branch it closed."""
    name = layout.ref_name(ref.name, ref.number + 1, ref.place)
    store.objects.create_json(name, {"deleted": ref.ulid, "nonce": f"deleted-{ref.ulid}"})
