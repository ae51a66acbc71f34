"""What a reader is told when the files of what it reads are gone.

A cleanup may take a state of the past while somebody reads it. Lance then fails in words of its
own; here it is looked up what is still there, and whether a cleanup may have taken the rest. It
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
    """Let a read that failed because a cleanup took its files end in `HistoryReclaimed`."""
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
    """The same for what is read piece by piece."""
    with told_when_gone(shown):
        yield from batches


def _lost(shown: Snapshot, error: Exception) -> OmnigraphError | None:
    """What became of the files of a snapshot: taken by a cleanup, or lost; None if all are there.

    What the newest state of a branch names is never taken.
    """
    if isinstance(error, StorageError) and error.kind == "transient":
        return None
    if is_reclaimed(shown) and shown.is_superseded():
        return reclaimed(shown.commit_id)
    return first_missing(shown.store, shown.tables)


def is_reclaimed(shown: Snapshot) -> bool:
    """Whether a table version of a snapshot is gone."""
    read = shown.store.objects.read
    named = [version_names(one.location, one.lance_version) for one in shown.tables.values()]
    return not all(any(read(name) is not None for name in names) for names in named)
