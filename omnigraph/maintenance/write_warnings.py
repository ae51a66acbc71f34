"""Warnings about the local cache size and the number of unreferenced bytes, computed by only some writes.

The cache check needs no storage request. The table check needs one listing per written table, once every
`TABLE_CHECK_INTERVAL` manifest versions, and further requests only if there may be something to report. A failed check
never causes the write to fail.
"""

import logging
import sys
from collections.abc import Iterator
from itertools import count

from omnigraph.errors import OmnigraphError
from omnigraph.history.commit import Commit
from omnigraph.history.manifest import LoadedManifest
from omnigraph.storage.fragments import fragment_bytes, list_fragment_ids
from omnigraph.storage.store import Store
from omnigraph.storage.table import Table, data_files

from . import health_thresholds
from .health_thresholds import LimitWarning, cache_warnings

CACHE_CHECK_INTERVAL = 64  # number of this process's writes between two cache checks
# The number of manifest versions, by any writer, between two checks of a branch's tables.
TABLE_CHECK_INTERVAL = 256
_MAX_LISTED_FILES = 1_000  # maximum number of files to examine per table; one request can list this many
_logger = logging.getLogger("omnigraph")
_write_counter = count()


def periodic_warnings(store: Store, manifest: LoadedManifest, commit: Commit) -> Iterator[LimitWarning]:
    """Yield warnings about limits that are checked only periodically."""
    try:
        if next(_write_counter) % CACHE_CHECK_INTERVAL == 0:
            yield from _cache_warnings()
        if manifest.version % TABLE_CHECK_INTERVAL == 0:
            yield from _table_warnings(store, manifest, commit)
    except (OmnigraphError, OSError) as error:
        _logger.info("skipped the check for unreferenced data: %s", error)


def _cache_warnings() -> Iterator[LimitWarning]:
    # A process that has not imported the cache module has cached nothing.
    if "omnigraph.engine.query_caches" in sys.modules:
        from .cache_usage import read_cache_usage

        used_bytes, _, cache_budget = read_cache_usage()
        yield from cache_warnings(used_bytes, cache_budget)


def _table_warnings(store: Store, manifest: LoadedManifest, commit: Commit) -> Iterator[LimitWarning]:
    for type_key in sorted(commit.tables):
        entry = manifest.state.tables.get(type_key)
        dataset = store.dataset_cache.get(entry.location, entry.lance_version) if entry else None
        if entry is None or dataset is None:
            continue
        table = Table(entry.location, dataset)
        referenced_bytes = fragment_bytes(table, list_fragment_ids(table))
        limit = max(health_thresholds.UNRECLAIMED, referenced_bytes)
        unreferenced_files = _list_unreferenced(store, table)
        if sum(unreferenced_files.values()) > limit:  # other branches may reference some of these files
            for file_name in _list_branch_files(store, entry.location):
                unreferenced_files.pop(file_name, None)
        yield from health_thresholds.unreferenced_data_warnings(
            store.root.uri, type_key, sum(unreferenced_files.values()), limit
        )


def _list_unreferenced(store: Store, table: Table) -> dict[str, int]:
    """Return the data files that a table's newest version does not reference, with their sizes."""
    fragments = [fragment.metadata for fragment in table.dataset.get_fragments()]
    referenced_names = set(data_files(table, fragments))
    listed_files = store.objects.list_first(f"{table.location}/data", _MAX_LISTED_FILES)
    return {
        listed_file.name: listed_file.size for listed_file in listed_files if listed_file.name not in referenced_names
    }


def _list_branch_files(store: Store, location: str) -> Iterator[str]:
    from omnigraph.storage.transfer import version_files

    from .branch_heads import read_heads

    entries = (entry for head in read_heads(store, []) for entry in head.manifest.state.tables.values())
    for version in {entry.lance_version for entry in entries if entry.location == location}:
        yield from version_files(store, location, version).data_files
