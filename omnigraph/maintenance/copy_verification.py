"""Before a copied graph can be opened, verify that it contains everything that its states reference.

This module defines what a state references: current and past table versions, log chunks and schemas. It reads only the
copy, never the source. Missing objects are reported, and the caller decides what to do about them.
"""

from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass, field

from omnigraph.history.commit import Commit, TableEntry
from omnigraph.history.commit_log import read_chunk
from omnigraph.history.state import GraphState
from omnigraph.storage.store import Store, version_file_names
from omnigraph.storage.transfer import version_files

CopiedVersion = tuple[str, int]


@dataclass(slots=True)
class ReferencedObjects:
    """The objects that states reference. Head versions must exist; past versions may have been cleaned up."""

    head_versions: set[CopiedVersion] = field(default_factory=set)
    past_versions: set[CopiedVersion] = field(default_factory=set)
    object_names: set[str] = field(default_factory=set)


@dataclass(frozen=True, slots=True)
class MissingObjects:
    """The missing objects: those that heads need, and past versions with missing files."""

    head_names: tuple[str, ...]
    past_versions: tuple[CopiedVersion, ...]


def find_missing_objects(
    store: Store, states: Iterable[GraphState], present_files: Mapping[str, int], source_data_files: Set[str]
) -> MissingObjects:
    """Return the objects that the states reference but that the copy lacks.

    `source_data_files` are the data files that still exist in the source after the copy. A sweep removes a data file
    before its blobs, so a data file that still exists in the source had all its blobs when it was copied. Versions do
    not list blobs, so without this check, missing blobs would go unnoticed.
    """
    states = list(states)
    chunk_names = {chunk.name for state in states for chunk in state.chunks}
    missing_chunks = sorted(chunk_names - present_files.keys())
    if missing_chunks:
        return MissingObjects(tuple(missing_chunks), ())
    references = _collect_references(store, states)
    checker = _VersionChecker(store, present_files, source_data_files)
    missing_names = [object_name for object_name in references.object_names if object_name not in present_files]
    missing_names += [
        object_name
        for table_version in references.head_versions
        for object_name in checker.missing_names(table_version)
    ]
    return MissingObjects(
        tuple(sorted(missing_names)), tuple(filter(checker.missing_names, sorted(references.past_versions)))
    )


def _collect_references(store: Store, states: Iterable[GraphState]) -> ReferencedObjects:
    references = ReferencedObjects()
    for state in states:
        references.object_names.add(state.schema.location)
        references.head_versions |= _table_versions(state.tables.values())
        _add_past_versions(references, state.tail)
        for chunk in state.chunks:
            commits, last_state = read_chunk(store, chunk)
            _add_past_versions(references, commits)
            references.past_versions |= _table_versions(last_state.tables.values())
    references.past_versions -= references.head_versions
    return references


def _add_past_versions(references: ReferencedObjects, commits: Iterable[Commit]) -> None:
    for commit in commits:
        references.past_versions |= _table_versions(entry for entry in commit.tables.values() if entry is not None)


def _table_versions(entries: Iterable[TableEntry]) -> set[CopiedVersion]:
    return {(entry.location, entry.lance_version) for entry in entries}


class _VersionChecker:
    """Checks whether all files in a table version are present."""

    def __init__(self, store: Store, present_files: Mapping[str, int], source_data_files: Set[str]) -> None:
        self.store = store
        self.present_files = present_files
        self.source_data_files = source_data_files
        self.present_directories = {file_name.rpartition("/")[0] for file_name in present_files}

    def missing_names(self, table_version: CopiedVersion) -> list[str]:
        """Return the names of a version's missing files."""
        version_files_present = version_file_names(*table_version) & self.present_files.keys()
        if not version_files_present:
            return [f"{table_version[0]}/_versions/d{table_version[1]}.manifest"]
        referenced_files = version_files(self.store, *table_version)
        missing_files = [file_name for file_name in referenced_files.named_files if file_name not in self.present_files]
        missing_files += [
            file_name for file_name in referenced_files.data_files if file_name not in self.source_data_files
        ]
        return missing_files + [
            index_directory
            for index_directory in referenced_files.index_directories
            if index_directory not in self.present_directories
        ]
