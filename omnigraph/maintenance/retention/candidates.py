"""Select the files in a survey that are no longer needed.

This module defines which kinds of files a collector may remove. In a directory that is still in use, only files of
known kinds are selected, and never the versions that external tools see. In an unreferenced directory, all files are
selected. Old manifest versions are handled in `old_versions`, because removing them needs no handshake.
"""

from collections.abc import Iterator, Sequence
from datetime import timedelta

from omnigraph.errors import GraphNotInitialized, StorageError
from omnigraph.history.live_set import LiveSet
from omnigraph.history.manifest import read_manifest
from omnigraph.maintenance.retention.file_survey import FileSurvey
from omnigraph.publish.recover import UNFINISHED_FILE_AGE
from omnigraph.publish.trim_versions import fragments_of_version
from omnigraph.storage import layout
from omnigraph.storage.file_roles import (
    MANIFEST_ROOTS,
    TABLE_ROOTS,
    attached_version_number,
    attached_versions_of,
    owning_directory,
    subdirectory_of,
)
from omnigraph.storage.manifest_cell import cell_files
from omnigraph.storage.object_backend import ListedObject
from omnigraph.storage.store import Store
from omnigraph.storage.transfer import version_files

from .intent_protection import IntentProtection
from .mark_live import Marking

_KNOWN_SUBDIRECTORIES = {"_versions", "data", "_deletions", "_indices", "_transactions"}


def select_deletable(marking: Marking, protected: IntentProtection) -> list[str]:
    """Select all unreachable files that are old enough and older than every running operation."""
    mark_tombstones(marking)
    mark_attached_versions(marking)
    survey, grace = marking.survey, marking.policy.grace
    candidates = [*_table_candidates(marking), *_manifest_candidates(marking), *_object_candidates(survey)]
    unfinished_age = max(grace, UNFINISHED_FILE_AGE)
    candidates += [
        unfinished_file.name
        for unfinished_file in survey.unfinished.values()
        if _is_old_enough(survey, unfinished_file, unfinished_age)
    ]
    return sorted(
        file_name
        for file_name in candidates
        if not marking.live.contains(file_name)
        and _is_old_enough(survey, survey.files.get(file_name), grace)
        and not protected.covers(survey.modified_time(file_name))
    )


def select_still_deletable(queued_names: Sequence[str], marking: Marking, protected: IntentProtection) -> list[str]:
    """Return the queued names that are still unreachable after a second mark."""
    live, modified_time = marking.live, marking.survey.modified_time
    return [
        file_name
        for file_name in queued_names
        if not live.contains(file_name) and not protected.covers(modified_time(file_name))
    ]


def mark_tombstones(marking: Marking) -> None:
    """Keep the closing version of every deleted branch or tag, and the files needed to read it.

    A late swap on a deleted branch must find this version. Otherwise, the swap would succeed.
    """
    used_locations = used_directories(marking.live)
    for directory in marking.survey.manifest_files():
        if directory in used_locations:
            continue
        ulid = directory.rpartition("/")[2]
        try:
            manifest = read_manifest(marking.store, ulid)
        except GraphNotInitialized:
            continue  # the manifest was never created
        except StorageError:  # the manifest may be torn; recovery sets it aside
            marking.live.directories.add(directory)
            continue
        if manifest.state.head.closed:
            marking.live.names |= set(cell_files(manifest.cell))


def used_directories(live: LiveSet) -> set[str]:
    """Return the directories of tables and manifests that are at least partially kept."""
    return {*live.directories, *map(owning_directory, live.names)}


def mark_attached_versions(marking: Marking) -> None:
    """Keep the table versions that external tools see: the first version, and the tools' own commits."""
    for location in marking.used_tables:
        for version in attached_versions_of(marking.survey.files, location):
            version_key = (location, version)
            if version_key not in marking.version_contents:
                marking.version_contents[version_key] = version_files(marking.store, *version_key)
            marking.live.add_version(*version_key, marking.version_contents[version_key])


def _table_candidates(marking: Marking) -> Iterator[str]:
    for file_name in marking.survey.files:
        if not file_name.startswith(TABLE_ROOTS):
            continue
        is_used = owning_directory(file_name) in marking.used_tables
        if not is_used or (subdirectory_of(file_name) in _KNOWN_SUBDIRECTORIES and not _must_stay_for_tools(file_name)):
            yield file_name


def _must_stay_for_tools(file_name: str) -> bool:
    """Return whether a file belongs to the first version, or to a version that is not detached."""
    base_name = file_name.rpartition("/")[2]
    if subdirectory_of(file_name) == "_transactions":
        return base_name.startswith("0-")
    return subdirectory_of(file_name) == "_versions" and (
        attached_version_number(file_name) is not None or not base_name.endswith(".manifest")
    )


def _manifest_candidates(marking: Marking) -> Iterator[str]:
    """Yield the unreferenced fragments in used manifests, and all files in unused manifests."""
    used_locations = used_directories(marking.live)
    for directory, files in marking.survey.manifest_files().items():
        if directory not in used_locations:
            yield from (listed_file.name for listed_file in files)
            continue
        fragment_names = [listed_file.name for listed_file in files if subdirectory_of(listed_file.name) == "data"]
        yield from sorted({*fragment_names} - _referenced_fragments(marking.store, files, fragment_names))


def _referenced_fragments(store: Store, files: Sequence[ListedObject], fragment_names: Sequence[str]) -> set[str]:
    """Return the fragments that versions reference, or all fragments if there are as many versions as fragments."""
    version_names = [listed_file.name for listed_file in files if attached_version_number(listed_file.name) is not None]
    if len(version_names) == len(fragment_names):
        return set(fragment_names)
    present_fragments = set(fragment_names)
    return {
        fragment_name
        for version_name in version_names
        for fragment_name in fragments_of_version(store, version_name, present_fragments)
    }


def _object_candidates(survey: FileSurvey) -> Iterator[str]:
    for object_name in survey.files:
        if not object_name.startswith((*TABLE_ROOTS, *MANIFEST_ROOTS)):
            yield object_name


def _is_old_enough(survey: FileSurvey, listed_file: ListedObject | None, min_age: timedelta) -> bool:
    return listed_file is None or survey.taken_at - listed_file.modified >= min_age


def find_orphans(marking: Marking, deletable_names: Sequence[str]) -> tuple[str, ...]:
    """Return the directories of branches and tags whose creation was never completed."""
    branch_directories = {
        owning_directory(file_name) for file_name in deletable_names if file_name.startswith(f"{layout.BRANCHES}/")
    }
    return tuple(sorted(branch_directories - used_directories(marking.live)))


def find_unreferenced_tables(marking: Marking, deletable_names: Sequence[str]) -> tuple[str, ...]:
    """Return the table directories that contain no referenced files."""
    table_directories = {
        owning_directory(file_name) for file_name in deletable_names if file_name.startswith(TABLE_ROOTS)
    }
    return tuple(sorted(table_directories - marking.used_tables))
