"""Remove files in an order that never exposes an incomplete version to readers.

Versions are removed before the files that they reference, and data files before their blobs. A reader that opens a
version during the removal therefore finds that the version no longer exists, and never reads a version with missing
rows. Removing a file twice is harmless.
"""

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import groupby

from omnigraph.errors import StorageError

from .concurrency import maintenance_concurrency
from .file_roles import attached_version_number, subdirectory_of
from .store import Store

_log = logging.getLogger("omnigraph")
_PARALLEL_REMOVALS = 0  # number of parallel requests; 0 means the maintenance concurrency
_MAX_THREADS = 64  # maximum number of threads
_SUBDIRECTORY_RANKS = {"_versions": 0, "data": 1, "_deletions": 2, "_indices": 3, "_transactions": 5}


def sort_for_removal(file_names: Iterable[str]) -> list[str]:
    """Sort names for removal by rank, with older versions before newer versions.

    >>> sort_for_removal(["t/data/a/1.blob", "t/data/a.lance", "t/_versions/d7.manifest"])
    ['t/_versions/d7.manifest', 't/data/a.lance', 't/data/a/1.blob']
    """
    return sorted(
        file_names, key=lambda file_name: (_removal_rank(file_name), attached_version_number(file_name) or 0, file_name)
    )


def _removal_rank(file_name: str) -> int:
    is_blob = subdirectory_of(file_name) == "data" and file_name.endswith(".blob")
    return 4 if is_blob else _SUBDIRECTORY_RANKS.get(subdirectory_of(file_name), 6)


def group_by_rank(sorted_names: Iterable[str]) -> Iterator[list[str]]:
    """Yield one list of names per rank.

    `sorted_names` must be sorted for removal. Names of the same rank may be removed in parallel.
    """
    for _, rank_names in groupby(sorted_names, _removal_rank):
        yield list(rank_names)


def remove_files(
    store: Store,
    sorted_names: Sequence[str],
    on_removed: Callable[[str, str | None], None],
    check_claim: Callable[[], None] = lambda: None,
) -> None:
    """Remove files one rank at a time. `on_removed` receives each name and, if the removal failed, the error.

    `check_claim` is called before each removal and must raise an error if the removal has to stop.
    """

    def remove_file(file_name: str) -> None:
        check_claim()
        try:
            store.objects.remove(file_name)
        except (StorageError, OSError) as error:
            _log.warning("cleanup could not remove %s: %s", file_name, error)
            on_removed(file_name, getattr(error, "message", None) or str(error))
        else:
            on_removed(file_name, None)

    for rank_names in group_by_rank(sorted_names):
        if store.root.is_local:  # on a local disk, parallel removals are no faster
            for file_name in rank_names:
                remove_file(file_name)
        else:
            with ThreadPoolExecutor(
                _PARALLEL_REMOVALS or min(maintenance_concurrency(), _MAX_THREADS), "sweep"
            ) as pool:
                list(pool.map(remove_file, rank_names))
