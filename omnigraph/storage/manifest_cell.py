"""The manifest cell: a compare-and-swap register that holds the manifest of one branch.

A cell is a small Lance dataset whose only fragment contains the whole manifest. A cell is always read and replaced as a
whole. Replacing it uses the only Lance operation that fails unless its base version is the newest version. This module
implements the swap, the format stamp, and the check that a swap is the newest version and has the same history as its
base. It does not interpret the rows. A version number alone does not identify a version: a root can be deleted and
recreated with the same numbers, and a cleanup frees the numbers of old versions.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from omnigraph.errors import InternalError, StorageError
from omnigraph.values import clock_and_ids

from .dataset_cache import load_lance
from .failures import AbsentError, DamagedError, to_storage_error
from .layout import STAMP, STAMP_KEY
from .object_backend import ListedObject
from .plain_version import PlainVersion
from .session_limit import limit_session
from .store import Store

if TYPE_CHECKING:
    import pyarrow as pa
    from lance.dataset import Transaction

_LANCE_FILE_VERSION: Literal["2.2"] = "2.2"
_MAX_VERSION = (1 << 64) - 1  # a version file is named by this number minus the version, so the newest sorts first
_LISTED_VERSIONS = 16  # number of versions that a check lists, newest first


class SwapConflict(Exception):  # noqa: N818 - caught by the publish loop, never by a caller
    """A newer version already exists. The swap did not happen, unless the newer version is based on its result."""


class SwapOutcomeUnknown(Exception):  # noqa: N818 - caught by the publish loop, never by a caller
    """It is unknown whether the swap was applied. Read the newest version to find out."""


class UnsyncedError(StorageError):
    """The swap was applied but may not survive a power loss.

    Syncing again does not help: after a failed fsync, a disk may report success for data that it has lost.
    """

    code = "StorageError"
    effect = "unknown"
    hint = "check the disk, then read the graph to see whether the write was applied"


@dataclass(slots=True, eq=False)
class ManifestCell:
    """A cell at one version.

    `etag` distinguishes this version's object from an object created later under the same name. The first check sets
    it. Until then, it is "" if the etag in a listing can be trusted, or None if the object itself must be read and
    compared first. After a swap, `base` is the replaced cell until a check has found both versions in one listing.
    """

    store: Store
    location: str
    dataset: Any  # a Lance dataset, or a `PlainVersion` in a read-only store
    base: "ManifestCell | None" = None
    etag: str | None = ""

    @property
    def version(self) -> int:
        """The version number that a swap uses as its base."""
        return int(self.dataset.version)

    @property
    def stamp(self) -> str | None:
        """The format stamp stored in the schema metadata, or None if there is none."""
        if isinstance(self.dataset, PlainVersion):
            return self.dataset.stamp
        stamp_bytes = (self.dataset.schema.metadata or {}).get(STAMP_KEY.encode())
        return None if stamp_bytes is None else stamp_bytes.decode(errors="replace")

    def read_rows(self, columns: Sequence[str]) -> list[dict[str, Any]]:
        """Return all rows in the order in which they were written."""
        if isinstance(self.dataset, PlainVersion):
            return self.dataset.read_rows(columns)
        cell_rows: list[dict[str, Any]] = self.dataset.to_table(columns=list(columns)).to_pylist()
        return cell_rows


def create_cell(store: Store, location: str, rows: "pa.Table") -> ManifestCell:
    """Create a cell with its first rows and the format stamp, in one commit.

    If several processes create the same cell, exactly one succeeds. The others get a Lance exception that does not
    state the reason, so they must try to read the cell to find out whether it exists.
    """
    stamped_rows = rows.replace_schema_metadata({STAMP_KEY: str(STAMP)})
    dataset = store.effects.run("create", location, lambda: _create_dataset(store, location, stamped_rows))
    cell = ManifestCell(store, location, dataset)
    sync_version(cell)
    return cell


def _create_dataset(store: Store, location: str, rows: "pa.Table") -> Any:
    from lance import LanceOperation
    from lance.fragment import write_fragments

    fragments: list[Any] = write_fragments(
        rows,
        store.root.uri_of(location),
        mode="create",
        data_storage_version=_LANCE_FILE_VERSION,
        enable_stable_row_ids=True,
        storage_options=store.options,
    )
    # Sync the data before creating the version that references it: after a power loss, a version file must never
    # reference data that was not written.
    store.sync_to_disk(*(f"{location}/data/{file.path}" for fragment in fragments for file in fragment.files))
    # Do not use `write_dataset` in mode `create`: it checks first and then overwrites, so it could destroy a cell that
    # another process created in between. A commit on version 0 fails instead of overwriting the cell.
    return load_lance().LanceDataset.commit(
        store.root.uri_of(location),
        LanceOperation.Overwrite(rows.schema, fragments),
        read_version=0,
        max_retries=0,
        enable_v2_manifest_paths=True,
        enable_stable_row_ids=True,
        storage_options=store.options,
    )


def open_cell(store: Store, location: str, version: int | None = None, *, reused: bool = False) -> ManifestCell:
    """Open a cell at its newest version, or at a given version.

    `reused` is true if the location may be deleted and recreated under the same name, as the main branch may be. In
    that case, the first check rereads the version file instead of trusting a listing, because the file may have been
    replaced between opening and listing. If the location is never reused, the first check trusts the listing.
    """
    dataset = store.open_dataset(location, version)
    if version is None and _has_successor_file(store, location, dataset):
        dataset = _reopen_newest(store, location, dataset)
    return ManifestCell(store, location, dataset, etag=None if reused else "")


def _has_successor_file(store: Store, location: str, dataset: Any) -> bool:
    """Return whether the file of the next version exists. On an object store, the result is always False."""
    version = int(dataset.version)
    return version > 0 and store.objects.stat_if_local(_version_file(location, version + 1)) is not None


def _reopen_newest(store: Store, location: str, dataset: Any) -> Any:
    """Open the newest version again in case another writer has just published it.

    Lance takes the version number from the content of a file, not from its name. A damaged file that contains an older
    version would silently roll the branch back. The file of the next version is therefore reported as damaged if its
    content is not newer.
    """
    reopened = store.open_dataset(location)
    if reopened.version > dataset.version:
        return reopened
    successor_name = _version_file(location, int(dataset.version) + 1)
    raise DamagedError(f"{successor_name} is damaged: it contains version {reopened.version}, expected a newer version")


def swap(store: Store, cell: ManifestCell, rows: "pa.Table", stamp: int | None = None) -> ManifestCell:
    """Replace all rows if and only if `cell` is still the newest version.

    If `stamp` is given, the swap also replaces the format stamp and the columns, as an upgrade requires. Do not
    acknowledge the swap before calling `newest_version` on the result: if a cleanup has removed the versions that
    followed an old `cell`, the next number is free again, and Lance accepts a swap far below the newest version.

    Raises `SwapConflict` if `cell` is not the newest version, `SwapOutcomeUnknown` if the store did
    not respond, and `UnsyncedError` if the swap was applied but the disk did not confirm durability.
    """
    from lance import LanceOperation
    from lance.commit import CommitConflictError
    from lance.dataset import Transaction

    cell.dataset = limit_session(store, cell.dataset)
    # 1. Write and sync the data file. No version references it yet, so a crash at this point changes nothing. If the
    # version were created first, a power loss could leave a visible version without its data.
    rows = rows if stamp is None else rows.replace_schema_metadata({STAMP_KEY: str(stamp)})
    mode: Literal["append", "overwrite"] = "append" if stamp is None else "overwrite"
    fragments = store.effects.run("state", cell.location, lambda: _write_fragments(store, cell, rows, mode))
    store.sync_to_disk(*(f"{cell.location}/data/{file.path}" for fragment in fragments for file in fragment.files))
    # 2. Keep the base version's Lance schema: a plain Arrow schema would drop the format stamp and renumber the fields.
    operation = LanceOperation.Overwrite(cell.dataset.lance_schema if stamp is None else rows.schema, fragments)
    # The UUID lets Lance recognize its own version file if the client repeats a request whose response was lost.
    transaction = Transaction(cell.version, operation, uuid=_transaction_uuid())
    # 3. Check that the root was not replaced. Lance compares only version numbers, and a recreated root has the same
    # numbers. On a local disk, this check needs no request, so it runs before the swap. On an object store, only
    # `newest_version` checks the root, after the swap. A check here would need a request and could not replace that
    # check.
    if store.root.is_local and not _is_same_history(cell, _list_newest_versions(cell)):
        raise SwapConflict
    # 4. The compare-and-swap: create the version file, which fails if the name is taken.
    try:
        dataset = store.effects.run("publish", cell.location, lambda: _commit_strictly(store, cell, transaction))
    except CommitConflictError as error:
        raise SwapConflict from error
    except BaseException as error:
        # Any other exception, including an interrupt, may arrive after the store has applied the swap. If it were
        # reported as a plain failure, the caller would retry and write twice.
        raise SwapOutcomeUnknown(str(error)) from error
    swapped_cell = ManifestCell(store, cell.location, dataset, base=cell)
    if swapped_cell.stamp != (cell.stamp if stamp is None else str(stamp)):
        raise InternalError("the published manifest has the wrong format stamp")
    # 5. Make the new version durable before any caller can acknowledge it.
    _sync_swapped_version(swapped_cell)
    return swapped_cell


def sync_version(cell: ManifestCell) -> None:
    """Sync a version to disk, because every version must be durable before it is acknowledged or used as a base.

    The writer of the version may be another process that crashed between its swap and its sync. Without this sync, a
    write could be acknowledged and then lose its base in a power failure. Raises `AbsentError` if the version has been
    replaced and cleaned up in the meantime. In that case, a newer version exists.
    """
    try:
        cell.store.sync_to_disk(*cell_files(cell))
    except FileNotFoundError as error:
        raise AbsentError(f"version {cell.version} of {cell.location} no longer exists") from error
    except OSError as error:
        raise _unsynced_error(error) from error


def _sync_swapped_version(cell: ManifestCell) -> None:
    try:
        cell.store.sync_to_disk(_cell_file(cell))
    except OSError as error:
        if not isinstance(error, FileNotFoundError):
            raise _unsynced_error(error) from error
        # The version has already been cleaned up, so a newer version exists, which may or may not be based on this
        # swap. The publish loop reads the newer version to find out, as it does after any conflict.
        raise SwapConflict from error
    except BaseException as error:
        raise SwapOutcomeUnknown(str(error)) from error


def _unsynced_error(error: OSError) -> UnsyncedError:
    return UnsyncedError(
        "the write was applied, but the disk did not confirm that it is durable",
        kind=to_storage_error(error).kind,
        reason=error.strerror,
    )


def newest_version(cell: ManifestCell) -> int:
    """Return the newest version number from one listing, or 0 if the cell may belong to a different root.

    A new swap is verified through its base. A version with the number of the swap proves nothing, because it may belong
    to a recreated root. If the base is missing, the root may have been replaced, or a late swap may have reused the
    number of an old version that a cleanup removed.
    """
    listed_versions = _list_newest_versions(cell)
    if not _is_same_history(cell.base or cell, listed_versions):
        return 0
    # The base and the swap appear in the same listing, so the swap is confirmed. From now on, recognize the swap by its
    # own object, because a cleanup may remove the base at any time.
    if cell.base is not None and cell.base.version in listed_versions and cell.version in listed_versions:
        cell.base, cell.etag = None, listed_versions[cell.version].etag
    return max(listed_versions, default=0)


def versions_change_token(cell: ManifestCell) -> object | None:
    """Return a token that changes when a version is added or removed, or None if reading it would take a request."""
    return cell.store.objects.change_token(f"{cell.location}/_versions")


def accept_swap(cell: ManifestCell) -> None:
    """Treat a swap as valid although its base no longer exists.

    The caller must have verified that all files referenced by the swap exist. The etag is set to None, so the next
    check reads the object before it trusts the listing.
    """
    cell.base, cell.etag = None, None


def remove_foreign_swap(cell: ManifestCell) -> None:
    """Remove a swap that was written into a different root and never acknowledged.

    The object is removed only if it contains this swap, because the other root may have its own version under the same
    name.
    """
    file_name = _cell_file(cell)
    if cell.base is not None and _is_cell_object(cell, file_name):
        cell.store.objects.remove(file_name)


def _list_newest_versions(cell: ManifestCell) -> Mapping[int, ListedObject]:
    """Return the listing entries for the newest versions, by version number."""
    successors = _stat_versions_from(cell.base or cell)
    if successors:
        return successors
    listing = cell.store.objects.list_first(f"{cell.location}/_versions", _LISTED_VERSIONS)
    entries = {entry.name.rpartition("/")[2].removesuffix(".manifest"): entry for entry in listing}
    return {_MAX_VERSION - int(stem): entry for stem, entry in entries.items() if stem.isdecimal()}


def _stat_versions_from(cell: ManifestCell) -> Mapping[int, ListedObject]:
    """Find a version and all its successors by checking individual files, which works only on a local disk.

    This avoids listing a directory that contains every version. Cleanup removes the oldest versions first. While the
    cell's version exists, none of its successors has been removed, so the first missing one ends the sequence. The
    cell's version is checked last. If it were checked first, it could be removed right after the check along with some
    successors, and the gap would be mistaken for the end of the sequence. The result is empty if the cell's version no
    longer exists or has more successors than are checked.
    """
    stat_object, successors = cell.store.objects.stat_if_local, {}
    for version in range(cell.version + 1, cell.version + _LISTED_VERSIONS):
        successor = stat_object(_version_file(cell.location, version))
        if successor is None:
            break
        successors[version] = successor
    else:
        return {}
    own_entry = stat_object(_cell_file(cell))
    is_own = own_entry is not None and (own_entry.etag == cell.etag or _is_cell_object(cell, own_entry.name))
    return successors | {cell.version: own_entry} if own_entry is not None and is_own else {}


def _is_same_history(cell: ManifestCell, listed_versions: Mapping[int, ListedObject]) -> bool:
    """Return whether the listed versions can belong to the same history as a cell.

    Cleanup removes the oldest versions first, so if the cell's own version is missing, all versions below it have been
    removed as well. A lower version must then belong to a different root, or to a late swap that reused a freed number.
    If the cell's version is present, its object must match by etag or by content.
    """
    own_entry = listed_versions.get(cell.version)
    if own_entry is None:
        return not any(version < cell.version for version in listed_versions)
    if cell.etag not in ("", own_entry.etag) and not _is_cell_object(cell, own_entry.name):
        return False
    cell.etag = own_entry.etag or None
    return True


def _is_cell_object(cell: ManifestCell, object_name: str) -> bool:
    """Return whether an object is the version that a cell was read from, by comparing the names of the data files.

    Data files have random names, so no other version references the same file.
    """
    object_bytes = cell.store.objects.read(object_name)
    return object_bytes is not None and all(data_path.encode() in object_bytes for data_path in _fragment_paths(cell))


def _fragment_paths(cell: ManifestCell) -> list[str]:
    if isinstance(cell.dataset, PlainVersion):
        return [cell.dataset.data_path]
    fragment_metadata = [fragment.metadata for fragment in cell.dataset.get_fragments()]
    return [str(data_file.path) for metadata in fragment_metadata for data_file in metadata.files]


def cell_files(cell: ManifestCell) -> tuple[str, ...]:
    """Return the names of the files in one version.

    The version file comes last, because it makes the other files reachable.
    """
    data_names = [f"{cell.location}/data/{data_path}" for data_path in _fragment_paths(cell)]
    return (*data_names, _cell_file(cell))


def _cell_file(cell: ManifestCell) -> str:
    return _version_file(cell.location, cell.version)


def _version_file(location: str, version: int) -> str:
    return f"{location}/_versions/{_MAX_VERSION - version:020}.manifest"


def _write_fragments(
    store: Store, cell: ManifestCell, rows: "pa.Table", mode: Literal["append", "overwrite"]
) -> list[Any]:
    from lance.fragment import write_fragments

    fragments: list[Any] = write_fragments(
        rows,
        cell.dataset,
        mode=mode,
        data_storage_version=_LANCE_FILE_VERSION,
        enable_stable_row_ids=True,
        storage_options=store.options,
    )
    return fragments


def _commit_strictly(store: Store, cell: ManifestCell, transaction: "Transaction") -> Any:
    # Only Overwrite without retries requires its base to be the newest version: Lance rebases every other operation
    # onto a newer version. With retries, Overwrite would replace what another writer has just published.
    return load_lance().LanceDataset.commit(cell.dataset, transaction, max_retries=0, storage_options=store.options)


def _transaction_uuid() -> str:
    digits = clock_and_ids.new_nonce()
    return "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))
