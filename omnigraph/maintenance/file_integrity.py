"""Check the integrity of table versions: their manifest files and all files that they reference.

Each file is checked once, and its state is recorded. The size is always checked, and the content is compared with the
checksum that a commit recorded. Files that a cleanup removed can be distinguished from lost files, because a cleanup
removes a version before the files that it references.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal

from omnigraph.errors import OmnigraphError
from omnigraph.errors.counts import format_count
from omnigraph.maintenance.executors.protocol import Executor
from omnigraph.storage.checksums import FileChecksum, FileChecksums
from omnigraph.storage.deletions import deleted_offsets, deletion_files
from omnigraph.storage.failures import AbsentError, panics_as_errors
from omnigraph.storage.file_roles import owning_directory
from omnigraph.storage.index_fallback import incomplete_segments
from omnigraph.storage.raw_files import read_raw_batches, read_row_count
from omnigraph.storage.store import Store, version_file_names
from omnigraph.storage.table import open_unchecked_version
from omnigraph.storage.transfer import VersionFiles, version_files
from omnigraph.values import clock_and_ids
from omnigraph.values.table_key import TableKey

from .index_findings import IndexName, names_by_segment

FileFault = tuple[str, str]  # (file name, description of the fault)
TableVersion = tuple[str, int]
_MISSING = "the file is missing"
_DATA_SUFFIX, _BLOB_SUFFIX = ".lance", ".blob"
_INDEX_SUFFIXES = (".lance", ".idx")  # suffixes of index files, for all index kinds
VersionCondition = Literal["whole", "reclaimed", "broken"]


@dataclass(slots=True)
class FileIntegrity:
    """The known state of the versions and files in a root.

    If `open_files` is true, the check also opens files to verify that they are readable.
    """

    store: Store
    open_files: bool = True
    version_faults: dict[TableVersion, tuple[FileFault, ...]] = field(default_factory=dict)
    damaged_files: dict[str, str] = field(default_factory=dict)
    _intact_files: set[str] = field(default_factory=set)
    _listings: dict[str, dict[str, int]] = field(default_factory=dict)
    _files_by_version: dict[TableVersion, VersionFiles] = field(default_factory=dict)
    _incomplete_segments: dict[TableVersion, frozenset[str]] = field(default_factory=dict)
    _readable_index_files: dict[str, bool] = field(default_factory=dict)
    checksums: dict[str, FileChecksum] = field(default_factory=dict)
    verified_files: dict[str, str | None] = field(default_factory=dict)
    unrecorded_files: set[str] = field(default_factory=set)
    _blobs_by_file: dict[str, list[str]] = field(default_factory=dict)

    def add_checksums(self, checksums: FileChecksums) -> None:
        """Add the checksums that commits recorded."""
        for file_name in checksums.keys() - self.checksums.keys():
            self.checksums[file_name] = checksums[file_name]
            if file_name.endswith(_BLOB_SUFFIX):
                self._blobs_by_file.setdefault(f"{file_name.rpartition('/')[0]}{_DATA_SUFFIX}", []).append(file_name)

    def verify_checksums(self, executor: Executor, share: float = 1.0) -> None:
        """Compare the content of existing files with their recorded checksums.

        If `share` is below 1, only that fraction of the files, chosen at random, is verified.
        """
        directories = {owning_directory(file_name) for file_name in self.checksums}
        existing_files = {file_name for directory in directories for file_name in self._list_table(directory)}
        unverified_files = (self.checksums.keys() & existing_files) - self.verified_files.keys()
        selected_files = [
            candidate for candidate in sorted(unverified_files) if share >= 1 or clock_and_ids.random_fraction() < share
        ]
        mismatches = executor.verify_files(
            self.store, {file_name: self.checksums[file_name] for file_name in selected_files}
        )
        self.verified_files |= {file_name: mismatches.get(file_name) for file_name in selected_files}

    @property
    def checked_count(self) -> int:
        """The number of files checked so far."""
        return len(self._intact_files) + len(self.damaged_files) + len(self.version_faults)

    def reset(self) -> None:
        """Discard the file listings, because other processes may have written or removed files in the meantime."""
        for cached in (
            self.version_faults,
            self.damaged_files,
            self._intact_files,
            self._listings,
            self._files_by_version,
        ):
            cached.clear()
        self._incomplete_segments.clear()
        self._readable_index_files.clear()

    def faults(self, version: TableVersion) -> tuple[FileFault, ...]:
        """Return the files that a version needs but that are missing or unreadable."""
        if version not in self.version_faults:
            self.version_faults[version] = tuple(self._find_faults(version))
        table_files = self._files_by_version.get(version)
        file_names = () if table_files is None else self._with_blobs(table_files)
        later_faults = tuple(
            (file_name, self.damaged_files[file_name]) for file_name in file_names if file_name in self.damaged_files
        )
        return tuple(dict.fromkeys((*self.version_faults[version], *later_faults)))

    def lost_indexes(self, version: TableVersion) -> list[str]:
        """Return the index directories with missing files. Rows remain readable without the index."""
        self.faults(version)
        table_files, file_sizes = self._files_by_version.get(version), self._list_table(version[0])
        if table_files is None or not table_files.index_directories:
            return []
        if version not in self._incomplete_segments:
            table = open_unchecked_version(self.store, *version)
            self._incomplete_segments[version] = incomplete_segments(table, file_sizes)
        incomplete = self._incomplete_segments[version]
        return [
            index_directory
            for index_directory in table_files.index_directories
            if index_directory.rpartition("/")[2] in incomplete
        ]

    def index_names(self, version: TableVersion, type_key: TableKey) -> dict[str, IndexName]:
        """Map each index directory in a version to the index that it belongs to."""
        table = open_unchecked_version(self.store, *version)
        return {f"{version[0]}/_indices/{uuid}": index for uuid, index in names_by_segment(table, type_key).items()}

    def damaged_indexes(self, version: TableVersion) -> list[str]:
        """Return the index directories that are complete but contain a file that cannot be opened."""
        incomplete, file_sizes = self.lost_indexes(version), self._list_table(version[0])
        table_files = self._files_by_version.get(version)
        complete = [
            index_directory
            for index_directory in (table_files.index_directories if table_files is not None else ())
            if index_directory not in incomplete
        ]
        return [
            index_directory for index_directory in complete if not self._is_index_intact(index_directory, file_sizes)
        ]

    def _is_index_intact(self, index_directory: str, file_sizes: Mapping[str, int]) -> bool:
        """Return whether every file in an index is intact. Each file is opened once."""
        index_files = [candidate for candidate in file_sizes if candidate.startswith(f"{index_directory}/")]
        if any(self._checksum_mismatch(file_name, file_sizes) for file_name in index_files):
            return False
        unverified_files = [
            candidate
            for candidate in index_files
            if candidate.endswith(_INDEX_SUFFIXES) and candidate not in self.verified_files
        ]
        for file_name in unverified_files if self.open_files else ():
            if file_name not in self._readable_index_files:
                try:
                    read_row_count(self.store, file_name)
                except ValueError:
                    self._readable_index_files[file_name] = False
                else:
                    self._readable_index_files[file_name] = True
        return all(self._readable_index_files.get(file_name, True) for file_name in unverified_files)

    def classify_version(self, version: TableVersion) -> VersionCondition:
        """Classify a past version as complete, reclaimed by a cleanup, or broken."""
        faults = self.faults(version)
        if not faults:
            return "whole"
        version_path = f"{version[0]}/_versions/d{version[1]}.manifest"
        return "reclaimed" if faults == ((version_path, _MISSING),) else "broken"

    def read_data_files(self, version: TableVersion) -> None:
        """Read every data file in a version to the end, to find files that cannot be read."""
        table_files = self._files_by_version.get(version)
        for file_name in table_files.data_files if table_files is not None else ():
            try:
                for _ in read_raw_batches(self.store, file_name):
                    pass
            except ValueError:
                self.damaged_files.setdefault(file_name, "the file cannot be read to the end")

    def _find_faults(self, version: TableVersion) -> Iterable[FileFault]:
        location, lance_version = version
        file_sizes = self._list_table(location)
        version_paths = version_file_names(location, lance_version) & file_sizes.keys()
        if not version_paths:
            yield f"{location}/_versions/d{lance_version}.manifest", _MISSING
            return
        (file_name,) = version_paths
        difference = self._checksum_mismatch(file_name, file_sizes)
        if difference is not None:
            yield file_name, difference
            return
        try:
            with panics_as_errors():
                table_files = self._files_by_version[version] = version_files(self.store, location, lance_version)
                if self.open_files:
                    self._check_deletion_files(location, lance_version, file_sizes)
        except AbsentError:
            yield f"{location}/_versions/d{lance_version}.manifest", _MISSING
            return
        except (OmnigraphError, OSError, ValueError, RuntimeError):
            yield f"{location}/_versions/d{lance_version}.manifest", "the version cannot be read"
            return
        file_names = self._with_blobs(table_files)
        yield from (fault for file_name in file_names for fault in self._file_faults(file_name, file_sizes))

    def _with_blobs(self, table_files: VersionFiles) -> Iterator[str]:
        """Yield the files that a version references, including the recorded blobs next to its data files."""
        yield from table_files.named_files
        for data_file in table_files.data_files:
            yield from self._blobs_by_file.get(data_file, ())

    def _checksum_mismatch(self, file_name: str, file_sizes: Mapping[str, int]) -> str | None:
        """Describe how a file differs from its recorded checksum, or return None if no difference is known.

        The content is considered only if it has already been verified.
        """
        expected = self.checksums.get(file_name)
        if expected is None:
            self.unrecorded_files.add(file_name)
            return None
        if file_sizes[file_name] != expected.size and not expected.manifest_only:
            return f"the file has {format_count(file_sizes[file_name], 'byte')}, expected {expected.size}"
        return self.verified_files.get(file_name)

    def _check_deletion_files(self, location: str, lance_version: int, file_sizes: dict[str, int]) -> None:
        """Check that deletion files match the version, because otherwise deleted rows would reappear."""
        table = open_unchecked_version(self.store, location, lance_version)
        for fragment in table.dataset.get_fragments():
            for file_name in deletion_files(table, [fragment.metadata]):
                if file_name in self._intact_files or file_name in self.damaged_files or not file_sizes.get(file_name):
                    continue
                if self._checksum_mismatch(file_name, file_sizes) is not None:
                    continue  # already reported along with the version's files
                if deleted_offsets(self.store, table, fragment) is None:
                    self.damaged_files[file_name] = "the list of deleted rows cannot be read"

    def mark_unreadable(self, version: TableVersion, reason: str) -> None:
        """Record that a version cannot be read, although none of its files is known to be damaged."""
        version_path = f"{version[0]}/_versions/d{version[1]}.manifest"
        self.version_faults[version] = (*self.version_faults.get(version, ()), (version_path, reason))

    def _file_faults(self, file_name: str, file_sizes: dict[str, int]) -> Iterable[FileFault]:
        if file_name in self._intact_files:
            return
        if file_name not in self.damaged_files:
            self.damaged_files |= dict(self._inspect_file(file_name, file_sizes))
        if file_name in self.damaged_files:
            yield file_name, self.damaged_files[file_name]
        else:
            self._intact_files.add(file_name)

    def _inspect_file(self, file_name: str, file_sizes: dict[str, int]) -> Iterable[FileFault]:
        if file_name not in file_sizes:
            yield file_name, _MISSING
            return
        is_empty = file_sizes[file_name] == 0
        difference = "the file is empty" if is_empty else self._checksum_mismatch(file_name, file_sizes)
        if difference is not None:
            yield file_name, difference
        elif self.open_files and file_name.endswith(_DATA_SUFFIX) and file_name not in self.verified_files:
            try:
                read_row_count(self.store, file_name)
            except ValueError:
                yield file_name, "the file cannot be opened"

    def _list_table(self, location: str) -> dict[str, int]:
        """Return all files in a table with their sizes. Each table is listed only once."""
        if location not in self._listings:
            table_files = self.store.objects.list(location)
            self._listings[location] = {table_file.name: table_file.size for table_file in table_files}
        return self._listings[location]
