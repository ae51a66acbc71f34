"""Read a branch's manifest, and swap it for the next state.

This module checks the format stamp and verifies a swap before it is acknowledged. `publish` decides when to swap a
manifest and which state to swap in.
"""

from omnigraph.errors import InputError, InternalError, StorageError
from omnigraph.records.frozen import record
from omnigraph.storage import layout
from omnigraph.storage import manifest_cell as cells
from omnigraph.storage.failures import DamagedError, panics_as_errors, to_storage_error
from omnigraph.storage.manifest_cell import ManifestCell
from omnigraph.storage.plain_version import read_plain_version
from omnigraph.storage.store import Store, version_file_names
from omnigraph.storage.torn_versions import TornVersionError, find_torn_version

from .format_upgrades import find_upgrades
from .missing_manifest import absent_manifest_error
from .state import READ_COLUMNS, GraphState, from_rows, has_checksum, to_rows


@record
class LoadedManifest:
    """A state, and the manifest version that it was read from."""

    state: GraphState
    cell: ManifestCell

    @property
    def version(self) -> int:
        """The manifest version."""
        return self.cell.version


def create_manifest(store: Store, branch_ulid: str, state: GraphState) -> LoadedManifest:
    """Create a new branch's manifest with its first state."""
    location = layout.manifest_directory(branch_ulid)
    return LoadedManifest(state, cells.create_cell(store, location, to_rows(state, 1)))


def manifest_exists(store: Store, branch_ulid: str = layout.MAIN) -> bool:
    """Return whether a branch has a manifest. This takes one list request."""
    return bool(store.objects.list(f"{layout.manifest_directory(branch_ulid)}/_versions"))


def read_manifest(
    store: Store, branch_ulid: str = layout.MAIN, version: int | None = None, *, unreadable_version: int | None = None
) -> LoadedManifest:
    """Load a branch's newest state, or its state at a manifest version, with one list request and two reads.

    `unreadable_version` is a version that an earlier call could not load. If that version is still the newest one, an
    error is raised.
    """
    location = layout.manifest_directory(branch_ulid)
    plain_manifest = _read_without_lance(store, location, version)
    if plain_manifest is not None:
        return plain_manifest
    try:
        cell = cells.open_cell(store, location, version, reused=branch_ulid == layout.MAIN)
    except FileNotFoundError:
        raise absent_manifest_error(store, branch_ulid) from None
    except StorageError as error:
        raise _unreadable_error(store, location, version, error) from error
    if cell.version == 0:  # Lance reads a file of zeros as version 0
        raise _unreadable_error(store, location, version, None)
    check_format_stamp(cell.stamp, store.root.uri)
    try:
        with panics_as_errors():
            return LoadedManifest(from_rows(cell.read_rows(READ_COLUMNS), cell.version), cell)
    except (OSError, ValueError, LookupError, TypeError, InternalError) as error:
        # The version may have been replaced after it was opened, and a cleanup may have removed its rows.
        if version is None and cell.version != unreadable_version and cells.newest_version(cell) != cell.version:
            return read_manifest(store, branch_ulid, unreadable_version=cell.version)
        store_failed = isinstance(error, OSError) and not store.root.is_local
        failure = to_storage_error(error, effect="none")
        raise _unreadable_rows_error(store, cell, failure, store_failed=store_failed) from error


def _read_without_lance(store: Store, location: str, version: int | None) -> LoadedManifest | None:
    """Load a state from a read-only store without Lance, which is slow to import.

    Return None if the store is not local, or if the version cannot be read in this way.
    """
    if not store.root.is_local or not store.effects.read_only:
        return None
    plain_version = read_plain_version(store.root.uri_of(location), version, READ_COLUMNS)
    if plain_version is None or plain_version.stamp != str(layout.STAMP):
        return None
    cell = ManifestCell(store, location, plain_version, etag=None if location == layout.MANIFEST else "")
    rows = cell.read_rows(READ_COLUMNS)
    try:
        return LoadedManifest(from_rows(rows, cell.version), cell) if has_checksum(rows) else None
    except (ValueError, LookupError, TypeError, InternalError):
        return None


def _unreadable_error(store: Store, location: str, version: int | None, error: StorageError | None) -> StorageError:
    """Return `TornVersionError` if the newest version is torn; if not, return the store error or a damage error."""
    torn_number = find_torn_version(store, location) if version is None else None
    if torn_number is not None:
        return TornVersionError(
            f"version {torn_number} of {location} was torn by a power loss before it was acknowledged"
        )
    is_store_failure = error is not None and (error.kind != "unknown" or not store.root.is_local)
    return error if error is not None and is_store_failure else _damaged_error(location, error)


def _unreadable_rows_error(
    store: Store, cell: ManifestCell, failure: StorageError, *, store_failed: bool
) -> StorageError:
    """Return an error for a version whose rows cannot be read. The error lists any missing files."""
    missing_names = [file_name for file_name in cells.cell_files(cell) if store.objects.read(file_name) is None]
    if missing_names:
        missing = ", ".join(missing_names)
        message = f"{cell.location} is damaged: {missing} is missing; nothing was changed"
        return DamagedError(message, hint="restore the file from a backup")
    return failure if store_failed else _damaged_error(cell.location, failure)


def _damaged_error(location: str, error: StorageError | None = None) -> StorageError:
    reason = error.reason if error is not None else None
    message = f"{location} is damaged: one of its versions cannot be read; nothing was changed"
    hint = "restore the files from a backup"
    return StorageError(message, kind="permanent", reason=reason, effect="none", hint=hint)


def swap_state(store: Store, base_manifest: LoadedManifest, next_state: GraphState) -> LoadedManifest:
    """Swap in the next state if `base_manifest` is still the newest version.

    Raises the same errors as `manifest_cell.swap`.
    """
    return LoadedManifest(
        next_state, cells.swap(store, base_manifest.cell, to_rows(next_state, base_manifest.version + 1))
    )


def is_newest(manifest: LoadedManifest) -> bool:
    """Return whether no newer version exists. The check takes one list request and must precede any acknowledgement.

    The result is also False if the root has been recreated. If the swap was applied to the recreated root, the version
    that the swap wrote there is removed.
    """
    cell = manifest.cell
    newest_version = cells.newest_version(cell)
    if cell.base is None or newest_version not in (0, manifest.version):
        return newest_version == manifest.version
    # The predecessor was either cleaned up or written to a different root. In the second case, required files are
    # missing here.
    if not _all_files_exist(manifest):
        cells.remove_foreign_swap(cell)
        return False
    cells.accept_swap(cell)
    return cells.newest_version(cell) == manifest.version


def change_token(manifest: LoadedManifest) -> object | None:
    """Return a value that changes with the manifest, or None if no such value is available. This takes no requests."""
    return cells.versions_change_token(manifest.cell)


def is_from_replaced_graph(manifest: LoadedManifest) -> bool:
    """Return whether a different graph has replaced the one that a state was read from. This takes one list request."""
    return cells.newest_version(manifest.cell) == 0 and not _all_files_exist(manifest)


def _all_files_exist(manifest: LoadedManifest) -> bool:
    """Return whether the schema object, log chunks and table versions that a state references exist.

    A cleanup never removes files that the newest state references.
    """
    state, read_object = manifest.state, manifest.cell.store.objects.read
    required_files = [{state.schema.location}, *({chunk.name} for chunk in state.chunks)]
    required_files += [version_file_names(entry.location, entry.lance_version) for entry in state.tables.values()]
    return all(any(read_object(file_name) is not None for file_name in file_names) for file_names in required_files)


def sync_manifest(manifest: LoadedManifest) -> None:
    """Sync a state that another process may have written, before anything based on it is acknowledged."""
    cells.sync_version(manifest.cell)


def check_format_stamp(stamp: str | None, root_uri: str) -> None:
    """Raise an error if the graph's storage format is unknown or is not the format of this release."""
    if stamp == str(layout.STAMP):
        return
    if stamp is None:
        raise StorageError(
            "the manifest has no format stamp: init was interrupted or the metadata is damaged", kind="permanent"
        )
    if not stamp.isdecimal():
        raise StorageError(f"the format stamp '{stamp}' is not a number", kind="permanent")
    raise _unsupported_format_error(int(stamp), root_uri)


def _unsupported_format_error(graph_format: int, root_uri: str) -> InputError:
    supported_format = layout.STAMP
    if graph_format > supported_format:
        message = f"the graph has storage format {graph_format}, but this release reads format {supported_format}"
        return InputError(message, reason="written by a newer release", hint="upgrade first")
    upgrade_hint = (
        f"run `omnigraph upgrade {root_uri}`, which keeps all data, branches and history; the release"
        " that wrote the graph cannot open it afterward"
    )
    export_hint = (
        "export the graph with the release that wrote it, then run `omnigraph init` and"
        " `omnigraph load --mode overwrite` with this release; data, vectors and blobs are"
        " kept, but history and branches are not"
    )
    message = f"the graph has the older storage format {graph_format}, but this release reads format {supported_format}"
    hint = export_hint if find_upgrades(graph_format) is None else upgrade_hint
    return InputError(message, reason="written by an older release", hint=hint)
