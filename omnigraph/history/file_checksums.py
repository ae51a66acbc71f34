"""The checksums of files that commits record: packed into a commit row, and collected from logs.

A commit records the files that it added to each table. A bulk load records them in an object of
its own to keep the state small, because every publish rewrites the state. Files that were written
before checksums were introduced have none.
"""

from collections.abc import Iterable, Mapping, Set
from typing import Any

from omnigraph import ids
from omnigraph.errors import StorageError
from omnigraph.storage import layout
from omnigraph.storage.checksums import FileChecksum, FileChecksums
from omnigraph.storage.store import Store, version_names

from .commit import Commit, TableEntry
from .log import Log
from .state import State

INLINE = 32  # files per commit; the checksums of more are sealed in an object
_SEALED = "sealed"
_VERSION = "v"  # the file of the table version itself, which the table entry identifies
_DATA, _SUFFIX = "data/", ".lance"

Tables = Mapping[str, TableEntry | None]


def record_checksums(store: Store, tables: Tables, files: FileChecksums) -> Mapping[str, Any]:
    """Return the form in which a commit row carries the checksums of the files that it adds.

    Many files are written to an object instead, before the commit that refers to it: a crash in
    between leaves an unreferenced object.
    """
    packed = pack_checksums(tables, files)
    if len(files) <= INLINE:
        return packed
    name = f"{layout.CHECKSUMS}/{ids.new_ulid()}"
    store.objects.create_json(name, {"files": packed})
    return {_SEALED: name}


def pack_checksums(tables: Tables, files: FileChecksums) -> dict[str, Any]:
    """Return checksums by table and by shortened file name."""
    packed: dict[str, Any] = {}
    for key, entry in tables.items():
        prefix = f"{entry.location}/" if entry is not None else None
        own = [name for name in files if prefix is not None and name.startswith(prefix)]
        if entry is not None and own:
            packed[key] = {_shorten(entry, name): files[name].to_json() for name in own}
    return packed


def find_checksums(store: Store, state: State, names: Set[str]) -> dict[str, FileChecksum]:
    """Return the checksums of some files, from the newest commits backwards, until all are found.

    A file without one was written before checksums were recorded.
    """
    checksums: dict[str, FileChecksum] = {}
    for commit in Log(store, state).newest_commits():
        if checksums.keys() >= names:
            break
        recorded = read_checksums(store, commit)
        checksums |= {name: recorded[name] for name in names & recorded.keys()}
    return checksums


def collect_checksums(store: Store, states: Iterable[State]) -> dict[str, FileChecksum]:
    """Return all checksums that the logs of some states record."""
    checksums: dict[str, FileChecksum] = {}
    seen: set[str] = set()
    for state in states:
        for commit in Log(store, state).newest_commits():
            if commit.id not in seen:
                seen.add(commit.id)
                checksums |= read_checksums(store, commit)
    return checksums


def read_checksums(store: Store, commit: Commit) -> dict[str, FileChecksum]:
    """Return the checksums that one commit records."""
    packed = commit.files
    if _SEALED in packed:
        packed = _read_sealed(store, packed[_SEALED])
    return {
        _lengthen(entry, short): FileChecksum.from_json(facts)
        for key, files in packed.items()
        if (entry := commit.tables.get(key)) is not None
        for short, facts in files.items()
    }


def _read_sealed(store: Store, name: str) -> Mapping[str, Any]:
    """Return the content of a sealed object, which never changes."""
    known: Mapping[str, Any] | None = store.memory.get(name)
    if known is not None:
        return known
    facts = store.objects.read_json(name)
    if facts is None or not isinstance(facts.get("files"), dict):
        raise StorageError(
            f"{name}, the checksums of a bulk write, is missing or damaged",
            kind="permanent",
            effect="none",
            hint="the data may be intact: restore the object from a copy",
        )
    files: Mapping[str, Any] = facts["files"]
    store.memory.put(name, files, weight=max(1, sum(map(len, files.values())) // 8))
    return files


def _shorten(entry: TableEntry, name: str) -> str:
    """Return the name of a file as a commit row holds it.

    >>> entry = TableEntry("node:A", "nodes/a", 1, 7, "c", 0)
    >>> [_shorten(entry, f"nodes/a/{name}") for name in ("_versions/d7.manifest", "data/01.lance")]
    ['v', '01']
    """
    if name in version_names(entry.location, entry.lance_version):
        return _VERSION
    short = name.removeprefix(f"{entry.location}/")
    stem = short.removeprefix(_DATA).removesuffix(_SUFFIX)
    return stem if short == f"{_DATA}{stem}{_SUFFIX}" and "/" not in stem else short


def _lengthen(entry: TableEntry, short: str) -> str:
    """Return the root-relative name of a file from its short form.

    >>> entry = TableEntry("node:A", "nodes/a", 1, 7, "c", 0)
    >>> _lengthen(entry, "01"), _lengthen(entry, "_deletions/0-1-2.arrow")
    ('nodes/a/data/01.lance', 'nodes/a/_deletions/0-1-2.arrow')
    """
    if short == _VERSION:
        version = entry.lance_version
        attached = version < 1 << 63
        stem = f"{(1 << 64) - 1 - version:020}" if attached else f"d{version}"
        return f"{entry.location}/_versions/{stem}.manifest"
    return f"{entry.location}/{short if '/' in short else f'{_DATA}{short}{_SUFFIX}'}"
