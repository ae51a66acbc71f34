"""Errors for table files that a state references and that are missing.

Looks for missing files only after an operation failed, and proves the loss by a listing. It must
never hide an unrelated failure, nor a failure that may have written something.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager

from omnigraph.errors import OmnigraphError, StorageError
from omnigraph.storage.failures import DamagedError, unpanicked
from omnigraph.storage.store import Store

from . import refs
from .commit import TableEntry
from .refs import Ref
from .remains import absent_manifest, lost_versions

Tables = Mapping[str, TableEntry]
_HELP = (
    "run `omnigraph check` to list them, then restore them from a backup;"
    " other tables and older commits may be intact"
)
_OTHER = ("transient", "precondition")


def missing(store: Store, key: str, names: Sequence[str]) -> DamagedError:
    """Return the error for a table whose files were lost."""
    reason = f"{missing_words(store, key, names)}; nothing was changed"
    return DamagedError(reason, kind="not_found", hint=_HELP)


def missing_manifest(store: Store, ref: Ref) -> OmnigraphError:
    """Return the error for a ref without a manifest: damage, unless the ref was closed since."""
    if ref == refs.MAIN_REF:
        return absent_manifest(store, ref.ulid)
    if refs.highest_number(store, ref.name, ref.place) != ref.number:
        return refs.missing(ref.name, ref.place)
    return lost_versions(store, ref.ulid, branch=f"{refs.kind_of(ref.place)} '{ref.name}'")


def missing_words(store: Store, key: str, names: Sequence[str]) -> str:
    """Describe which files of a table are missing."""
    more = f" and {len(names) - 1} more" if len(names) > 1 else ""
    return f"files of {key} are missing in {store.root.uri}: {names[0]}{more}"


def first_missing(store: Store, tables: Tables) -> DamagedError | None:
    """Return the error of the first table with a missing file, or None if all files exist."""
    from omnigraph.storage.transfer import missing_files

    for key, entry in sorted(tables.items()):
        names = missing_files(store, entry.location, entry.lance_version)
        if names:
            return missing(store, key, names)
    return None


def damaged(store: Store, tables: Tables, *, deep: bool) -> dict[str, DamagedError]:
    """Return the unreadable tables with their errors; `read_rows` reads every row to find out."""
    every = ((key, _damage(store, key, entry, deep)) for key, entry in sorted(tables.items()))
    return {key: error for key, error in every if error is not None}


def _damage(store: Store, key: str, entry: TableEntry, deep: bool) -> DamagedError | None:
    from omnigraph.storage.physical import open_file, stored_batches
    from omnigraph.storage.transfer import version_files

    lost = first_missing(store, {key: entry})
    if lost is not None:
        return lost
    name = f"{entry.location}/_versions/d{entry.lance_version}.manifest"
    try:
        with unpanicked():
            named = version_files(store, entry.location, entry.lance_version).data
        for name in named:
            open_file(store, name)
            for _ in stored_batches(store, name) if deep else ():
                pass
    except (StorageError, OSError, ValueError, RuntimeError):
        return DamagedError(f"{key} cannot be read: {name} is damaged; the table was not changed")
    return None


@contextmanager
def told_when_missing(store: Store, tables: Callable[[], Tables]) -> Iterator[None]:
    """Raise `DamagedError` if the block failed because a file of `used_tables` is missing.

    Any other failure passes through unchanged.
    """
    try:
        yield
    except (StorageError, OSError) as error:
        told = error if isinstance(error, StorageError) else None
        if told is not None and (told.effect != "none" or told.kind in _OTHER):
            raise
        found = first_missing(store, tables())
        if found is None:
            raise
        raise found from error
