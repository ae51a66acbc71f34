"""Trim old manifest versions after a publish so that opening a branch stays fast.

The log contains the whole history, so old manifest versions are not needed. A process that still uses a removed version
loads the newest one, which is always kept. Versions are removed oldest first, so the remaining versions never have a
gap.
"""

import logging
import re
from collections.abc import Iterator, Set
from datetime import timedelta
from itertools import pairwise

from omnigraph.errors import StorageError
from omnigraph.storage import layout
from omnigraph.storage.file_roles import attached_version_number, owning_directory
from omnigraph.storage.store import Store

_log = logging.getLogger("omnigraph")
_FRAGMENT_PATTERN = re.compile(rb"[0-9A-Za-z_-]+\.lance")
_TRANSACTION_PATTERN = re.compile(rb"[0-9]+-[0-9a-f-]{36}\.txn")
# The time for which a superseded manifest version is kept, so that its readers can finish.
DEFAULT_GRACE = timedelta(minutes=60)
TRIM_INTERVAL = 64  # number of commits on a branch between two trims
# The maximum number of versions to keep locally, regardless of age. Opening a local branch lists all versions.
MAX_LOCAL_VERSIONS = 1024
_MAX_REMOVED_VERSIONS = 2 * TRIM_INTERVAL  # maximum number of versions that one publish removes


def fragments_of_version(store: Store, version_file: str, present_names: Set[str]) -> list[str]:
    """Return the existing fragments that a manifest version references, or an empty list if the version is missing.

    The names are found by searching the version's bytes. The byte before a name contains its length and may look like
    part of the name, so each match is tried with and without its first byte.
    """
    version_bytes = store.objects.read(version_file) or b""
    manifest_directory = owning_directory(version_file)
    possible_names = (
        f"{manifest_directory}/data/{fragment_name.decode()}"
        for fragment_name in _possible_fragment_names(version_bytes)
    )
    return [fragment_name for fragment_name in dict.fromkeys(possible_names) if fragment_name in present_names]


def _possible_fragment_names(version_bytes: bytes) -> Iterator[bytes]:
    for match_bytes in _FRAGMENT_PATTERN.findall(version_bytes):
        yield from (match_bytes, match_bytes[1:])


def trim_when_due(store: Store, branch_ulid: str, manifest_version: int) -> int:
    """After every `TRIM_INTERVAL` publishes on a branch, remove old and surplus versions.

    As a result, even a graph that is never cleaned up keeps only recent manifest versions. On a local disk, the number
    of versions is also limited, so that a branch opens quickly. Returns the number of removed versions. Failures are
    only logged, because the write has already been applied and must not fail.
    """
    if manifest_version % TRIM_INTERVAL:
        return 0
    try:
        return _trim_versions(store, layout.manifest_directory(branch_ulid), manifest_version)
    except (StorageError, OSError) as error:
        _log.warning("old manifest versions on a branch could not be removed: %s", error)
        return 0


def _trim_versions(store: Store, manifest_directory: str, newest_version: int) -> int:
    """Remove old versions, oldest first, and then the files that only these versions reference."""
    # Deferred, so that this import does not slow down a process's first write.
    from omnigraph.storage.file_removal import remove_files, sort_for_removal

    files_by_version = {
        number: listed_file
        for listed_file in store.objects.list(f"{manifest_directory}/_versions")
        if (number := attached_version_number(listed_file.name)) is not None
    }
    if newest_version not in files_by_version:
        return 0
    modified_before = files_by_version[newest_version].modified - DEFAULT_GRACE
    # Only local stores limit the number of versions: object stores list the newest version first, so old versions do
    # not slow down opening.
    last_surplus_version = newest_version - MAX_LOCAL_VERSIONS if store.root.is_local else 0
    old_names = [
        files_by_version[number].name
        for number, next_number in pairwise(sorted(files_by_version))
        if next_number <= newest_version
        and (files_by_version[next_number].modified < modified_before or number <= last_surplus_version)
    ][:_MAX_REMOVED_VERSIONS]
    old_bodies = [store.objects.read(version_name) or b"" for version_name in old_names]
    newest_files = (
        set(_files_named_in(manifest_directory, store.objects.read(files_by_version[newest_version].name) or b""))
        if old_names
        else set()
    )
    for version_name in old_names:
        store.objects.remove(version_name)
    named_files = {
        listed_file
        for version_bytes in old_bodies
        for listed_file in _files_named_in(manifest_directory, version_bytes)
    }
    remove_files(store, sort_for_removal(named_files - newest_files), lambda *_: None)
    return len(old_names)


def _files_named_in(manifest_directory: str, version_bytes: bytes) -> Iterator[str]:
    """Yield the files that a version references. In the version's bytes, each name is preceded by its length."""
    for subdirectory, pattern in (("data", _FRAGMENT_PATTERN), ("_transactions", _TRANSACTION_PATTERN)):
        for name_match in pattern.finditer(version_bytes):
            matched_name = name_match.group()
            if version_bytes[name_match.start() - 1] != len(matched_name):
                matched_name = matched_name[1:] if matched_name[0] == len(matched_name) - 1 else b""
            if matched_name:
                yield f"{manifest_directory}/{subdirectory}/{matched_name.decode()}"
