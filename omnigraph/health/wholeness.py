"""Integrity of table versions: their own manifest file, and every file that they reference.

Owns what is known about files. Each file is checked once: its size always, its content against the
checksum that a commit recorded. Files removed from the history by a cleanup are told apart from
lost ones, because a cleanup removes a version before the files it references.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal

from omnigraph import ids
from omnigraph.errors import OmnigraphError
from omnigraph.history.retention.survey import place_of
from omnigraph.storage.checksums import FileChecksum, FileChecksums
from omnigraph.storage.deletions import deleted_offsets, deletion_files
from omnigraph.storage.failures import AbsentError, unpanicked
from omnigraph.storage.hands import Hands
from omnigraph.storage.lost_index import short_segments
from omnigraph.storage.physical import open_file, stored_batches
from omnigraph.storage.store import Store, version_names
from omnigraph.storage.table import open_version
from omnigraph.storage.transfer import Files, version_files

Fault = tuple[str, str]  # file name, and what is wrong with the file
Version = tuple[str, int]
_MISSING = "it is missing"
_ROWS, _BLOB = ".lance", ".blob"
_INDEXED = (".lance", ".idx")  # files that any kind of index consists of
Standing = Literal["whole", "reclaimed", "broken"]


@dataclass(slots=True)
class Wholeness:
    """What is known of the versions and files of one root; `open_files` also opens the files."""

    store: Store
    opened: bool = True
    versions: dict[Version, tuple[Fault, ...]] = field(default_factory=dict)
    bad: dict[str, str] = field(default_factory=dict)
    _sound: set[str] = field(default_factory=set)
    _listed: dict[str, dict[str, int]] = field(default_factory=dict)
    _files: dict[Version, Files] = field(default_factory=dict)
    _short: dict[Version, frozenset[str]] = field(default_factory=dict)
    _indexed: dict[str, bool] = field(default_factory=dict)
    checksums: dict[str, FileChecksum] = field(default_factory=dict)
    verified: dict[str, str | None] = field(default_factory=dict)
    unrecorded: set[str] = field(default_factory=set)
    _blobs: dict[str, list[str]] = field(default_factory=dict)

    def learn(self, checksums: FileChecksums) -> None:
        """Add the checksums that commits recorded."""
        for name in checksums.keys() - self.checksums.keys():
            self.checksums[name] = checksums[name]
            if name.endswith(_BLOB):
                self._blobs.setdefault(f"{name.rpartition('/')[0]}{_ROWS}", []).append(name)

    def verify(self, executor: Hands, share: float = 1.0) -> None:
        """Compare the content of existing files with their recorded checksums.

        A `share` below 1 verifies only this fraction of them, chosen at random.
        """
        places = {place_of(name) for name in self.checksums}
        listed = {name for place in places for name in self._listing(place)}
        waiting = (self.checksums.keys() & listed) - self.verified.keys()
        chosen = [one for one in sorted(waiting) if share >= 1 or ids.random_fraction() < share]
        wrong = executor.verify(self.store, {name: self.checksums[name] for name in chosen})
        self.verified |= {name: wrong.get(name) for name in chosen}

    @property
    def looked_at(self) -> int:
        """How many files were checked."""
        return len(self._sound) + len(self.bad) + len(self.versions)

    def renew(self) -> None:
        """Forget which files exist: others have written and cleaned up meanwhile."""
        for known in (self.versions, self.bad, self._sound, self._listed, self._files):
            known.clear()
        self._short.clear()
        self._indexed.clear()

    def faults(self, version: Version) -> tuple[Fault, ...]:
        """Return the files that a version needs and that are missing or unreadable."""
        if version not in self.versions:
            self.versions[version] = tuple(self._faults(version))
        files = self._files.get(version)
        names = () if files is None else self._with_blobs(files)
        later = tuple((name, self.bad[name]) for name in names if name in self.bad)
        return tuple(dict.fromkeys((*self.versions[version], *later)))

    def lost_indexes(self, version: Version) -> list[str]:
        """Return index directories with a missing file; rows can be read without them."""
        self.faults(version)
        files, listed = self._files.get(version), self._listing(version[0])
        if files is None or not files.places:
            return []
        if version not in self._short:
            table = open_version(self.store, *version)
            self._short[version] = short_segments(table, listed)
        lost = self._short[version]
        return [one for one in files.places if one.rpartition("/")[2] in lost]

    def damaged_indexes(self, version: Version) -> list[str]:
        """Return index directories that are complete but contain a file that cannot be opened."""
        lost, listed = self.lost_indexes(version), self._listing(version[0])
        files = self._files.get(version)
        there = [one for one in (files.places if files is not None else ()) if one not in lost]
        return [one for one in there if not self._opens(one, listed)]

    def _opens(self, place: str, listed: Mapping[str, int]) -> bool:
        """Return whether every file of an index is intact; each file is opened once."""
        inside = [one for one in listed if one.startswith(f"{place}/")]
        if any(self._differs(name, listed) for name in inside):
            return False
        names = [one for one in inside if one.endswith(_INDEXED) and one not in self.verified]
        for name in names if self.opened else ():
            if name not in self._indexed:
                try:
                    open_file(self.store, name)
                except ValueError:
                    self._indexed[name] = False
                else:
                    self._indexed[name] = True
        return all(self._indexed.get(name, True) for name in names)

    def standing(self, version: Version) -> Standing:
        """Return whether a past version is whole, was reclaimed by a cleanup, or is broken."""
        faults = self.faults(version)
        if not faults:
            return "whole"
        name = f"{version[0]}/_versions/d{version[1]}.manifest"
        return "reclaimed" if faults == ((name, _MISSING),) else "broken"

    def read_through(self, version: Version) -> None:
        """Read every data file of a version to its end, to find those that cannot be read."""
        files = self._files.get(version)
        for name in files.data if files is not None else ():
            try:
                for _ in stored_batches(self.store, name):
                    pass
            except ValueError:
                self.bad.setdefault(name, "it cannot be read to its end")

    def _faults(self, version: Version) -> Iterable[Fault]:
        location, number = version
        listed = self._listing(location)
        own = version_names(location, number) & listed.keys()
        if not own:
            yield f"{location}/_versions/d{number}.manifest", _MISSING
            return
        (name,) = own
        difference = self._differs(name, listed)
        if difference is not None:
            yield name, difference
            return
        try:
            with unpanicked():
                files = self._files[version] = version_files(self.store, location, number)
                if self.opened:
                    self._read_deletions(location, number, listed)
        except AbsentError:
            yield f"{location}/_versions/d{number}.manifest", _MISSING
            return
        except (OmnigraphError, OSError, ValueError, RuntimeError):
            yield f"{location}/_versions/d{number}.manifest", "the version cannot be read"
            return
        names = self._with_blobs(files)
        yield from (fault for name in names for fault in self._file(name, listed))

    def _with_blobs(self, files: Files) -> Iterator[str]:
        """Return the files that a version references, and the recorded blobs of its data files."""
        yield from files.all
        for name in files.data:
            yield from self._blobs.get(name, ())

    def _differs(self, name: str, listed: Mapping[str, int]) -> str | None:
        """Return how a file differs from its checksum: by size or, if verified, by content."""
        expected = self.checksums.get(name)
        if expected is None:
            self.unrecorded.add(name)
            return None
        if listed[name] != expected.size and not expected.manifest_only:
            return f"it has {listed[name]} bytes instead of {expected.size}"
        return self.verified.get(name)

    def _read_deletions(self, location: str, number: int, listed: dict[str, int]) -> None:
        """Check that deletion files match the version: otherwise deleted rows would reappear."""
        table = open_version(self.store, location, number)
        for one in table.dataset.get_fragments():
            for name in deletion_files(table, [one.metadata]):
                if name in self._sound or name in self.bad or not listed.get(name):
                    continue
                if self._differs(name, listed) is not None:
                    continue  # reported with the files of the version
                if deleted_offsets(self.store, table, one) is None:
                    self.bad[name] = "the list of deleted rows cannot be read"

    def blame(self, version: Version, reason: str) -> None:
        """Record that a version cannot be read although none of its files is known to be bad."""
        name = f"{version[0]}/_versions/d{version[1]}.manifest"
        self.versions[version] = (*self.versions.get(version, ()), (name, reason))

    def _file(self, name: str, listed: dict[str, int]) -> Iterable[Fault]:
        if name in self._sound:
            return
        if name not in self.bad:
            self.bad |= dict(self._look(name, listed))
        if name in self.bad:
            yield name, self.bad[name]
        else:
            self._sound.add(name)

    def _look(self, name: str, listed: dict[str, int]) -> Iterable[Fault]:
        if name not in listed:
            yield name, _MISSING
            return
        difference = "it is empty" if listed[name] == 0 else self._differs(name, listed)
        if difference is not None:
            yield name, difference
        elif self.opened and name.endswith(_ROWS) and name not in self.verified:
            try:
                open_file(self.store, name)
            except ValueError:
                yield name, "it cannot be opened"

    def _listing(self, location: str) -> dict[str, int]:
        """List all files of a table, before any of them is opened."""
        if location not in self._listed:
            found = self.store.objects.list(location)
            self._listed[location] = {one.name: one.size for one in found}
        return self._listed[location]
