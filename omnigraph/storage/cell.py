"""The manifest cell: a compare-and-swap register that holds the manifest of one branch.

A cell is a small Lance dataset whose only fragment holds the whole manifest. It is read as a whole
and replaced as a whole, by the one operation of Lance that is strict about its base version. Owns
that swap, the check that a swap is still the newest and based on what it replaced, and the format
stamp. Does not know what the rows mean. A version number alone proves nothing: a root can be
deleted and created again with the same numbers, and cleanup frees the numbers of old versions.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import lance
import pyarrow as pa
from lance import LanceOperation
from lance.commit import CommitConflictError
from lance.dataset import Transaction
from lance.fragment import write_fragments

from omnigraph import ids
from omnigraph.errors import InternalError, StorageError

from .failures import AbsentError, DamagedError, storage_failure
from .layout import STAMP, STAMP_KEY
from .objects import Found
from .store import Store

_FORMAT: Literal["2.2"] = "2.2"
_LAST = (1 << 64) - 1  # Lance names version files by this minus the version: newest sorts first
_SHOWN = 16  # versions looked at per check, newest first


class LostSwap(Exception):  # noqa: N818 - caught by the publish loop, never by a caller
    """A newer version exists. This swap did not happen, unless the newer one is based on it."""


class UnsureSwap(Exception):  # noqa: N818 - caught by the publish loop, never by a caller
    """The store did not say whether the swap happened; read the newest version to find out."""


class UnsyncedError(StorageError):
    """The swap was applied, but it may not survive a power loss.

    Syncing again proves nothing: after a failed fsync a disk may report success for data that it
    dropped.
    """

    code = "StorageError"
    effect = "unknown"
    hint = "check the disk, then read the graph to see whether the write was applied"


@dataclass(slots=True, eq=False)
class Cell:
    """A cell at one version.

    `etag` tells the object of this version apart from another object that later gets its name. It
    is learned at the first check: taken from the listing when it is "", or only after the object
    itself was read and compared when it is None. `base` is the cell that a swap replaced, until a
    check has seen both versions next to each other.
    """

    store: Store
    location: str
    dataset: Any
    base: "Cell | None" = None
    mark: str | None = ""

    @property
    def version(self) -> int:
        """The version number; a strict swap uses it as its base."""
        return int(self.dataset.version)

    @property
    def stamp(self) -> str | None:
        """The format stamp as stored."""
        value = (self.dataset.schema.metadata or {}).get(STAMP_KEY.encode())
        return None if value is None else value.decode(errors="replace")

    def rows(self, columns: Sequence[str]) -> list[dict[str, Any]]:
        """Return all rows, in the order they were written."""
        found: list[dict[str, Any]] = self.dataset.to_table(columns=list(columns)).to_pylist()
        return found


def create_cell(store: Store, location: str, rows: pa.Table) -> Cell:
    """Create a cell with its first rows and the format stamp, in one commit.

    If several processes create one cell, exactly one wins. The others get a Lance exception that
    does not say why: only reading the cell tells whether it exists now.
    """
    stamped = rows.replace_schema_metadata({STAMP_KEY: str(STAMP)})
    dataset = store.effects.run("create", location, lambda: _create(store, location, stamped))
    made = Cell(store, location, dataset)
    secure(made)
    return made


def _create(store: Store, location: str, rows: pa.Table) -> Any:
    fragments: list[Any] = write_fragments(
        rows,
        store.root.at(location),
        mode="create",
        data_storage_version=_FORMAT,
        enable_stable_row_ids=True,
        storage_options=store.options,
    )
    # Sync the data before the version that names it exists: after a power loss a version file
    # must never name data that was not written.
    store.sync(*(f"{location}/data/{one.path}" for f in fragments for one in f.files))
    # Not `write_dataset` in mode `create`: it checks first and then overwrites, so it would destroy
    # the cell of another creator that got in between. A commit on version 0 fails instead.
    return lance.LanceDataset.commit(
        store.root.at(location),
        LanceOperation.Overwrite(rows.schema, fragments),
        read_version=0,
        max_retries=0,
        enable_v2_manifest_paths=True,
        enable_stable_row_ids=True,
        storage_options=store.options,
    )


def open_cell(
    store: Store, location: str, version: int | None = None, *, reused: bool = False
) -> Cell:
    """Open a cell at its newest version, or at a given one.

    `reused` means that the location may be deleted and created again under the same name (the main
    branch). Then the first check reads the version file once more instead of trusting a listing:
    the file could have been replaced between opening and listing. Elsewhere listings are enough.
    """
    dataset = store.open(location, version)
    if version is None and _has_successor(store, location, dataset):
        dataset = _reopen(store, location, dataset)
    return Cell(store, location, dataset, mark=None if reused else "")


def _has_successor(store: Store, location: str, dataset: Any) -> bool:
    """Return whether a file has the name of the next version (local disk only, no request)."""
    number = int(dataset.version)
    return number > 0 and store.objects.glance(_name_of(location, number + 1)) is not None


def _reopen(store: Store, location: str, dataset: Any) -> Any:
    """Open the newest version again, because another writer may just have published it.

    Lance takes the version number from inside the file, not from its name. A damaged copy that
    holds an older version would silently roll the branch back, so a file whose content is not newer
    than the version below it is reported as damage.
    """
    newer = store.open(location)
    if newer.version > dataset.version:
        return newer
    name = _name_of(location, int(dataset.version) + 1)
    raise DamagedError(f"{name} is damaged: it holds version {dataset.version}")


def swap(store: Store, cell: Cell, rows: pa.Table) -> Cell:
    """Replace all rows if and only if `cell` is still the newest version.

    Success does not yet mean that the swap may be acknowledged: if cleanup removed the files above
    an old `cell`, the number is free again and Lance accepts a swap far below the newest version.
    Call `newest_version` on the result first.

    Raises `SwapConflict` if `cell` is not the newest version, `SwapOutcomeUnknown` if the store did
    not answer, `UnsyncedError` if the swap was applied and the disk did not confirm its durability.
    """
    # 1. Write and sync the data file. No version names it yet, so a crash here changes nothing.
    #    In the other order, a power loss could leave a visible version without its data.
    fragments = store.effects.run("state", cell.location, lambda: _write(store, cell, rows))
    store.sync(*(f"{cell.location}/data/{one.path}" for f in fragments for one in f.files))
    # 2. Keep the Lance schema of the base: a plain Arrow schema would drop the format stamp and
    #    number the fields anew.
    operation = LanceOperation.Overwrite(cell.dataset.lance_schema, fragments)
    # The UUID lets Lance recognize its own commit if the client repeats a request whose answer was
    # lost: the version file that is in the way is then ours.
    transaction = Transaction(cell.version, operation, uuid=_uuid())
    # 3. Check that the root was not replaced. Lance compares version numbers only, and a root that
    #    was created again has the same numbers. On a disk this is free, so it is done before the
    #    swap; on an object store only `newest_version` checks it, after the swap, because a check
    #    here would cost a request and could not replace the later one.
    if store.root.local and not _in_line(cell, _listed(cell)):
        raise LostSwap
    # 4. The compare-and-swap: creating the version file, which fails if the name is taken.
    try:
        dataset = store.effects.run(
            "publish", cell.location, lambda: _commit(store, cell, transaction)
        )
    except CommitConflictError as error:
        raise LostSwap from error
    except BaseException as error:
        # Any other exception, an interrupt included, may come after the store applied the swap.
        # Reported as a plain failure, it would make the caller retry and write twice.
        raise UnsureSwap(str(error)) from error
    swapped = Cell(store, cell.location, dataset, base=cell)
    if swapped.stamp != cell.stamp:
        raise InternalError("a publish lost the format stamp")
    # 5. Make the new version durable before any caller can acknowledge it.
    _secure_swap(swapped)
    return swapped


def secure(cell: Cell) -> None:
    """Make a version survive a power loss, whoever wrote it, before it is acknowledged or built on.

    Another process may have crashed between its swap and its sync. Building on such a version would
    acknowledge a write whose base disappears with the power. Raises `AbsentError` if the version
    was replaced and cleaned up meanwhile: then a newer version counts.
    """
    try:
        cell.store.sync(*files_of(cell))
    except FileNotFoundError as error:
        raise AbsentError(f"version {cell.version} of {cell.location} no longer exists") from error
    except OSError as error:
        raise _unsynced(error) from error


def _secure_swap(cell: Cell) -> None:
    try:
        cell.store.sync(_version_name(cell))
    except OSError as error:
        if not isinstance(error, FileNotFoundError):
            raise _unsynced(error) from error
        # Already cleaned up, so a newer version exists. It may be based on this swap or not: the
        # publish loop finds out by reading it, as after any conflict.
        raise LostSwap from error
    except BaseException as error:
        raise UnsureSwap(str(error)) from error


def _unsynced(error: OSError) -> UnsyncedError:
    return UnsyncedError(
        "the write was applied, but the disk did not confirm that it survives a power loss",
        kind=storage_failure(error).kind,
        reason=error.strerror,
    )


def newest(cell: Cell) -> int:
    """Return the newest version number, by one listing; 0 if the cell may be in another root.

    A fresh swap is judged by its base, because a version under its own number proves nothing: it
    may be in a root that was created again. A missing base is not proof either: the root may have
    been replaced, or cleanup removed old versions and a late swap took the number of one of them.
    """
    listed = _listed(cell)
    if not _in_line(cell.base or cell, listed):
        return 0
    # Base and swap were seen next to each other: the swap is confirmed. From here on it is
    # recognized by its own object, because cleanup may remove the base at any time.
    if cell.base is not None and cell.base.version in listed and cell.version in listed:
        cell.base, cell.mark = None, listed[cell.version].mark
    return max(listed, default=0)


def stillness(cell: Cell) -> object | None:
    """Return a token that changes when any version comes or goes; None if that takes a request."""
    return cell.store.objects.stillness(f"{cell.location}/_versions")


def settle(cell: Cell) -> None:
    """Accept a swap whose base is gone, after the caller proved that all files it names exist.

    The etag is set to None, so the next check reads the object before it trusts the listing.
    """
    cell.base, cell.mark = None, None


def withdraw(cell: Cell) -> None:
    """Remove a swap that landed in another root and that was never acknowledged.

    Only if the object is really this swap: its name may belong to a version of the other root.
    """
    name = _version_name(cell)
    if cell.base is not None and _holds(cell, name):
        cell.store.objects.remove(name)


def _listed(cell: Cell) -> Mapping[int, Found]:
    """Return the newest versions by number, the newest first in the listing."""
    above = _above(cell.base or cell)
    if above:
        return above
    found = cell.store.objects.first(f"{cell.location}/_versions", _SHOWN)
    names = {one.name.rpartition("/")[2].removesuffix(".manifest"): one for one in found}
    return {_LAST - int(name): one for name, one in names.items() if name.isdecimal()}


def _above(cell: Cell) -> Mapping[int, Found]:
    """Return a version and all its successors by looking at single files (local disk only).

    Avoids listing a directory with every version there is. Cleanup removes versions from the oldest
    on, so while this version exists none above it was removed, and the first missing successor ends
    the sequence. For the same reason this version is looked at last: looked at first, it could be
    removed together with its successors in between, and a gap would be taken for the end. Returns
    nothing if the version is gone, or if there are more successors than are looked at.
    """
    look, found = cell.store.objects.glance, {}
    for version in range(cell.version + 1, cell.version + _SHOWN):
        one = look(_name_of(cell.location, version))
        if one is None:
            break
        found[version] = one
    else:
        return {}
    own = look(_version_name(cell))
    known = own is not None and (own.mark == cell.mark or _holds(cell, own.name))
    return found | {cell.version: own} if own is not None and known else {}


def _in_line(cell: Cell, listed: Mapping[int, Found]) -> bool:
    """Return whether the listed versions can belong to the history that a cell was read from.

    Cleanup removes versions from the oldest on. So if the cell's own version is missing, none below
    it may be left: one that is belongs to another root, or to a late swap that took a freed number.
    If it is present, its object must be the same: by etag, or else by content.
    """
    found = listed.get(cell.version)
    if found is None:
        return not any(version < cell.version for version in listed)
    if cell.mark not in ("", found.mark) and not _holds(cell, found.name):
        return False
    cell.mark = found.mark or None
    return True


def _holds(cell: Cell, name: str) -> bool:
    """Return whether an object is the version a cell was read from: it names the same data files.

    Data files have random names, so no other version names them.
    """
    body = cell.store.objects.read(name)
    return body is not None and all(path.encode() in body for path in _fragment_files(cell))


def _fragment_files(cell: Cell) -> list[str]:
    fragments = [fragment.metadata for fragment in cell.dataset.get_fragments()]
    return [str(one.path) for metadata in fragments for one in metadata.files]


def files_of(cell: Cell) -> tuple[str, ...]:
    """Return the files of one version, the version file last: it makes the others reachable."""
    data = [f"{cell.location}/data/{path}" for path in _fragment_files(cell)]
    return (*data, _version_name(cell))


def _version_name(cell: Cell) -> str:
    return _name_of(cell.location, cell.version)


def _name_of(location: str, version: int) -> str:
    return f"{location}/_versions/{_LAST - version:020}.manifest"


def _write(store: Store, cell: Cell, rows: pa.Table) -> list[Any]:
    fragments: list[Any] = write_fragments(
        rows,
        cell.dataset,
        mode="append",
        data_storage_version=_FORMAT,
        enable_stable_row_ids=True,
        storage_options=store.options,
    )
    return fragments


def _commit(store: Store, cell: Cell, transaction: Transaction) -> Any:
    # Only Overwrite without retries is strict: Lance rebases every other operation on a newer
    # version, and with retries it would overwrite what another writer just published.
    return lance.LanceDataset.commit(
        cell.dataset, transaction, max_retries=0, storage_options=store.options
    )


def _uuid() -> str:
    digits = ids.nonce()
    return "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))
