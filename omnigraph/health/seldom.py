"""Warnings that only some writes compute: size of the local cache, unreferenced bytes.

The cache check costs no request. The table check costs one listing per table written, once in
`TABLE_CHECK_INTERVAL` manifest versions, and more only when there may be something to report. It
never makes a write fail.
"""

import logging
import sys
from collections.abc import Iterator
from itertools import count

from omnigraph.errors import OmnigraphError
from omnigraph.history.commit import Commit
from omnigraph.history.manifest import Opened
from omnigraph.storage.fragments import bytes_of, fragment_ids
from omnigraph.storage.store import Store
from omnigraph.storage.table import Table, data_files

from . import limits
from .limits import Warned, of_cache

WRITES = 64  # writes of this process between two checks of the cache
STATES = 256  # manifest versions of a branch, by any writer, between two checks of its tables
_FILES = 1_000  # files of a table that are looked at: the result of one request
_log = logging.getLogger("omnigraph")
_written = count()


def seldom_warnings(store: Store, opened: Opened, commit: Commit) -> Iterator[Warned]:
    """Return warnings about limits that are checked only from time to time."""
    try:
        if next(_written) % WRITES == 0:
            yield from _of_cache()
        if opened.version % STATES == 0:
            yield from _of_tables(store, opened, commit)
    except (OmnigraphError, OSError) as error:
        _log.info("skipped the check for unreferenced data: %s", error)


def _of_cache() -> Iterator[Warned]:
    if "omnigraph.engine.cache" in sys.modules:  # otherwise this process has cached nothing
        from .cached import cache_use

        used, _, budget = cache_use()
        yield from of_cache(used, budget)


def _of_tables(store: Store, opened: Opened, commit: Commit) -> Iterator[Warned]:
    for key in sorted(commit.tables):
        entry = opened.state.tables.get(key)
        held = store.handles.get(entry.location, entry.lance_version) if entry else None
        if entry is None or held is None:
            continue
        table = Table(entry.location, held)
        shown = bytes_of(table, fragment_ids(table))
        limit = max(limits.UNRECLAIMED, shown)
        loose = _loose(store, table)
        if sum(loose.values()) > limit:  # other branches may reference some of them
            for name in _named_elsewhere(store, entry.location):
                loose.pop(name, None)
        yield from limits.of_data(store.root.uri, key, sum(loose.values()), limit)


def _loose(store: Store, table: Table) -> dict[str, int]:
    """Return data files that the newest version of a table does not reference, with their sizes."""
    fragments = [fragment.metadata for fragment in table.dataset.get_fragments()]
    named = set(data_files(table, fragments))
    listed = store.objects.first(f"{table.location}/data", _FILES)
    return {one.name: one.size for one in listed if one.name not in named}


def _named_elsewhere(store: Store, location: str) -> Iterator[str]:
    from omnigraph.storage.transfer import version_files

    from .heads import read_heads

    entries = (one for head in read_heads(store, []) for one in head.opened.state.tables.values())
    for version in {one.lance_version for one in entries if one.location == location}:
        yield from version_files(store, location, version).data
