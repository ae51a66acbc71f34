"""Find old manifest versions and superseded ref objects, which a cleanup may always remove.

The log contains the whole history, so old manifest versions are not needed: a process that still uses one loads the
newest version instead. A manifest's newest version and a ref's highest number are always kept.
"""

from collections.abc import Iterator, Set
from datetime import datetime, timedelta
from itertools import pairwise

from omnigraph.history import refs
from omnigraph.maintenance.retention.file_survey import FileSurvey
from omnigraph.publish.trim_versions import fragments_of_version
from omnigraph.storage import layout
from omnigraph.storage.file_roles import attached_version_number, subdirectory_of
from omnigraph.storage.object_backend import ListedObject
from omnigraph.storage.store import Store


def old_versions(
    store: Store, survey: FileSurvey, grace: timedelta, spared_directories: Set[str] = frozenset()
) -> Iterator[list[str]]:
    """Yield the files in old manifest versions, one version at a time, oldest first.

    A version is old if its successor is older than the grace period. Manifests in
    `spared_directories` keep all their versions.
    """
    for manifest_files in (
        listed_files
        for manifest_directory, listed_files in survey.manifest_files().items()
        if manifest_directory not in spared_directories
    ):
        files_by_version = {
            manifest_version: listed_file
            for listed_file in manifest_files
            if (manifest_version := attached_version_number(listed_file.name)) is not None
        }
        version_numbers = sorted(files_by_version)
        if len(version_numbers) < 2:
            continue
        removable_names = {listed_file.name for listed_file in manifest_files}
        removable_names -= set(fragments_of_version(store, files_by_version[version_numbers[-1]].name, removable_names))
        for manifest_version, next_number in pairwise(version_numbers):
            if survey.taken_at - files_by_version[next_number].modified < grace:
                break
            version_name = files_by_version[manifest_version].name
            yield [version_name, *fragments_of_version(store, version_name, removable_names)]
        yield _old_transactions(manifest_files, version_numbers[-1], survey.taken_at - grace)


def _old_transactions(files: list[ListedObject], newest_version: int, modified_before: datetime) -> list[str]:
    """Return the names of old swap records, which are no longer needed."""
    transaction_files = [
        transaction_file for transaction_file in files if subdirectory_of(transaction_file.name) == "_transactions"
    ]
    return [
        transaction_file.name
        for transaction_file in transaction_files
        if transaction_file.modified <= modified_before and _base_version(transaction_file.name) < newest_version - 1
    ]


def _base_version(transaction_name: str) -> int:
    number = transaction_name.rpartition("/")[2].partition("-")[0]
    return int(number) if number.isdecimal() else 1 << 64


def list_superseded_refs(store: Store) -> list[str]:
    """Return the ref objects that are superseded by ref objects with a higher number."""
    superseded_names: list[str] = []
    for ref_directory in (layout.REFS, layout.TAGS):
        highest_numbers = refs.list_highest_numbers(store, ref_directory)
        for listed_file in store.objects.list(ref_directory):
            name_and_number = layout.parse_ref_name(listed_file.name, ref_directory)
            if name_and_number is not None and name_and_number[1] < highest_numbers.get(name_and_number[0], 0):
                superseded_names.append(listed_file.name)
    return superseded_names
