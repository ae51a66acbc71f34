"""Verify files against their checksums before they are rewritten, and on first use on request.

Owns the rule that damage is never copied into a new file, where no checksum could reveal it. On an
object store nothing is read for this alone: such a store verifies its own data.
"""

import threading
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field

from omnigraph.errors import HistoryReclaimed, OmnigraphError, StorageError
from omnigraph.storage import layout
from omnigraph.storage.checksums import FileChecksum, find_mismatch
from omnigraph.storage.failures import DamagedError
from omnigraph.storage.hands import Hands, Here
from omnigraph.storage.store import Store
from omnigraph.storage.table import Table
from omnigraph.storage.transfer import Files, version_files

from . import refs
from .file_checksums import find_checksums, read_checksums
from .log import Log
from .manifest import read_manifest
from .state import State


def damaged_files(
    store: Store, state: State, names: Iterable[str], executor: Hands
) -> dict[str, DamagedError]:
    """Return the files that do not match their checksums, each with its error."""
    wanted = frozenset(names)
    try:
        expected = find_checksums(store, state, wanted)
    except HistoryReclaimed:  # log chunks were merged since and the old ones cleaned up
        expected = find_checksums(store, read_manifest(store, state.head.ulid).state, wanted)
    wrong = executor.verify(store, expected)
    return {name: mismatch_error(name, reason) for name, reason in wrong.items()}


def mismatch_error(name: str, reason: str) -> DamagedError:
    """Return the error for a file whose bytes are not those that were written."""
    return DamagedError(f"{name} is damaged: {reason}; nothing was changed")


def check_intact(store: Store, state: State, names: Iterable[str]) -> None:
    """Raise `DamagedError` if one of these files does not match its checksum."""
    for error in damaged_files(store, state, names, Here()).values():
        raise error


def intact(store: Store, state: State) -> Callable[[Iterable[str]], bool]:
    """Return a test whether files may be rewritten: all that have a checksum match it.

    Only for local disks. Elsewhere every file passes, because reading it would cost a request.
    """

    def test(names: Iterable[str]) -> bool:
        if not store.root.local:
            return True
        try:
            expected = find_checksums(store, state, frozenset(names))
            return not any(find_mismatch(store, name, one) for name, one in expected.items())
        except OmnigraphError:  # an unreadable log must not block a write
            return False

    return test


@dataclass(slots=True)
class FirstUseVerifier:
    """Verifies the files of every table version that is opened, each file once per process.

    The checksums come from the logs of all branches and tags. They are read again only if a version
    has a file without a known checksum.
    """

    checksums: dict[str, FileChecksum] = field(default_factory=dict)
    verified: set[str] = field(default_factory=set)
    _commits: set[str] = field(default_factory=set)
    _unrecorded: set[str] = field(default_factory=set)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __call__(self, store: Store, table: Table) -> None:
        """Raise `DamagedError` if a file of the table does not match its checksum."""
        files = version_files(store, table.location, table.version)
        with self._lock:
            self._verify(store, files)

    def _verify(self, store: Store, files: Files) -> None:
        named = set(files.all)
        if not named <= self.checksums.keys() | self._unrecorded:
            self._learn(store)
            self._unrecorded |= named - self.checksums.keys()
        beside = (name.removesuffix(".lance") for name in files.data)
        named |= self._below((*files.places, *beside))
        for name in sorted((named & self.checksums.keys()) - self.verified):
            reason = find_mismatch(store, name, self.checksums[name])
            if reason is not None:
                raise mismatch_error(name, reason)
            self.verified.add(name)

    def _below(self, places: Iterable[str]) -> set[str]:
        """Return the recorded files below directories: indexes, and blobs next to a data file."""
        prefixes = tuple(f"{place}/" for place in places)
        return {name for name in self.checksums if prefixes and name.startswith(prefixes)}

    def _learn(self, store: Store) -> None:
        for place in (layout.REFS, layout.TAGS):
            for name in refs.known_names(store, place):
                # Damage of another branch is reported when that is opened, and by `check`.
                with suppress(OmnigraphError):
                    ref = refs.look_up(store, name, place)
                    if ref is not None:
                        self._learn_from(store, ref.ulid)

    def _learn_from(self, store: Store, ulid: str) -> None:
        for commit in Log(store, read_manifest(store, ulid).state).newest_commits():
            if commit.id not in self._commits:
                with suppress(StorageError):  # a lost checksum object says nothing about files
                    self.checksums.update(read_checksums(store, commit))
                self._commits.add(commit.id)
