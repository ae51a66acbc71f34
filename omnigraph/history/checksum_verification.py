"""Verify files against their checksums before a rewrite and, if requested, when the files are first used.

Without this verification, a rewrite could copy damage into a new file whose checksum would then match the damaged
content. On an object store, no file is read solely for verification, because such a store verifies its own data.
"""

import threading
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field

from omnigraph.errors import HistoryReclaimed, OmnigraphError, StorageError
from omnigraph.storage import layout
from omnigraph.storage.checksums import FileChecksum, FileChecksums, find_mismatch
from omnigraph.storage.failures import DamagedError
from omnigraph.storage.file_verification import verify_files
from omnigraph.storage.store import Store
from omnigraph.storage.table import Table
from omnigraph.storage.transfer import VersionFiles, version_files

from . import refs
from .commit_log import HistoryLog
from .file_checksums import find_checksums, read_checksums
from .manifest import read_manifest
from .state import GraphState

VerifyFiles = Callable[[Store, FileChecksums], dict[str, str]]


def find_damaged_files(
    store: Store, state: GraphState, file_names: Iterable[str], verify: VerifyFiles = verify_files
) -> dict[str, DamagedError]:
    """Return the files that do not match their checksums, each with its error.

    `verify` reads the files. By default, threads in this process read them.
    """
    requested_names = frozenset(file_names)
    try:
        expected_checksums = find_checksums(store, state, requested_names)
    except HistoryReclaimed:  # the log chunks were merged in the meantime, and the old chunks removed
        expected_checksums = find_checksums(store, read_manifest(store, state.head.ulid).state, requested_names)
    mismatches = verify(store, expected_checksums)
    return {file_name: mismatch_error(file_name, mismatch) for file_name, mismatch in mismatches.items()}


def mismatch_error(file_name: str, reason: str) -> DamagedError:
    """Return the error for a file whose bytes differ from those that were written."""
    return DamagedError(f"{file_name} is damaged: {reason}; nothing was changed")


def check_intact(store: Store, state: GraphState, file_names: Iterable[str]) -> None:
    """Raise `DamagedError` if any of the given files does not match its checksum."""
    for error in find_damaged_files(store, state, file_names).values():
        raise error


def make_intact_test(store: Store, state: GraphState) -> Callable[[Iterable[str]], bool]:
    """Return a function that tests whether files match their checksums and may therefore be rewritten.

    Files without a checksum pass. On an object store, every file passes, because reading it would take a request.
    """

    def files_are_intact(file_names: Iterable[str]) -> bool:
        if not store.root.is_local:
            return True
        try:
            # The caller rewrites these files, so their checksums are not needed again.
            expected_checksums = find_checksums(store, state, frozenset(file_names), cache_chunks=False)
            return not any(
                find_mismatch(store, file_name, checksum) for file_name, checksum in expected_checksums.items()
            )
        except OmnigraphError:  # an unreadable log must not block a write
            return False

    return files_are_intact


@dataclass(slots=True)
class FirstUseVerifier:
    """Verifies the files in each table version that is opened. Each file is verified once per process.

    The checksums come from the logs of all branches and tags. The logs are read again only if a version has a file
    without a known checksum.
    """

    checksums: dict[str, FileChecksum] = field(default_factory=dict)
    verified: set[str] = field(default_factory=set)
    _read_commits: set[str] = field(default_factory=set)
    _unrecorded: set[str] = field(default_factory=set)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __call__(self, store: Store, table: Table) -> None:
        """Raise `DamagedError` if a file in the table does not match its checksum."""
        version_content = version_files(store, table.location, table.version)
        with self._lock:
            self._verify_files(store, version_content)

    def _verify_files(self, store: Store, version_content: VersionFiles) -> None:
        needed_names = set(version_content.named_files)
        if not needed_names <= self.checksums.keys() | self._unrecorded:
            self._load_checksums(store)
            self._unrecorded |= needed_names - self.checksums.keys()
        blob_directories = (file_name.removesuffix(".lance") for file_name in version_content.data_files)
        needed_names |= self._recorded_files_below((*version_content.index_directories, *blob_directories))
        for file_name in sorted((needed_names & self.checksums.keys()) - self.verified):
            mismatch = find_mismatch(store, file_name, self.checksums[file_name])
            if mismatch is not None:
                raise mismatch_error(file_name, mismatch)
            self.verified.add(file_name)

    def _recorded_files_below(self, directories: Iterable[str]) -> set[str]:
        """Return the files in the given directories that have known checksums, such as index files and blobs."""
        prefixes = tuple(f"{directory}/" for directory in directories)
        return {file_name for file_name in self.checksums if prefixes and file_name.startswith(prefixes)}

    def _load_checksums(self, store: Store) -> None:
        for ref_directory in (layout.REFS, layout.TAGS):
            for ref_name in refs.try_list_open_names(store, ref_directory):
                # Damage to another branch is reported when that branch is opened and by `check`.
                with suppress(OmnigraphError):
                    ref = refs.find_open_ref(store, ref_name, ref_directory)
                    if ref is not None:
                        self._load_branch_checksums(store, ref.ulid)

    def _load_branch_checksums(self, store: Store, ulid: str) -> None:
        for commit in HistoryLog(store, read_manifest(store, ulid).state).iter_all_commits():
            if commit.id not in self._read_commits:
                with suppress(StorageError):  # a lost checksum object does not mean that files are damaged
                    self.checksums.update(read_checksums(store, commit))
                self._read_commits.add(commit.id)
