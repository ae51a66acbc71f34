"""Old manifest versions and superseded ref objects: these may be removed at any time.

The log holds the whole history, so nothing needs an old manifest version: a process that still has
one reloads. The newest version of a manifest and the highest number of a ref always stay. Versions
go oldest first, so that no version remains below a removed one.
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
EVERY = 64  # publishes of a branch between two trims
STATES = 1024  # versions kept at most on a disk, however recent: opening a branch lists them all
_MOST = 2 * EVERY  # versions that one publish removes


def named_by_version(store: Store, version: str, held: Set[str]) -> list[str]:
    """Return the present fragments that a manifest version references; empty if it is gone.

    Searches the bytes of the version. The byte before a name is its length and may look like a
    part of it; a version may reference a file more than once.
    """
    body = store.objects.read(version) or b""
    place = place_of(version)
    found = (f"{place}/data/{one.decode()}" for one in _names(body))
    return [one for one in dict.fromkeys(found) if one in held]


def _names(body: bytes) -> Iterator[bytes]:
    for one in _FRAGMENT.findall(body):
        yield from (one, one[1:])


def trim_when_due(store: Store, ulid: str, version: int) -> int:
    """After every `TRIM_INTERVAL` publishes of a branch, remove old or surplus versions.

    A graph that is never cleaned up then keeps only the versions of the grace period, and on a
    disk few enough to open quickly. Return the number of removed versions. Failures are only
    logged: the write has landed and must not fail.
    """
    if version % EVERY:
        return 0
    try:
        return _trim(store, layout.manifest_directory(ulid), version)
    except (StorageError, OSError) as error:
        _log.warning("old manifest versions of a branch could not be removed: %s", error)
        return 0


def _trim(store: Store, place: str, newest: int) -> int:
    """Remove versions oldest first, then their files: no version may remain below a removed one."""
    # Imported late, so that the first write of a process does not pay for it.
    from .sweep import in_order, remove

    listed = {
        number: one
        for one in store.objects.list(f"{place}/_versions")
        if (number := version_number(one.name)) is not None
    }
    if newest not in listed:
        return 0
    until = listed[newest].modified - GRACE
    many = newest - STATES if store.root.local else 0  # object stores list the newest ones first
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
    """Return the files that a version references; the byte before a name is its length."""
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
    """Yield the files of old manifest versions, version by version, oldest first.

    A version is old if its successor is older than the grace period. Manifests in
    `spared_directories` keep all their versions.
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
    """Return the records of old swaps, which nothing reads any more."""
    found = [one for one in files if kind_of(one.name) == "_transactions"]
    return [one.name for one in found if one.modified <= until and _base(one.name) < newest - 1]


def _base(name: str) -> int:
    number = name.rpartition("/")[2].partition("-")[0]
    return int(number) if number.isdecimal() else 1 << 64


def lower_numbers(store: Store) -> list[str]:
    """Return the ref objects that a higher number superseded."""
    found: list[str] = []
    for place in (layout.REFS, layout.TAGS):
        highest = refs.list_numbers(store, place)
        for one in store.objects.list(place):
            parsed = layout.parse_ref_name(one.name, place)
            if parsed is not None and parsed[1] < highest.get(parsed[0], 0):
                found.append(one.name)
    return found
