"""Manifest fragments above the newest version: left by an interrupted write, or proof of a loss.

Every swap writes the rows of the next state as a fragment before the version that references it. A
fragment records the version it was written for; `lost_versions` decides whether that version was
ever published. Only reads.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from omnigraph.errors import OmnigraphError
from omnigraph.history.retention.survey import kind_of, version_number
from omnigraph.history.retention.trim import named_by_version
from omnigraph.history.state import READ, State, StateMismatch, from_rows
from omnigraph.storage import layout
from omnigraph.storage.objects import Found
from omnigraph.storage.physical import stored_batches
from omnigraph.storage.store import Store

_EXACT = 256  # maximum number of versions that are read to find the fragments they reference
_GRAIN = timedelta(seconds=2)  # more than the timestamp resolution of any store
_FENCES = 64  # maximum number of versions without a commit after one with a commit


@dataclass(frozen=True, slots=True)
class Fragment:
    """The rows of a state that no version references, and the version they were written for."""

    name: str
    state: State
    version: int


@dataclass(frozen=True, slots=True)
class ManifestFiles:
    """The files of a manifest: versions by number, fragments, and the base versions of swaps."""

    versions: Mapping[int, Found]
    data: Mapping[str, Found]
    bases: frozenset[int]

    @property
    def newest(self) -> int:
        """The newest version; 0 when there is none."""
        return max(self.versions, default=0)

    @property
    def gaps(self) -> list[int]:
        """Versions that are missing between existing ones."""
        lowest = min(self.versions, default=0)
        return [one for one in range(lowest, self.newest) if one not in self.versions]


def list_files(store: Store, ulid: str) -> ManifestFiles:
    """List the files; versions come last, so that a concurrent swap leaves no base above them."""
    place = layout.manifest_directory(ulid)
    data = {one.name: one for one in store.objects.list(f"{place}/data")}
    swaps = [one.name.rpartition("/")[2] for one in store.objects.list(f"{place}/_transactions")]
    bases = frozenset(int(base) for swap in swaps if (base := swap.partition("-")[0]).isdecimal())
    listed = store.objects.list(f"{place}/_versions")
    versions = {n: one for one in listed if (n := version_number(one.name)) is not None}
    return ManifestFiles(versions, data, bases)


def newer_fragments(store: Store, ulid: str, files: ManifestFiles) -> list[Fragment]:
    """Return fragments written for a version above the newest one, lowest version first."""
    found = (_read(store, ulid, name) for name in sorted(_candidates(store, files)))
    newer = [one for one in found if one is not None and one.version > files.newest]
    return sorted(newer, key=lambda one: one.version)


def _candidates(store: Store, files: ManifestFiles) -> set[str]:
    """Return unreferenced fragments; with many versions, those not older than the newest one."""
    if len(files.versions) > _EXACT:
        since = files.versions[files.newest].modified - _GRAIN
        return {name for name, one in files.data.items() if one.modified >= since}
    names, named = set(files.data), set[str]()
    if len(names) > len(files.versions):
        for one in files.versions.values():
            named |= set(named_by_version(store, one.name, names))
        return names - named
    return set()


def _read(store: Store, ulid: str, name: str) -> Fragment | None:
    """Read a fragment as a state; None if it is truncated or belongs to another manifest."""
    if kind_of(name) != "data":
        return None
    try:
        batches = stored_batches(store, name)
        rows = [row for batch in batches for row in batch.select(READ).to_pylist()]
        return next(_parse(rows, ulid, name), None)
    except (OmnigraphError, OSError, ValueError, LookupError, TypeError):
        return None


def _parse(rows: Sequence[Mapping[str, Any]], ulid: str, name: str) -> Iterator[Fragment]:
    head = next(row for row in rows if row["object_type"] == "graph_head")
    numbers = {row["object_id"]: row["table_version"] for row in rows}
    for version in _numbers(head, numbers):
        try:
            state = from_rows(rows, version)
        except StateMismatch:
            continue
        if state.head.ulid == ulid:
            yield Fragment(name, state, version)


def _numbers(head: Mapping[str, Any], numbers: Mapping[str, int | None]) -> Sequence[int]:
    """Return the versions a state can have: that of its commit, or a later one without a commit."""
    facts = json.loads(head["metadata"])
    first = 1 if facts["commit_id"] == facts["fork"] else numbers.get(facts["commit_id"]) or 1
    return range(first + 1, first + _FENCES) if facts["nonce"] else (first,)
