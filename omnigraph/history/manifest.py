"""The manifest of one branch: read its state, swap it for the next.

Owns the check of the format stamp and the verification before an acknowledgement. `publish`
decides who may swap, and for what.
"""

from dataclasses import dataclass

from omnigraph.errors import InputError, InternalError, StorageError
from omnigraph.storage import cell as cells
from omnigraph.storage import layout
from omnigraph.storage.cell import Cell
from omnigraph.storage.failures import DamagedError, storage_failure, unpanicked
from omnigraph.storage.store import Store, version_names
from omnigraph.storage.torn import TornError, torn_version

from .remains import absent_manifest
from .state import READ, State, from_rows, to_rows


@dataclass(frozen=True, slots=True)
class Opened:
    """A state, and the manifest version it was read from."""

    state: State
    cell: Cell

    @property
    def version(self) -> int:
        """The manifest version."""
        return self.cell.version


def create_manifest(store: Store, ulid: str, state: State) -> Opened:
    """Create the manifest of a new branch with its first state."""
    location = layout.manifest_directory(ulid)
    return Opened(state, cells.create_cell(store, location, to_rows(state, 1)))


def manifest_exists(store: Store, ulid: str = layout.MAIN) -> bool:
    """Return whether a branch has a manifest: one listing."""
    return bool(store.objects.list(f"{layout.manifest_directory(ulid)}/_versions"))


def read_manifest(
    store: Store, ulid: str = layout.MAIN, version: int | None = None, *, failed: int | None = None
) -> Opened:
    """Load the state of a branch, newest or at a manifest version: one listing and two reads.

    `unreadable_version` failed to load before: it is an error if it is still the newest.
    """
    location = layout.manifest_directory(ulid)
    try:
        cell = cells.open_cell(store, location, version, reused=ulid == layout.MAIN)
    except FileNotFoundError:
        raise absent_manifest(store, ulid) from None
    except StorageError as error:
        raise _unreadable(store, location, version, error) from error
    if cell.version == 0:  # Lance reads a file of zeros as version 0
        raise _unreadable(store, location, version, None)
    check_stamp(cell.stamp)
    try:
        with unpanicked():
            return Opened(from_rows(cell.rows(READ), cell.version), cell)
    except (OSError, ValueError, LookupError, TypeError, InternalError) as error:
        # It may have been replaced after it was opened, and its rows cleaned up.
        if version is None and cell.version != failed and cells.newest(cell) != cell.version:
            return read_manifest(store, ulid, failed=cell.version)
        store_failed = isinstance(error, OSError) and not store.root.local
        failure = storage_failure(error, effect="none")
        raise _rows_unreadable(store, cell, failure, failed=store_failed) from error


def _unreadable(
    store: Store, location: str, version: int | None, error: StorageError | None
) -> StorageError:
    """Return `TornError` if only the newest version is torn, the store's own error, or damage."""
    torn = torn_version(store, location) if version is None else None
    if torn is not None:
        message = (
            f"version {torn} of {location} was torn by a power loss before it was acknowledged"
        )
        return TornError(message)
    told = error is not None and (error.kind != "unknown" or not store.root.local)
    return error if error is not None and told else _damaged(location, error)


def _rows_unreadable(
    store: Store, cell: Cell, failure: StorageError, *, failed: bool
) -> StorageError:
    """Return the error for a version whose rows cannot be read; it names missing files."""
    lost = [name for name in cells.files_of(cell) if store.objects.read(name) is None]
    if lost:
        message = f"{cell.location} is damaged: {', '.join(lost)} is missing; nothing was changed"
        return DamagedError(message, hint="restore the file from a copy")
    return failure if failed else _damaged(cell.location, failure)


def _damaged(location: str, error: StorageError | None = None) -> StorageError:
    reason = error.reason if error is not None else None
    message = f"{location} is damaged: a version in it cannot be read; nothing was changed"
    hint = "restore the files from a copy"
    return StorageError(message, kind="permanent", reason=reason, effect="none", hint=hint)


def swap_state(store: Store, base: Opened, state: State) -> Opened:
    """Swap in the next state, if it is still based on the newest; see `cell.swap` for failures."""
    return Opened(state, cells.swap(store, base.cell, to_rows(state, base.version + 1)))


def is_newest(opened: Opened) -> bool:
    """Return whether no newer version exists: the check before an acknowledgement, one listing.

    Also False if the root was created again since: a swap that landed in the new root is withdrawn.
    """
    cell = opened.cell
    found = cells.newest(cell)
    if cell.base is None or found not in (0, opened.version):
        return found == opened.version
    # Its predecessor is missing: cleaned up, or in another root, which lacks the files it needs.
    if not _is_whole(opened):
        cells.withdraw(cell)
        return False
    cells.settle(cell)
    return cells.newest(cell) == opened.version


def stillness(opened: Opened) -> object | None:
    """Return a value that changes with the manifest, without a request; None where unknown."""
    return cells.stillness(opened.cell)


def is_displaced(opened: Opened) -> bool:
    """Return whether another graph now exists where a state was read: one listing."""
    return cells.newest(opened.cell) == 0 and not _is_whole(opened)


def _is_whole(opened: Opened) -> bool:
    """Return whether all files of a state exist; a cleanup never removes those of the newest."""
    state, read = opened.state, opened.cell.store.objects.read
    named = [{state.schema.location}, *({chunk.name} for chunk in state.chunks)]
    named += [version_names(one.location, one.lance_version) for one in state.tables.values()]
    return all(any(read(name) is not None for name in names) for names in named)


def secure(opened: Opened) -> None:
    """Sync a state that others may have written, before anything is acknowledged based on it."""
    cells.secure(opened.cell)


def check_stamp(stamp: str | None) -> None:
    """Refuse a graph of another storage format; nothing is changed."""
    if stamp == str(layout.STAMP):
        return
    if stamp is None:
        raise StorageError(
            "the manifest has no format stamp: init was interrupted or the metadata is damaged",
            kind="permanent",
        )
    if not stamp.isdecimal():
        raise StorageError(f"the format stamp '{stamp}' is not a number", kind="permanent")
    raise _other_format(int(stamp))


def _other_format(found: int) -> InputError:
    ours = layout.STAMP
    if found > ours:
        message = f"the graph has storage format {found}, this program reads {ours}"
        return InputError(message, reason="written by a newer release", hint="upgrade first")
    recipe = (
        "export it with the program that made it, then init and load --mode overwrite here;"
        " data, vectors and blobs survive, history and branches do not"
    )
    message = f"the graph has the older storage format {found}, this program reads {ours}"
    return InputError(message, reason="written by an older release", hint=recipe)
