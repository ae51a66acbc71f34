"""Refs, which store branch and tag names as numbered objects. The object with the highest number is current.

An object with an odd number claims a name, and an object with an even number releases it. No object is ever
overwritten, so a late request for a deleted branch can never affect a new branch with the same name. The branch itself
consists of its manifest, which is identified by a ULID.
"""

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from omnigraph.errors import AlreadyExists, BranchNotFound, NotFound, StorageError
from omnigraph.lang.schema.names import did_you_mean
from omnigraph.records.frozen import record
from omnigraph.storage import layout
from omnigraph.storage.failures import DamagedError
from omnigraph.storage.store import Store
from omnigraph.values import clock_and_ids
from omnigraph.values.name_rules import quote_name

from .origin_record import RefKind


@record
class Ref:
    """The name of an existing branch or tag, and what it was created from.

    `ulid` identifies its manifest, `parent` and `fork_commit` describe its origin, `number` is its ref object's number
    (0 for main, which has none), and `directory` contains its ref objects.
    """

    name: str
    ulid: str
    number: int = 0
    parent: str | None = None
    fork_commit: str | None = None
    directory: str = layout.REFS


_ORIGIN_MEMBERS = {"parent", "fork_commit"}  # members of a ref object besides its ULID
MAIN_REF = Ref(layout.MAIN, layout.MAIN)


def list_highest_numbers(store: Store, ref_directory: str = layout.REFS) -> dict[str, int]:
    """Return the highest ref number for every name that was ever used. This takes one list request."""
    highest: dict[str, int] = {}
    for name, number in _list_ref_objects(store, ref_directory, ref_directory):
        highest[name] = max(number, highest.get(name, 0))
    return highest


def list_numbers_by_directory(store: Store) -> dict[str, dict[str, int]]:
    """Return the highest ref number of every branch name and every tag name, by directory, using one list request."""
    highest: dict[str, dict[str, int]] = {directory: {} for directory in (layout.REFS, layout.TAGS)}
    for listed_file in store.objects.list(layout.ALL_REFS):
        for directory, numbers in highest.items():
            parsed = layout.parse_ref_name(listed_file.name, directory)
            if parsed is not None:
                numbers[parsed[0]] = max(parsed[1], numbers.get(parsed[0], 0))
    return highest


def open_names_with_main(highest_numbers: Mapping[str, int]) -> list[str]:
    """Return the names in use, sorted, including main."""
    return sorted([layout.MAIN, *(name for name, number in highest_numbers.items() if number % 2)])


def find_ref(store: Store, name: str, ref_directory: str = layout.REFS) -> Ref:
    """Return a name's ref, using one list request and one read; raise `NotFound` if the name is not in use."""
    open_ref = find_open_ref(store, name, ref_directory)
    if open_ref is None:
        raise name_not_found_error(store, name, ref_directory)
    return open_ref


def find_open_ref(store: Store, name: str, ref_directory: str = layout.REFS) -> Ref | None:
    """Return a name's ref, or None if the name is not in use."""
    if name == layout.MAIN and ref_directory == layout.REFS:
        return MAIN_REF
    number = find_highest_number(store, name, ref_directory)
    return read_ref(store, name, number, ref_directory) if number % 2 else None


def read_ref(store: Store, name: str, number: int, ref_directory: str = layout.REFS) -> Ref | None:
    """Read one ref object, or return None if it does not exist; raise `DamagedError` if it is damaged."""
    object_name = layout.ref_name(name, number, ref_directory)
    try:
        facts = store.objects.read_json(object_name)
    except StorageError as error:
        if error.kind != "permanent":
            raise
        raise _damaged_ref_error(name, object_name, ref_directory) from error
    if facts is None:
        return None
    ulid = facts.get("ulid")
    if not isinstance(ulid, str) or not clock_and_ids.is_ulid(ulid) or not facts.keys() >= _ORIGIN_MEMBERS:
        raise _damaged_ref_error(name, object_name, ref_directory)
    return Ref(name, ulid, number, facts["parent"], facts["fork_commit"], ref_directory)


def _damaged_ref_error(name: str, object_name: str, ref_directory: str) -> DamagedError:
    message = f"the ref object for {ref_kind_of(ref_directory)} '{name}', {object_name}, is damaged"
    hint = f"run `omnigraph repair` to see what can be restored, or restore {object_name} from a backup"
    return DamagedError(message, hint=hint)


def find_highest_number(store: Store, name: str, ref_directory: str = layout.REFS) -> int:
    """Return a name's highest number, or 0 if the name was never used."""
    if not layout.can_have_refs(name):
        return 0
    name_directory = layout.ref_name(name, 0, ref_directory).rpartition("/")[0]
    # Compare the names as well: some stores normalize paths, so listing "a/." returns the directory of "a".
    numbers = (
        number for listed_name, number in _list_ref_objects(store, name_directory, ref_directory) if listed_name == name
    )
    return max(numbers, default=0)


def is_ref_visible(store: Store, ref: Ref) -> bool:
    """Return whether the name of a ref resolves to this ref, both in a lookup and in the listing of all names."""
    visible_ref = find_open_ref(store, ref.name, ref.directory)
    if visible_ref is None or (visible_ref.ulid, visible_ref.number) != (ref.ulid, ref.number):
        return False
    return list_highest_numbers(store, ref.directory).get(ref.name) == ref.number


def try_list_open_names(store: Store, ref_directory: str = layout.REFS) -> list[str]:
    """Return the names in use, for suggestions in errors, or an empty list if the store does not respond."""
    with suppress(StorageError):
        open_names = open_names_with_main(list_highest_numbers(store, ref_directory))
        return open_names if ref_directory == layout.REFS else [name for name in open_names if name != layout.MAIN]
    return []


def name_not_found_error(store: Store, name: str, ref_directory: str = layout.REFS) -> NotFound:
    """Return an error for a name that is not in use. The error suggests a similar name that is in use."""
    open_names = try_list_open_names(store, ref_directory)
    hint = did_you_mean(name, open_names, f"run `omnigraph {ref_kind_of(ref_directory)} list` to list existing names")
    if ref_directory == layout.REFS:
        return BranchNotFound(f"no branch {quote_name(name)}", branch=name, hint=hint)
    return NotFound(f"no tag {quote_name(name)}", what=f"tag '{name}'", hint=hint)


def _name_taken_error(name: str, ref_directory: str) -> AlreadyExists:
    message = f"{ref_kind_of(ref_directory)} '{name}' already exists"
    if ref_directory == layout.REFS:
        return AlreadyExists(message, branch=name)
    return AlreadyExists(message, what=f"tag '{name}'")


def ref_kind_of(ref_directory: str) -> RefKind:
    """Return which kind of names a directory of ref objects contains: branches or tags."""
    return "branch" if ref_directory == layout.REFS else "tag"


def _list_ref_objects(store: Store, directory: str, ref_directory: str) -> list[tuple[str, int]]:
    """Return the names and numbers of ref objects, skipping files written by other programs."""
    parsed_names = (
        layout.parse_ref_name(listed_file.name, ref_directory) for listed_file in store.objects.list(directory)
    )
    return [parsed for parsed in parsed_names if parsed is not None]


def open_name(store: Store, ref: Ref) -> dict[str, int]:
    """Claim a name for a branch. If several processes try at once, all but one get `AlreadyExists`.

    Return the highest ref number of every name. The numbers are read again after the claim, because the name may
    already have been released.
    """
    create_ref_object(store, ref)
    highest_numbers = list_highest_numbers(store)
    if highest_numbers.get(ref.name) != ref.number:
        message = f"branch '{ref.name}' does not exist: it was deleted immediately after it was created"
        raise BranchNotFound(message, branch=ref.name)
    return highest_numbers


def create_ref_object(store: Store, ref: Ref, extra_members: Mapping[str, Any] | None = None) -> None:
    """Create the object that claims a name, with `extra_members` in addition to the ref's own members.

    For an existing branch, the extra members must include a `nonce`: several processes may claim a name for the branch
    at the same time, and the nonce identifies the process that created the object.
    """
    facts = {"ulid": ref.ulid, "parent": ref.parent, "fork_commit": ref.fork_commit}
    object_name = layout.ref_name(ref.name, ref.number, ref.directory)
    if not store.objects.create_json(object_name, {"nonce": ref.ulid, **(extra_members or {}), **facts}):
        raise _name_taken_error(ref.name, ref.directory)


def close_renamed_name(store: Store, ref: Ref, new_name: str, nonce: str) -> bool:
    """Release a renamed branch's old name; return False if another process released it."""
    object_name = layout.ref_name(ref.name, ref.number + 1, ref.directory)
    facts = {"deleted": ref.ulid, "renamed_to": new_name, "nonce": f"renamed-{nonce}"}
    return store.objects.create_json(object_name, facts)


def withdraw_name(store: Store, ref: Ref, nonce: str) -> None:
    """Release a name that was just claimed. The branch or tag itself remains."""
    object_name = layout.ref_name(ref.name, ref.number + 1, ref.directory)
    store.objects.create_json(object_name, {"deleted": ref.ulid, "nonce": f"withdrawn-{nonce}"})


def close_name(store: Store, ref: Ref) -> None:
    """Release a name and record which branch it belonged to. Releasing a name twice is harmless."""
    object_name = layout.ref_name(ref.name, ref.number + 1, ref.directory)
    store.objects.create_json(object_name, {"deleted": ref.ulid, "nonce": f"deleted-{ref.ulid}"})
