"""Errors for missing table files that a state still references.

The search for missing files runs only after an operation has failed, and a list request confirms that the files are
missing. The search must never hide an unrelated failure or a failure that may have written something.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager

from omnigraph.errors import OmnigraphError, StorageError
from omnigraph.storage.failures import DamagedError, panics_as_errors
from omnigraph.storage.store import Store
from omnigraph.values.table_key import TableKey

from . import refs
from .commit import TableEntry
from .missing_manifest import absent_manifest_error, lost_versions_error
from .refs import Ref

TableEntries = Mapping[TableKey, TableEntry]
_RESTORE_HINT = (
    "run `omnigraph check` to list the missing files, then restore them from a backup;"
    " other tables and older commits may be intact"
)
_UNRELATED_KINDS = ("transient", "precondition")


def missing_files_error(store: Store, table_key: TableKey, missing_names: Sequence[str]) -> DamagedError:
    """Return the error for a table whose files were lost."""
    reason = f"{describe_missing_files(store, table_key, missing_names)}; nothing was changed"
    return DamagedError(reason, kind="not_found", hint=_RESTORE_HINT)


def missing_manifest_error(store: Store, ref: Ref) -> OmnigraphError:
    """Return the error for a ref without a manifest.

    The error reports damage unless the ref's name has since been released.
    """
    if ref == refs.MAIN_REF:
        return absent_manifest_error(store, ref.ulid)
    if refs.find_highest_number(store, ref.name, ref.directory) != ref.number:
        return refs.name_not_found_error(store, ref.name, ref.directory)
    return lost_versions_error(store, ref.ulid, branch_label=f"{refs.ref_kind_of(ref.directory)} '{ref.name}'")


def describe_missing_files(store: Store, table_key: TableKey, missing_names: Sequence[str]) -> str:
    """Describe which of a table's files are missing."""
    remainder = f" and {len(missing_names) - 1} more" if len(missing_names) > 1 else ""
    return f"files for {table_key} are missing from {store.root.uri}: {missing_names[0]}{remainder}"


def first_missing_files_error(store: Store, table_entries: TableEntries) -> DamagedError | None:
    """Return the error for the first table with missing files, or None if all files exist."""
    from omnigraph.storage.transfer import find_missing_files

    for table_key, entry in sorted(table_entries.items()):
        missing_names = find_missing_files(store, entry.location, entry.lance_version)
        if missing_names:
            return missing_files_error(store, table_key, missing_names)
    return None


def find_damaged_tables(store: Store, table_entries: TableEntries, *, read_rows: bool) -> dict[TableKey, DamagedError]:
    """Return the unreadable tables with their errors. With `read_rows`, every row is read."""
    checked_tables = (
        (table_key, _find_table_damage(store, table_key, entry, read_rows))
        for table_key, entry in sorted(table_entries.items())
    )
    return {table_key: damage for table_key, damage in checked_tables if damage is not None}


def _find_table_damage(store: Store, table_key: TableKey, entry: TableEntry, read_rows: bool) -> DamagedError | None:
    from omnigraph.storage.raw_files import read_raw_batches, read_row_count
    from omnigraph.storage.transfer import version_files

    missing_error = first_missing_files_error(store, {table_key: entry})
    if missing_error is not None:
        return missing_error
    file_name = f"{entry.location}/_versions/d{entry.lance_version}.manifest"
    try:
        with panics_as_errors():
            data_files = version_files(store, entry.location, entry.lance_version).data_files
        for file_name in data_files:
            read_row_count(store, file_name)
            for _ in read_raw_batches(store, file_name) if read_rows else ():
                pass
    except (StorageError, OSError, ValueError, RuntimeError):
        return DamagedError(f"{table_key} cannot be read: {file_name} is damaged; the table was not changed")
    return None


@contextmanager
def report_missing_files(store: Store, used_tables: Callable[[], TableEntries]) -> Iterator[None]:
    """Raise `DamagedError` if the block fails because a file of one of the `used_tables` is missing.

    Any other failure passes through unchanged.
    """
    try:
        yield
    except (StorageError, OSError) as error:
        storage_error = error if isinstance(error, StorageError) else None
        if storage_error is not None and (storage_error.effect != "none" or storage_error.kind in _UNRELATED_KINDS):
            raise
        missing_error = first_missing_files_error(store, used_tables())
        if missing_error is None:
            raise
        raise missing_error from error
