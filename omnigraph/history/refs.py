"""Refs: names of branches and tags as numbered objects, of which the highest number counts.

Odd numbers open a name, even numbers close it. No object is ever overwritten: a late request for a
deleted branch can therefore never affect its successor. The branch itself is its manifest, which
is identified by a ULID.
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
    """An open name. `number` is that of its ref object; main has none. `directory` tells tags."""

    name: str
    ulid: str
    number: int = 0
    parent: str | None = None
    fork_commit: str | None = None
    place: str = layout.REFS


_ORIGIN = {"parent", "fork_commit"}  # members of a ref object besides its ULID
MAIN_REF = Ref(layout.MAIN, layout.MAIN)


def list_numbers(store: Store, place: str = layout.REFS) -> dict[str, int]:
    """Return the highest number of every name that was ever used; costs one listing."""
    highest: dict[str, int] = {}
    for name, number in _listed(store, place, place):
        highest[name] = max(number, highest.get(name, 0))
    return highest


def open_names(numbers: Mapping[str, int]) -> list[str]:
    """Return the open names, sorted, including main."""
    return sorted([layout.MAIN, *(name for name, number in numbers.items() if number % 2)])


def find_ref(store: Store, name: str, place: str = layout.REFS) -> Ref:
    """Return the ref of an open name: one listing, one read. Raise `NotFound` with a suggestion."""
    found = look_up(store, name, place)
    if found is None:
        raise missing(name, place, known_names(store, place))
    return found


def look_up(store: Store, name: str, place: str = layout.REFS) -> Ref | None:
    """Return the ref of an open name, or None if it is not open."""
    if name == layout.MAIN and place == layout.REFS:
        return MAIN_REF
    number = highest_number(store, name, place)
    return read_ref(store, name, number, place) if number % 2 else None


def read_ref(store: Store, name: str, number: int, place: str = layout.REFS) -> Ref | None:
    """Read one ref object; None if it does not exist. Raise `DamagedError` if it is damaged."""
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
    hint = f"run `omnigraph repair` to see what can be restored, or restore {path} from a backup"
    return DamagedError(message, hint=hint)


def highest_number(store: Store, name: str, place: str = layout.REFS) -> int:
    """Return the highest number of one name; 0 if it was never used."""
    if not layout.can_have_refs(name):
        return 0
    directory = layout.ref_name(name, 0, place).rpartition("/")[0]
    # Compare names, too: some stores normalize paths, so that "a/." lists the directory of "a".
    numbers = (number for found, number in _listed(store, directory, place) if found == name)
    return max(numbers, default=0)


def is_shown(store: Store, ref: Ref) -> bool:
    """Whether a name leads to its branch, both by lookup and in the listing of all names."""
    found = look_up(store, ref.name, ref.place)
    if found is None or (found.ulid, found.number) != (ref.ulid, ref.number):
        return False
    return list_numbers(store, ref.place).get(ref.name) == ref.number


def known_names(store: Store, place: str = layout.REFS) -> list[str]:
    """Return the open names, for suggestions; empty if the store does not respond now."""
    with suppress(StorageError):
        found = open_names(list_numbers(store, place))
        return found if place == layout.REFS else [one for one in found if one != layout.MAIN]
    return []


def missing(name: str, place: str = layout.REFS, known: Iterable[str] = ()) -> NotFound:
    """Return the error for a name that is not open, with a suggestion from the existing names."""
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
    """Return what names in a directory of ref objects stand for."""
    return "branch" if place == layout.REFS else "tag"


def _listed(store: Store, directory: str, place: str) -> list[tuple[str, int]]:
    """List names and numbers of ref objects; files of other programs are skipped."""
    found = (layout.parse_ref_name(one.name, place) for one in store.objects.list(directory))
    return [parsed for parsed in found if parsed is not None]


def take(store: Store, ref: Ref) -> dict[str, int]:
    """Open a name for a branch; of several creators, all but one get `AlreadyExists`.

    Return the highest numbers, read again after the claim: the name may be closed already.
    """
    claim(store, ref)
    numbers = list_numbers(store)
    if numbers.get(ref.name) != ref.number:
        raise BranchNotFound(f"branch '{ref.name}' was deleted right away", branch=ref.name)
    return numbers


def claim(store: Store, ref: Ref, told: Mapping[str, Any] | None = None) -> None:
    """Create the object that opens a name, with `extra_members` besides those of the ref.

    For an existing branch these must hold a `nonce`: several processes may name it at once, and
    the nonce tells whose object was created.
    """
    facts = {"ulid": ref.ulid, "parent": ref.parent, "fork_commit": ref.fork_commit}
    name = layout.ref_name(ref.name, ref.number, ref.place)
    if not store.objects.create_json(name, {"nonce": ref.ulid, **(told or {}), **facts}):
        raise _taken(ref.name, ref.place)


def hand_over(store: Store, ref: Ref, new: str, nonce: str) -> bool:
    """Close the old name of a renamed branch; False if another process closed it."""
    name = layout.ref_name(ref.name, ref.number + 1, ref.place)
    facts = {"deleted": ref.ulid, "renamed_to": new, "nonce": f"renamed-{nonce}"}
    return store.objects.create_json(name, facts)


def withdraw(store: Store, ref: Ref, nonce: str) -> None:
    """Close a name that was opened a moment ago; the branch or tag itself stays open."""
    name = layout.ref_name(ref.name, ref.number + 1, ref.place)
    store.objects.create_json(name, {"deleted": ref.ulid, "nonce": f"withdrawn-{nonce}"})


def release(store: Store, ref: Ref) -> None:
    """Close a name; the object records which branch it closed. Closing twice is harmless."""
    name = layout.ref_name(ref.name, ref.number + 1, ref.place)
    store.objects.create_json(name, {"deleted": ref.ulid, "nonce": f"deleted-{ref.ulid}"})
