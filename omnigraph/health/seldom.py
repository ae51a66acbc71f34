"""What only some writes look at: the cache of this machine, and bytes that no branch shows.

The first costs no request. The second costs one per table that was written, once in so many states
of a branch, and more only when there seems to be something to tell. A write never fails by it.
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

WRITES = 64  # of this process, between two looks at its cache
STATES = 256  # of a branch, whoever writes them, between two looks at its tables
_FILES = 1_000  # of a table that are looked at: the answer to one request
_log = logging.getLogger("omnigraph")
_written = count()


def seldom_warnings(store: Store, opened: Opened, commit: Commit) -> Iterator[Warned]:
    """What is beyond its limit, looked at now and then."""
    try:
        if next(_written) % WRITES == 0:
            yield from _of_cache()
        if opened.version % STATES == 0:
            yield from _of_tables(store, opened, commit)
    except (OmnigraphError, OSError) as error:
        _log.info("what a graph could do without was not looked at: %s", error)


def _of_cache() -> Iterator[Warned]:
    if "omnigraph.engine.cache" in sys.modules:  # else this process has cached nothing
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
        if sum(loose.values()) > limit:  # some of them may be in other branches
            for name in _named_elsewhere(store, entry.location):
                loose.pop(name, None)
        yield from limits.of_data(store.root.uri, key, sum(loose.values()), limit)


def _loose(store: Store, table: Table) -> dict[str, int]:
    """Data files of a table that its newest version does not name, and their bytes."""
    fragments = [one.metadata for one in table.dataset.get_fragments()]
    named = set(data_files(table, fragments))
    listed = store.objects.first(f"{table.location}/data", _FILES)
    return {one.name: one.size for one in listed if one.name not in named}


def _named_elsewhere(store: Store, location: str) -> Iterator[str]:
    from omnigraph.storage.transfer import version_files

    from .heads import read_heads

    entries = (one for head in read_heads(store, []) for one in head.opened.state.tables.values())
    for version in {one.lance_version for one in entries if one.location == location}:
        yield from version_files(store, location, version).data
