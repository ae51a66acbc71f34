"""Select the files of a survey that nothing needs.

Owns which kinds of files a collector may remove. In a directory that is still used it selects only
known kinds, and never the versions that external tools see; of an unreferenced directory it selects
everything. Old manifest versions are handled in `trim`: they need no handshake.
"""

from collections.abc import Iterator, Sequence
from datetime import timedelta

from omnigraph.errors import GraphNotInitialized, StorageError
from omnigraph.history.manifest import read_manifest
from omnigraph.history.recover import UNFINISHED
from omnigraph.storage import layout
from omnigraph.storage.cell import files_of
from omnigraph.storage.objects import Found
from omnigraph.storage.store import Store
from omnigraph.storage.transfer import version_files

from .live import Live
from .protect import Protected
from .roots import Marking
from .survey import MANIFESTS, TABLES, Survey, attached, kind_of, place_of, version_number
from .trim import named_by_version

_KNOWN = {"_versions", "data", "_deletions", "_indices", "_transactions"}


def condemn(marking: Marking, protected: Protected) -> list[str]:
    """Select everything unreachable that is old enough and not newer than a running operation."""
    mark_tombstones(marking)
    mark_attached(marking)
    survey, grace = marking.survey, marking.policy.grace
    found = [*_of_tables(marking), *_of_manifests(marking), *_objects(survey)]
    unfinished = max(grace, UNFINISHED)
    found += [one.name for one in survey.unfinished.values() if _old(survey, one, unfinished)]
    return sorted(
        name
        for name in found
        if not marking.live.holds(name)
        and _old(survey, survey.files.get(name), grace)
        and not protected.holds(survey.modified(name))
    )


def still_condemned(names: Sequence[str], marking: Marking, protected: Protected) -> list[str]:
    """Return the queued names that a second mark still finds unreachable."""
    live, modified = marking.live, marking.survey.modified
    return [one for one in names if not live.holds(one) and not protected.holds(modified(one))]


def mark_tombstones(marking: Marking) -> None:
    """Keep the closing version of every deleted branch or tag, with the files it is read from.

    A late swap of a deleted branch must find it; otherwise the swap would succeed.
    """
    used = used_places(marking.live)
    for place in marking.survey.manifests():
        if place in used:
            continue
        ulid = place.rpartition("/")[2]
        try:
            opened = read_manifest(marking.store, ulid)
        except GraphNotInitialized:
            continue  # never created
        except StorageError:  # possibly torn: recovery of its creation will set it aside
            marking.live.places.add(place)
            continue
        if opened.state.head.closed:
            marking.live.names |= set(files_of(opened.cell))


def used_places(live: Live) -> set[str]:
    """Return the tables and manifests of which something stays."""
    return {*live.places, *map(place_of, live.names)}


def mark_attached(marking: Marking) -> None:
    """Keep what external tools see of a used table: its first version, and their own commits."""
    for location in marking.tables:
        for version in attached(marking.survey.files, location):
            key = (location, version)
            if key not in marking.versions:
                marking.versions[key] = version_files(marking.store, *key)
            marking.live.add_version(*key, marking.versions[key])


def _of_tables(marking: Marking) -> Iterator[str]:
    for name in marking.survey.files:
        if not name.startswith(TABLES):
            continue
        used = place_of(name) in marking.tables
        if not used or (kind_of(name) in _KNOWN and not _is_first(name)):
            yield name


def _is_first(name: str) -> bool:
    """Whether a file belongs to the first version, or is not a detached version of ours."""
    last = name.rpartition("/")[2]
    if kind_of(name) == "_transactions":
        return last.startswith("0-")
    return kind_of(name) == "_versions" and (
        version_number(name) is not None or not last.endswith(".manifest")
    )


def _of_manifests(marking: Marking) -> Iterator[str]:
    """Yield unreferenced fragments of used manifests, and all files of unused ones."""
    used = used_places(marking.live)
    for place, files in marking.survey.manifests().items():
        if place not in used:
            yield from (one.name for one in files)
            continue
        data = [one.name for one in files if kind_of(one.name) == "data"]
        yield from sorted({*data} - _named(marking.store, files, data))


def _named(store: Store, files: Sequence[Found], data: Sequence[str]) -> set[str]:
    """Return the fragments that versions reference: one each, so equal counts suffice."""
    versions = [one.name for one in files if version_number(one.name) is not None]
    if len(versions) == len(data):
        return set(data)
    held = set(data)
    return {name for version in versions for name in named_by_version(store, version, held)}


def _objects(survey: Survey) -> Iterator[str]:
    for name in survey.files:
        if not name.startswith((*TABLES, *MANIFESTS)):
            yield name


def _old(survey: Survey, found: Found | None, age: timedelta) -> bool:
    return found is None or survey.at - found.modified >= age


def orphans(marking: Marking, names: Sequence[str]) -> tuple[str, ...]:
    """Return directories of branches and tags that were never created, or never named."""
    places = {place_of(name) for name in names if name.startswith(f"{layout.BRANCHES}/")}
    return tuple(sorted(places - used_places(marking.live)))


def unreferenced(marking: Marking, names: Sequence[str]) -> tuple[str, ...]:
    """Return table directories of which nothing is referenced any more."""
    places = {place_of(name) for name in names if name.startswith(TABLES)}
    return tuple(sorted(places - marking.tables))
