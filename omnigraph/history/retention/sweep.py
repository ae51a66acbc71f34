"""Remove files in an order in which a reader never sees half of a version.

Versions go before the files they reference, data files before their blobs. A late reader then finds
a version gone instead of rows missing. Removing a file twice is harmless.
"""

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import groupby

from omnigraph.errors import StorageError
from omnigraph.storage.hands import at_once
from omnigraph.storage.store import Store

from .survey import kind_of, version_number

_log = logging.getLogger("omnigraph")
_AT_ONCE = 0  # parallel requests; 0 means as many as tables are maintained in parallel
_MOST = 64  # threads, however many are requested
_RANKS = {"_versions": 0, "data": 1, "_deletions": 2, "_indices": 3, "_transactions": 5}


def in_order(names: Iterable[str]) -> list[str]:
    """Sort names for removal: by rank, old versions before newer ones.

    >>> in_order(["nodes/t/data/a/1.blob", "nodes/t/data/a.lance", "nodes/t/_versions/d7.manifest"])
    ['nodes/t/_versions/d7.manifest', 'nodes/t/data/a.lance', 'nodes/t/data/a/1.blob']
    """
    return sorted(names, key=lambda name: (_rank(name), version_number(name) or 0, name))


def _rank(name: str) -> int:
    blob = kind_of(name) == "data" and name.endswith(".blob")
    return 4 if blob else _RANKS.get(kind_of(name), 6)


def ranks(names: Iterable[str]) -> Iterator[list[str]]:
    """Yield sorted names rank by rank; names of one rank may be removed in parallel."""
    for _, group in groupby(names, _rank):
        yield list(group)


def remove(
    store: Store,
    names: Sequence[str],
    told: Callable[[str, str | None], None],
    check_claim: Callable[[], None] = lambda: None,
) -> None:
    """Remove files rank by rank; `on_removed` gets each name, with the error if it failed.

    `check_claim` is called before each removal and raises if this run must end.
    """

    def one(name: str) -> None:
        check_claim()
        try:
            store.objects.remove(name)
        except (StorageError, OSError) as error:
            _log.warning("cleanup could not remove %s: %s", name, error)
            told(name, getattr(error, "message", None) or str(error))
        else:
            told(name, None)

    for group in ranks(names):
        if store.root.local:  # a disk gains nothing from parallel removals
            for name in group:
                one(name)
        else:
            with ThreadPoolExecutor(_AT_ONCE or min(at_once(), _MOST), "sweep") as pool:
                list(pool.map(one, group))
