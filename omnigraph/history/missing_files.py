"""Report missing files while a snapshot is being read.

A cleanup may remove a past state while a reader is using it, and Lance then raises its own error. This module
determines which files are missing and whether a cleanup may have removed them. Unrelated failures are never hidden.
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TypeVar

import pyarrow as pa

from omnigraph.errors import OmnigraphError, StorageError
from omnigraph.storage.failures import panics_as_errors, to_storage_error
from omnigraph.storage.store import version_file_names

from .missing_table_files import first_missing_files_error
from .snapshot import Snapshot

BatchItem = TypeVar("BatchItem")


@contextmanager
def explain_missing_files(snapshot: Snapshot) -> Iterator[None]:
    """Raise `HistoryReclaimed` if a read in the block fails because a cleanup removed the snapshot's files."""
    try:
        with panics_as_errors():
            yield
    except (pa.ArrowException, OSError, StorageError) as error:
        missing_error = _find_missing_error(snapshot, error)
        if missing_error is not None:
            raise missing_error from error
        if isinstance(error, OmnigraphError | pa.ArrowKeyError):
            raise
        if "LanceError(IO)" in str(error):
            raise to_storage_error(error, effect="none") from error
        raise


def explain_missing_batches(snapshot: Snapshot, batches: Iterable[BatchItem]) -> Iterator[BatchItem]:
    """Yield batches; raise `HistoryReclaimed` if a cleanup removes the files while they are being read."""
    with explain_missing_files(snapshot):
        yield from batches


def _find_missing_error(snapshot: Snapshot, error: Exception) -> OmnigraphError | None:
    """Return an error that states whether files were lost or a cleanup removed them, or None if no file is missing.

    A cleanup never removes files that a branch's newest state references.
    """
    if isinstance(error, StorageError) and error.kind == "transient":
        return None
    if lacks_table_version(snapshot) and snapshot.is_superseded():
        from .delete_queue import reclaimed_error

        return reclaimed_error(snapshot.commit_id)
    return first_missing_files_error(snapshot.store, snapshot.tables)


def lacks_table_version(snapshot: Snapshot) -> bool:
    """Return whether a snapshot has lost a table version."""
    read_object = snapshot.store.objects.read
    version_files = [version_file_names(entry.location, entry.lance_version) for entry in snapshot.tables.values()]
    return not all(any(read_object(file_name) is not None for file_name in file_names) for file_names in version_files)
