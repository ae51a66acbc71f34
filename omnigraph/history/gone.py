"""What a reader is told when the files of what it reads are gone.

A cleanup may take a state of the past while somebody reads it. Lance then fails in words of its
own; here it is looked up whether the version is still there. It never hides another failure.
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TypeVar

import pyarrow as pa

from omnigraph.errors import OmnigraphError, StorageError
from omnigraph.storage.failures import storage_failure, unpanicked
from omnigraph.storage.store import version_names

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
        if is_reclaimed(shown):
            raise reclaimed(shown.commit_id) from error
        if isinstance(error, OmnigraphError | pa.ArrowKeyError):
            raise
        if "LanceError(IO)" in str(error):
            raise storage_failure(error, effect="none") from error
        raise


def batches_until_gone(shown: Snapshot, batches: Iterable[Given]) -> Iterator[Given]:
    """The same for what is read piece by piece."""
    with told_when_gone(shown):
        yield from batches


def is_reclaimed(shown: Snapshot) -> bool:
    """Whether a table version of a snapshot is gone."""
    read = shown.store.objects.read
    named = [version_names(one.location, one.lance_version) for one in shown.tables.values()]
    return not all(any(read(name) is not None for name in names) for names in named)
