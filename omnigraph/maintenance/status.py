"""The status of a graph: fragments, versions, bytes, index coverage and unfinished operations.

Only names, sizes and the metadata of the newest table versions are read, never rows. Every value that exceeds its limit
is reported together with the recommended command.
"""

from collections.abc import Iterator, Mapping, Sequence

from omnigraph.errors import OmnigraphError
from omnigraph.history.commit import TableEntry
from omnigraph.history.live_set import LiveSet
from omnigraph.history.manifest import LoadedManifest
from omnigraph.history.missing_table_files import describe_missing_files
from omnigraph.history.state import GraphState
from omnigraph.publish.intent import list_intents
from omnigraph.publish.set_aside import list_set_aside_operations
from omnigraph.storage import layout
from omnigraph.storage.failures import AbsentError, panics_as_errors
from omnigraph.storage.file_roles import MANIFEST_ROOTS, TABLE_ROOTS, owning_directory, subdirectory_of
from omnigraph.storage.manifest_cell import cell_files
from omnigraph.storage.object_backend import ListedObject
from omnigraph.storage.store import Store
from omnigraph.storage.table import open_unchecked_version
from omnigraph.storage.transfer import version_files
from omnigraph.values.table_key import TableKey

from .branch_heads import RefHead, read_heads
from .cache_usage import read_cache_usage
from .commit_warnings import count_log_commits, count_unindexed_rows
from .health_thresholds import (
    LimitWarning,
    cache_warnings,
    damage_warnings,
    log_warnings,
    set_aside_warnings,
    store_warnings,
    table_warnings,
)
from .status_report import DatasetStatus, Status


def _dataset_warnings(uri: str, dataset: DatasetStatus) -> Iterator[LimitWarning]:
    if dataset.error is not None:
        return damage_warnings(uri, dataset.type_key)
    return table_warnings(uri, dataset.type_key, dataset.rows, dataset.fragments, dataset.unindexed_rows)


def read_status(store: Store, branch: str, manifest: LoadedManifest) -> Status:
    """Examine one branch and all files in the graph, using a single listing of the root."""
    state, heads = manifest.state, read_heads(store, [])
    files_by_name = {file.name: file for file in store.objects.list("")}
    datasets = tuple(_read_datasets(store, state, files_by_name))
    total_bytes = sum(file.size for file in files_by_name.values())
    unreferenced_bytes = _unreferenced_bytes(store, heads, files_by_name)
    pending_count = len(list_intents(store).pending)
    set_aside_count = len(list_set_aside_operations(store))
    cache_bytes, cache_directory, cache_budget = read_cache_usage()
    uri, commit_count = store.root.uri, count_log_commits(state)
    warnings = [
        *(warning for dataset in datasets for warning in _dataset_warnings(uri, dataset)),
        *log_warnings(uri, commit_count),
        *store_warnings(uri, total_bytes - unreferenced_bytes, unreferenced_bytes, pending_count),
        *set_aside_warnings(uri, set_aside_count),
        *cache_warnings(cache_bytes, cache_budget),
    ]
    tag_count = sum(head.ref.directory == layout.TAGS for head in heads)
    return Status(
        branch,
        state.head.commit_id,
        datasets,
        len(heads) - tag_count,
        tag_count,
        commit_count,
        _count_versions(files_by_name, layout.manifest_directory(state.head.ulid)),
        pending_count,
        set_aside_count,
        total_bytes,
        unreferenced_bytes,
        cache_bytes,
        cache_directory,
        tuple(warnings),
    )


def _read_datasets(
    store: Store, state: GraphState, files_by_name: Mapping[str, ListedObject]
) -> Iterator[DatasetStatus]:
    bytes_by_directory: dict[str, int] = {}
    for file in files_by_name.values():
        bytes_by_directory[owning_directory(file.name)] = (
            bytes_by_directory.get(owning_directory(file.name), 0) + file.size
        )
    for type_key, entry in sorted(state.tables.items()):
        measurements, error = (0, 0, 0), _table_error(store, type_key, entry, files_by_name)
        if error is None:
            table = open_unchecked_version(store, entry.location, entry.lance_version)
            fragments = [fragment.metadata for fragment in table.dataset.get_fragments()]
            deleted_rows = sum(fragment.num_deletions for fragment in fragments)
            unindexed_count = count_unindexed_rows(store, state, type_key, table, fragments)
            measurements = deleted_rows, len(fragments), unindexed_count
        history_sizes = (_count_versions(files_by_name, entry.location), bytes_by_directory.get(entry.location, 0))
        yield DatasetStatus(type_key, entry.row_count, *measurements, *history_sizes, error)


def _table_error(
    store: Store, type_key: TableKey, entry: TableEntry, files_by_name: Mapping[str, ListedObject]
) -> str | None:
    """Return the reason that a table cannot be examined, such as a missing file, or None if there is none."""
    version_path = f"{entry.location}/_versions/d{entry.lance_version}.manifest"
    try:
        with panics_as_errors():
            required_files = version_files(store, entry.location, entry.lance_version).named_files
    except AbsentError:
        return describe_missing_files(store, type_key, [version_path])
    except (OmnigraphError, OSError, ValueError, RuntimeError) as error:
        return f"{version_path} cannot be read: {getattr(error, 'message', error)}"
    missing_files = [file_name for file_name in required_files if file_name not in files_by_name]
    return describe_missing_files(store, type_key, missing_files) if missing_files else None


def _count_versions(files_by_name: Mapping[str, ListedObject], directory: str) -> int:
    prefix = f"{directory}/_versions/"
    return sum(file_name.startswith(prefix) and file_name.endswith(".manifest") for file_name in files_by_name)


def _unreferenced_bytes(store: Store, heads: Sequence[RefHead], files_by_name: Mapping[str, ListedObject]) -> int:
    """Return the total size of the table and manifest files that no branch or tag currently references."""
    live = LiveSet()
    for head in heads:
        live.names |= set(cell_files(head.manifest.cell))
        for entry in head.manifest.state.tables.values():
            _add_live_files(store, live, entry)
    candidate_files = (
        file for file_name, file in files_by_name.items() if file_name.startswith((*TABLE_ROOTS, *MANIFEST_ROOTS))
    )
    return sum(
        file.size
        for file in candidate_files
        if subdirectory_of(file.name) != "_transactions" and not live.contains(file.name)
    )


def _add_live_files(store: Store, live: LiveSet, entry: TableEntry) -> None:
    try:
        with panics_as_errors():
            table_files = version_files(store, entry.location, entry.lance_version)
    except (OmnigraphError, OSError, ValueError, RuntimeError):
        live.directories |= {entry.location}  # damaged: its references are unknown, so all of its files count as live
        return
    live.add_version(entry.location, entry.lance_version, table_files)
    live.names |= {f"{entry.location}/_versions/{(1 << 64) - 2}.manifest"}
