"""Missing files of a snapshot: the error that a reader gets.

A cleanup may remove a past state while it is being read, and Lance then fails with an error of its
own. This module finds out which files are missing and whether a cleanup may have removed them. It
never hides another failure.
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TypeVar

import pyarrow as pa

from omnigraph.errors import OmnigraphError, StorageError
from omnigraph.storage.failures import storage_failure, unpanicked
from omnigraph.storage.store import version_names

from .missing import first_missing
from .retention.condemned import reclaimed
from .snapshot import Snapshot

Given = TypeVar("Given")


@contextmanager
def told_when_gone(shown: Snapshot) -> Iterator[None]:
    """Raise `HistoryReclaimed` if a read in the block failed because a cleanup took its files."""
    try:
        with unpanicked():
            yield
    except (pa.ArrowException, OSError, StorageError) as error:
        lost = _lost(shown, error)
        if lost is not None:
            raise lost from error
        if isinstance(error, OmnigraphError | pa.ArrowKeyError):
            raise
        if "LanceError(IO)" in str(error):
            raise storage_failure(error, effect="none") from error
        raise


def batches_until_gone(shown: Snapshot, batches: Iterable[Given]) -> Iterator[Given]:
    """Do the same for data that is read batch by batch."""
    with told_when_gone(shown):
        yield from batches


def _lost(shown: Snapshot, error: Exception) -> OmnigraphError | None:
    """Return the error for missing files: removed by a cleanup, or lost; None if none is missing.

    A cleanup never removes what the newest state of a branch refers to.
    """
    if isinstance(error, StorageError) and error.kind == "transient":
        return None
    if is_reclaimed(shown) and shown.is_superseded():
        return reclaimed(shown.commit_id)
    return first_missing(shown.store, shown.tables)


def is_reclaimed(shown: Snapshot) -> bool:
    """Return whether a table version of a snapshot is missing."""
    read = shown.store.objects.read
    named = [version_names(one.location, one.lance_version) for one in shown.tables.values()]
    return not all(any(read(name) is not None for name in names) for names in named)
