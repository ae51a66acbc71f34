"""Old versions of manifests, and lower numbers of names: what may go at any time.

The log holds all history, so nobody needs an old state: whoever is found with one reloads. The
newest version of a manifest and the highest number of a name always stay. Oldest first, so that a
version that is gone has none below it.
"""

import re
from collections.abc import Iterator, Set
from datetime import datetime, timedelta
from itertools import pairwise

from omnigraph.history import refs
from omnigraph.storage import layout
from omnigraph.storage.objects import Found
from omnigraph.storage.store import Store

from .survey import Survey, kind_of, place_of, version_number

_FRAGMENT = re.compile(rb"[0-9A-Za-z_-]+\.lance")


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


def old_versions(store: Store, survey: Survey, grace: timedelta) -> Iterator[list[str]]:
    """What old versions of manifests consist of, version by version, oldest first.

    A version is old when the one after it is older than the grace.
    """
    for files in survey.manifests().values():
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
