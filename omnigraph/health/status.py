"""Status of a graph: fragments, versions, bytes, index coverage, unfinished operations.

Reads names, sizes and the metadata of the newest table versions, never rows. Whatever exceeds its
limit is reported with the command that helps.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from omnigraph.errors import OmnigraphError
from omnigraph.history.commit import TableEntry
from omnigraph.history.intent import listing
from omnigraph.history.manifest import Opened
from omnigraph.history.missing import missing_words
from omnigraph.history.retention.live import Live
from omnigraph.history.retention.survey import MANIFESTS, TABLES, kind_of, place_of
from omnigraph.history.set_aside import list_set_aside
from omnigraph.history.state import State
from omnigraph.storage import layout
from omnigraph.storage.cell import files_of
from omnigraph.storage.failures import AbsentError, unpanicked
from omnigraph.storage.objects import Found
from omnigraph.storage.store import Store
from omnigraph.storage.table import open_version
from omnigraph.storage.transfer import version_files

from .cached import cache_use
from .heads import Head, read_heads
from .limits import Warned, of_cache, of_damage, of_log, of_set_aside, of_store, of_table
from .written import log_length, unindexed_rows


@dataclass(frozen=True, slots=True)
class DatasetStatus:
    """One table of a branch. `versions` and `bytes` include its retained history.

    `error` says why a damaged table could not be examined; `rows` is what the branch records.
    """

    type_key: str
    rows: int
    deleted_rows: int
    fragments: int
    unindexed_rows: int
    versions: int
    bytes: int
    error: str | None = None

    def to_json(self) -> dict[str, Any]:
        """Return the row as JSON-compatible data."""
        return {name: getattr(self, name) for name in self.__slots__}


@dataclass(frozen=True, slots=True)
class Status:
    """What a graph consists of, as one branch shows it."""

    branch: str
    commit_id: str
    datasets: tuple[DatasetStatus, ...]
    branches: int
    tags: int
    commits: int
    manifest_versions: int
    intents: int
    set_aside: int
    bytes: int
    unreclaimed_bytes: int
    cache_bytes: int
    cache_directory: str | None
    warnings: tuple[Warned, ...] = field(default=())

    def __repr__(self) -> str:
        tables = f"{len(self.datasets)} tables, {self.bytes:,} bytes"
        return f"<Status of {self.branch}: {tables}, {len(self.warnings)} warnings>"

    def to_json(self) -> dict[str, Any]:
        """Return the status as JSON-compatible data."""
        names = [name for name in self.__slots__ if name not in ("datasets", "warnings")]
        facts = {name: getattr(self, name) for name in names}
        facts["graph_commit_id"] = facts.pop("commit_id")
        facts["datasets"] = [one.to_json() for one in self.datasets]
        facts["warnings"] = [one.to_json() for one in self.warnings]
        return facts


def _warnings(uri: str, one: DatasetStatus) -> Iterator[Warned]:
    if one.error is not None:
        return of_damage(uri, one.type_key)
    return of_table(uri, one.type_key, one.rows, one.fragments, one.unindexed_rows)


def read_status(store: Store, branch: str, opened: Opened) -> Status:
    """Examine one branch and all files of the graph, with a single listing of the root."""
    state, heads = opened.state, read_heads(store, [])
    files = {one.name: one for one in store.objects.list("")}
    datasets = tuple(_datasets(store, state, files))
    size = sum(one.size for one in files.values())
    unreclaimed = _unreclaimed(store, heads, files)
    pending, aside = len(listing(store).pending), len(list_set_aside(store))
    cache, place, budget = cache_use()
    uri, log = store.root.uri, log_length(state)
    warnings = [
        *(warned for dataset in datasets for warned in _warnings(uri, dataset)),
        *of_log(uri, log),
        *of_store(uri, size - unreclaimed, unreclaimed, pending),
        *of_set_aside(uri, aside),
        *of_cache(cache, budget),
    ]
    tags = sum(head.ref.place == layout.TAGS for head in heads)
    return Status(
        branch,
        state.head.commit_id,
        datasets,
        len(heads) - tags,
        tags,
        log,
        _versions(files, layout.manifest_directory(state.head.ulid)),
        pending,
        aside,
        size,
        unreclaimed,
        cache,
        place,
        tuple(warnings),
    )


def _datasets(store: Store, state: State, files: Mapping[str, Found]) -> Iterator[DatasetStatus]:
    sizes: dict[str, int] = {}
    for one in files.values():
        sizes[place_of(one.name)] = sizes.get(place_of(one.name), 0) + one.size
    for key, entry in sorted(state.tables.items()):
        inside, error = (0, 0, 0), _error(store, key, entry, files)
        if error is None:
            table = open_version(store, entry.location, entry.lance_version)
            fragments = [fragment.metadata for fragment in table.dataset.get_fragments()]
            deleted = sum(fragment.num_deletions for fragment in fragments)
            left = unindexed_rows(store, state, key, table, fragments)
            inside = deleted, len(fragments), left
        kept = _versions(files, entry.location), sizes.get(entry.location, 0)
        yield DatasetStatus(key, entry.rows, *inside, *kept, error)


def _error(store: Store, key: str, entry: TableEntry, files: Mapping[str, Found]) -> str | None:
    """Return why a table cannot be examined, for example a missing file; None if it can."""
    own = f"{entry.location}/_versions/d{entry.lance_version}.manifest"
    try:
        with unpanicked():
            named = version_files(store, entry.location, entry.lance_version).all
    except AbsentError:
        return missing_words(store, key, [own])
    except (OmnigraphError, OSError, ValueError, RuntimeError) as error:
        return f"{own} cannot be read: {getattr(error, 'message', error)}"
    lost = [name for name in named if name not in files]
    return missing_words(store, key, lost) if lost else None


def _versions(files: Mapping[str, Found], place: str) -> int:
    prefix = f"{place}/_versions/"
    return sum(name.startswith(prefix) and name.endswith(".manifest") for name in files)


def _unreclaimed(store: Store, heads: Sequence[Head], files: Mapping[str, Found]) -> int:
    """Return the bytes of tables and manifests that no branch or tag references now."""
    live = Live()
    for head in heads:
        live.names |= set(files_of(head.opened.cell))
        for entry in head.opened.state.tables.values():
            _add(store, live, entry)
    judged = (one for name, one in files.items() if name.startswith((*TABLES, *MANIFESTS)))
    return sum(
        one.size
        for one in judged
        if kind_of(one.name) != "_transactions" and not live.holds(one.name)
    )


def _add(store: Store, live: Live, entry: TableEntry) -> None:
    try:
        with unpanicked():
            files = version_files(store, entry.location, entry.lance_version)
    except (OmnigraphError, OSError, ValueError, RuntimeError):
        live.places |= {entry.location}  # damaged: what it needs is unknown, so all of it is live
        return
    live.add_version(entry.location, entry.lance_version, files)
    live.names |= {f"{entry.location}/_versions/{(1 << 64) - 2}.manifest"}
