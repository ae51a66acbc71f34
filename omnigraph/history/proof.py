"""Verify that a copied graph holds everything that its states reference, before it can be opened.

Owns what a state references: table versions of its head and its past, log chunks, schemas. It reads
the copy, never the source. It reports what is missing and leaves the decision to the caller.
"""

from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass, field

from omnigraph.storage.store import Store, version_names
from omnigraph.storage.transfer import version_files

from .commit import Commit, TableEntry
from .log import read_chunk
from .state import State

Version = tuple[str, int]


@dataclass(slots=True)
class Named:
    """What some states reference. Head versions must exist, past ones may be cleaned up."""

    heads: set[Version] = field(default_factory=set)
    past: set[Version] = field(default_factory=set)
    objects: set[str] = field(default_factory=set)


@dataclass(frozen=True, slots=True)
class Lacking:
    """What is missing: names that heads need, and past versions with missing files."""

    names: tuple[str, ...]
    past: tuple[Version, ...]


def what_lacks(
    store: Store, states: Iterable[State], held: Mapping[str, int], still: Set[str]
) -> Lacking:
    """Compare what states reference with the files that are present in the copy.

    `source_data_files` are the data files that the source still has after the copy ended. A sweep
    removes a data file before its blobs, so a data file that is still in the source had all its
    blobs when it was copied. Without this check a copy could lack blobs, which no version lists.
    """
    states = list(states)
    pieces = {chunk.name for state in states for chunk in state.chunks}
    gone = sorted(pieces - held.keys())
    if gone:
        return Lacking(tuple(gone), ())
    named = _named(store, states)
    check = _Check(store, held, still)
    lost = [name for name in named.objects if name not in held]
    lost += [name for one in named.heads for name in check.missing(one)]
    return Lacking(tuple(sorted(lost)), tuple(filter(check.missing, sorted(named.past))))


def _named(store: Store, states: Iterable[State]) -> Named:
    found = Named()
    for state in states:
        found.objects.add(state.schema.location)
        found.heads |= _versions(state.tables.values())
        _add_past(found, state.tail)
        for chunk in state.chunks:
            commits, end = read_chunk(store, chunk)
            _add_past(found, commits)
            found.past |= _versions(end.tables.values())
    found.past -= found.heads
    return found


def _add_past(found: Named, commits: Iterable[Commit]) -> None:
    for one in commits:
        found.past |= _versions(entry for entry in one.tables.values() if entry is not None)


def _versions(entries: Iterable[TableEntry]) -> set[Version]:
    return {(one.location, one.lance_version) for one in entries}


class _Check:
    """Checks whether all files of a table version are present."""

    def __init__(self, store: Store, held: Mapping[str, int], still: Set[str]) -> None:
        self.store, self.held, self.still = store, held, still
        self.places = {name.rpartition("/")[0] for name in held}

    def missing(self, version: Version) -> list[str]:
        """Return the names that a version needs and that are missing."""
        own = version_names(*version) & self.held.keys()
        if not own:
            return [f"{version[0]}/_versions/d{version[1]}.manifest"]
        files = version_files(self.store, *version)
        lost = [name for name in files.all if name not in self.held]
        lost += [name for name in files.data if name not in self.still]
        return lost + [place for place in files.places if place not in self.places]
