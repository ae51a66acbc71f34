"""Old versions of manifests, and lower numbers of names: what may go at any time.

The log holds all history, so nobody needs an old state: whoever is found with one reloads. The
newest version of a manifest and the highest number of a name always stay. Oldest first, so that a
version that is gone has none below it.
"""

import logging
import re
from collections.abc import Iterator, Set
from datetime import datetime, timedelta
from itertools import pairwise

from omnigraph.errors import StorageError
from omnigraph.history import refs
from omnigraph.storage import layout
from omnigraph.storage.objects import Found
from omnigraph.storage.store import Store

from .policy import GRACE
from .survey import Survey, kind_of, place_of, version_number

_log = logging.getLogger("omnigraph")
_FRAGMENT = re.compile(rb"[0-9A-Za-z_-]+\.lance")
_TRANSACTION = re.compile(rb"[0-9]+-[0-9a-f-]{36}\.txn")
EVERY = 64  # publishes of a branch
STATES = 1024  # on a disk that stay at most, however young: whoever opens the branch lists them
_MOST = 2 * EVERY  # versions that one publish removes


def named_by_version(store: Store, version: str, held: Set[str]) -> list[str]:
    """The files of `held` that a version of a manifest names, by its bytes; none when it is gone.

    The byte before a name tells its length, and may look like a part of it; a version may name a
    file more than once.
    """
    body = store.objects.read(version) or b""
    place = place_of(version)
    found = (f"{place}/data/{one.decode()}" for one in _names(body))
    return [one for one in dict.fromkeys(found) if one in held]


def _names(body: bytes) -> Iterator[bytes]:
    for one in _FRAGMENT.findall(body):
        yield from (one, one[1:])


def trim_when_due(store: Store, ulid: str, version: int) -> int:
    """After every so many publishes of a branch, remove states that are too old, or too many.

    So a graph that nobody ever cleans up keeps no more of them than it got within the grace, and on
    a disk few enough to be opened quickly. Gives how many went. A write that landed never fails.
    """
    if version % EVERY:
        return 0
    try:
        return _trim(store, layout.manifest_directory(ulid), version)
    except (StorageError, OSError) as error:
        _log.warning("old states of a branch could not be removed: %s", error)
        return 0


def _trim(store: Store, place: str, newest: int) -> int:
    """Oldest first, and what they name after them: a version that is gone has none below it."""
    from .sweep import in_order, remove  # not for every first write of a process

    listed = {
        number: one
        for one in store.objects.list(f"{place}/_versions")
        if (number := version_number(one.name)) is not None
    }
    if newest not in listed:
        return 0
    until = listed[newest].modified - GRACE
    many = newest - STATES if store.root.local else 0  # others show the newest ones first
    old = [
        listed[number].name
        for number, after in pairwise(sorted(listed))
        if after <= newest and (listed[after].modified < until or number <= many)
    ][:_MOST]
    bodies = [store.objects.read(name) or b"" for name in old]
    kept = set(_named(place, store.objects.read(listed[newest].name) or b"")) if old else set()
    for name in old:
        store.objects.remove(name)
    named = {one for body in bodies for one in _named(place, body)}
    remove(store, in_order(named - kept), lambda *_: None)
    return len(old)


def _named(place: str, body: bytes) -> Iterator[str]:
    """The files that a version names, by its bytes: the byte before a name tells its length."""
    for kind, pattern in (("data", _FRAGMENT), ("_transactions", _TRANSACTION)):
        for one in pattern.finditer(body):
            name = one.group()
            if body[one.start() - 1] != len(name):
                name = name[1:] if name[0] == len(name) - 1 else b""
            if name:
                yield f"{place}/{kind}/{name.decode()}"


def old_versions(
    store: Store, survey: Survey, grace: timedelta, spared: Set[str] = frozenset()
) -> Iterator[list[str]]:
    """What old versions of manifests consist of, version by version, oldest first.

    A version is old when the one after it is older than the grace. Manifests in `spared` keep all
    their versions.
    """
    for files in (found for place, found in survey.manifests().items() if place not in spared):
        listed = {number: one for one in files if (number := version_number(one.name)) is not None}
        numbers = sorted(listed)
        if len(numbers) < 2:
            continue
        held = {one.name for one in files}
        held -= set(named_by_version(store, listed[numbers[-1]].name, held))
        for number, after in pairwise(numbers):
            if survey.at - listed[after].modified < grace:
                break
            version = listed[number].name
            yield [version, *named_by_version(store, version, held)]
        yield _transactions(files, numbers[-1], survey.at - grace)


def _transactions(files: list[Found], newest: int, until: datetime) -> list[str]:
    """Records of old swaps, which nobody reads."""
    found = [one for one in files if kind_of(one.name) == "_transactions"]
    return [one.name for one in found if one.modified <= until and _base(one.name) < newest - 1]


def _base(name: str) -> int:
    number = name.rpartition("/")[2].partition("-")[0]
    return int(number) if number.isdecimal() else 1 << 64


def lower_numbers(store: Store) -> list[str]:
    """The objects of names that a higher number replaced."""
    found: list[str] = []
    for place in (layout.REFS, layout.TAGS):
        highest = refs.list_numbers(store, place)
        for one in store.objects.list(place):
            parsed = layout.parse_ref_name(one.name, place)
            if parsed is not None and parsed[1] < highest.get(parsed[0], 0):
                found.append(one.name)
    return found
