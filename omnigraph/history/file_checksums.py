"""Store file checksums in commit rows, and collect them from logs.

A commit records the checksums of the files that it added to each table. A bulk load records its checksums in a separate
object to keep the state small, because every publish rewrites the state. Files written before checksums were introduced
have no recorded checksum.
"""

from collections.abc import Iterable, Mapping, Set
from typing import Any

from omnigraph.errors import StorageError
from omnigraph.storage import layout
from omnigraph.storage.checksums import FileChecksum, FileChecksums
from omnigraph.storage.store import Store, version_file_names
from omnigraph.values import clock_and_ids
from omnigraph.values.table_key import TableKey

from .commit import Commit, TableEntry
from .commit_log import HistoryLog
from .state import GraphState

# If a commit adds more files, their checksums are sealed in a separate object instead of the commit's row.
MAX_INLINE_FILES = 32
_SEALED_MEMBER = "sealed"
_VERSION_FILE = "v"  # represents the table version's own file, which the table entry identifies
_DATA_PREFIX, _DATA_SUFFIX = "data/", ".lance"

ChangedTables = Mapping[TableKey, TableEntry | None]


def record_checksums(store: Store, changed_tables: ChangedTables, files: FileChecksums) -> Mapping[str, Any]:
    """Return the checksums of the files that a commit adds, in the form in which the commit's row stores them.

    If there are many files, their checksums are written to a separate object before the commit that
    refers to it. A crash between the two writes leaves an unreferenced object.
    """
    packed_checksums = pack_checksums(changed_tables, files)
    if len(files) <= MAX_INLINE_FILES:
        return packed_checksums
    object_name = f"{layout.CHECKSUMS}/{clock_and_ids.new_ulid()}"
    store.objects.create_json(object_name, {"files": packed_checksums})
    return {_SEALED_MEMBER: object_name}


def pack_checksums(changed_tables: ChangedTables, files: FileChecksums) -> dict[str, Any]:
    """Return the checksums of the changed tables' files, by table and shortened file name."""
    packed_checksums: dict[str, Any] = {}
    for table_key, entry in changed_tables.items():
        directory_prefix = f"{entry.location}/" if entry is not None else None
        table_files = [
            file_name for file_name in files if directory_prefix is not None and file_name.startswith(directory_prefix)
        ]
        if entry is not None and table_files:
            packed_checksums[table_key] = {
                _shorten_file_name(entry, file_name): files[file_name].to_json() for file_name in table_files
            }
    return packed_checksums


def find_checksums(
    store: Store, state: GraphState, file_names: Set[str], *, cache_chunks: bool = True
) -> dict[str, FileChecksum]:
    """Return the checksums of the given files, searching from the newest commit until all are found.

    The result omits files that were written before checksums were introduced. Pass `cache_chunks=False` if the same
    part of the log will not be searched again.
    """
    return find_checksums_in_log(store, HistoryLog(store, state), file_names, cache_chunks=cache_chunks)


def find_checksums_in_log(
    store: Store, log: HistoryLog, file_names: Set[str], *, cache_chunks: bool = True
) -> dict[str, FileChecksum]:
    """Return the checksums of the given files from one log, in the form that `find_checksums` returns."""
    checksums: dict[str, FileChecksum] = {}
    for commit in log.iter_all_commits(cache_chunks=cache_chunks):
        if checksums.keys() >= file_names:
            break
        recorded_checksums = read_checksums(store, commit)
        checksums |= {file_name: recorded_checksums[file_name] for file_name in file_names & recorded_checksums.keys()}
    return checksums


def collect_checksums(store: Store, states: Iterable[GraphState]) -> dict[str, FileChecksum]:
    """Return all checksums recorded in the logs of the given states."""
    checksums: dict[str, FileChecksum] = {}
    read_commit_ids: set[str] = set()
    for state in states:
        for commit in HistoryLog(store, state).iter_all_commits():
            if commit.id not in read_commit_ids:
                read_commit_ids.add(commit.id)
                checksums |= read_checksums(store, commit)
    return checksums


def read_checksums(store: Store, commit: Commit) -> dict[str, FileChecksum]:
    """Return the checksums that one commit records."""
    packed_checksums = commit.files
    if _SEALED_MEMBER in packed_checksums:
        packed_checksums = _read_sealed(store, packed_checksums[_SEALED_MEMBER])
    return {
        _expand_file_name(entry, short_name): FileChecksum.from_json(checksum_facts)
        for table_key, table_files in packed_checksums.items()
        if (entry := commit.tables.get(TableKey(table_key))) is not None
        for short_name, checksum_facts in table_files.items()
    }


def _read_sealed(store: Store, object_name: str) -> Mapping[str, Any]:
    """Return the content of a sealed object, which never changes."""
    cached_files: Mapping[str, Any] | None = store.object_cache.get(object_name)
    if cached_files is not None:
        return cached_files
    stored_facts = store.objects.read_json(object_name)
    if stored_facts is None or not isinstance(stored_facts.get("files"), dict):
        raise StorageError(
            f"{object_name}, the checksum file for a bulk write, is missing or damaged",
            kind="permanent",
            effect="none",
            hint="restore the file from a backup; the data may be intact",
        )
    sealed_files: Mapping[str, Any] = stored_facts["files"]
    store.object_cache.put(object_name, sealed_files, weight=max(1, sum(map(len, sealed_files.values())) // 8))
    return sealed_files


def _shorten_file_name(entry: TableEntry, file_name: str) -> str:
    """Return a file name in the short form in which commit rows store it.

    >>> entry = TableEntry("node:A", "nodes/a", 1, 7, "c", 0)
    >>> names = ("nodes/a/_versions/d7.manifest", "nodes/a/data/01.lance")
    >>> [_shorten_file_name(entry, name) for name in names]
    ['v', '01']
    """
    if file_name in version_file_names(entry.location, entry.lance_version):
        return _VERSION_FILE
    relative_name = file_name.removeprefix(f"{entry.location}/")
    stem = relative_name.removeprefix(_DATA_PREFIX).removesuffix(_DATA_SUFFIX)
    return stem if relative_name == f"{_DATA_PREFIX}{stem}{_DATA_SUFFIX}" and "/" not in stem else relative_name


def _expand_file_name(entry: TableEntry, short_name: str) -> str:
    """Return a file's root-relative name, given its short form.

    >>> entry = TableEntry("node:A", "nodes/a", 1, 7, "c", 0)
    >>> _expand_file_name(entry, "01"), _expand_file_name(entry, "_deletions/0-1-2.arrow")
    ('nodes/a/data/01.lance', 'nodes/a/_deletions/0-1-2.arrow')
    """
    if short_name == _VERSION_FILE:
        lance_version = entry.lance_version
        attached = lance_version < 1 << 63
        stem = f"{(1 << 64) - 1 - lance_version:020}" if attached else f"d{lance_version}"
        return f"{entry.location}/_versions/{stem}.manifest"
    if "/" not in short_name:
        short_name = f"{_DATA_PREFIX}{short_name}{_DATA_SUFFIX}"
    return f"{entry.location}/{short_name}"
