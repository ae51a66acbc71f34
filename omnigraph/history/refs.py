"""Branch names: numbered objects, of which the highest is the ref.

Odd numbers open a name, even numbers close it; none is ever replaced, so that a late request of a
deleted branch cannot touch its successor. A branch itself is its manifest, named by a ULID.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from omnigraph.errors import AlreadyExists, BranchNotFound, StorageError
from omnigraph.storage import layout
from omnigraph.storage.store import Store


@dataclass(frozen=True, slots=True)
class Ref:
    """An open branch name. `number` is that of its object; main has none."""

    name: str
    ulid: str
    number: int = 0
    parent: str | None = None
    fork_commit: str | None = None


MAIN_REF = Ref(layout.MAIN, layout.MAIN)


def list_numbers(store: Store) -> dict[str, int]:
    """The highest number of every branch name that was ever used: one listing."""
    highest: dict[str, int] = {}
    for name, number in _listed(store, layout.REFS):
        highest[name] = max(number, highest.get(name, 0))
    return highest


def open_names(numbers: Mapping[str, int]) -> list[str]:
    """The names that are open, sorted, main first of all names it sorts with."""
    return sorted([layout.MAIN, *(name for name, number in numbers.items() if number % 2)])


def find_ref(store: Store, name: str) -> Ref:
    """The ref of an open branch: one listing and one read; unknown is `BranchNotFound`."""
    if name == layout.MAIN:
        return MAIN_REF
    number = highest_number(store, name)
    found = read_ref(store, name, number) if number % 2 else None
    if found is None:
        raise BranchNotFound(f"no branch '{name}'", branch=name)
    return found


def read_ref(store: Store, name: str, number: int) -> Ref | None:
    """What one object of a name says; None when it is not there, damage is told."""
    facts = store.objects.read_json(layout.ref_name(name, number))
    if facts is None:
        return None
    try:
        return Ref(name, facts["ulid"], number, facts["parent"], facts["fork_commit"])
    except KeyError as error:
        message = f"the name of branch '{name}' is damaged; nothing was changed"
        hint = f"restore {layout.ref_name(name, number)} from a copy"
        raise StorageError(message, kind="permanent", effect="none", hint=hint) from error


def highest_number(store: Store, name: str) -> int:
    """The highest number of one name, 0 when it was never used."""
    directory = layout.ref_name(name, 0).rpartition("/")[0]
    return max((number for _, number in _listed(store, directory)), default=0)


def _listed(store: Store, place: str) -> list[tuple[str, int]]:
    """Names and numbers; files that somebody else put there are passed over."""
    found = (layout.parse_ref_name(one.name) for one in store.objects.list(place))
    return [one for one in found if one is not None]


def take(store: Store, ref: Ref) -> dict[str, int]:
    """Open a name for a branch under the ref's number; the loser gets `AlreadyExists`.

    Asks for the highest numbers again before it says yes, and gives them.
    """
    facts = {"ulid": ref.ulid, "parent": ref.parent, "fork_commit": ref.fork_commit}
    name = layout.ref_name(ref.name, ref.number)
    if not store.objects.create_json(name, {**facts, "nonce": ref.ulid}):
        raise AlreadyExists(f"branch '{ref.name}' already exists", branch=ref.name)
    numbers = list_numbers(store)
    if numbers.get(ref.name) != ref.number:
        raise BranchNotFound(f"branch '{ref.name}' was deleted at once", branch=ref.name)
    return numbers


def release(store: Store, ref: Ref) -> None:
    """Close a name, whoever comes first: the object says which branch it closed."""
    name = layout.ref_name(ref.name, ref.number + 1)
    store.objects.create_json(name, {"deleted": ref.ulid, "nonce": f"deleted-{ref.ulid}"})
