"""A small dataset of one fragment that is read whole and swapped whole, by strict compare-and-swap.

Owns the only operation in Lance that is strict about its base version, the proof that a swap is
still the newest and stands on its base, and the format stamp. It does not know what the rows mean.
A version number alone proves nothing: a root can be removed, and made again with the same numbers.
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
_LAST = (1 << 64) - 1
_SHOWN = 16  # versions that a look is shown, the newest first


class LostSwap(Exception):  # noqa: N818 - caught by the publish loop, never by a caller
    """A newer version is there: this swap did not happen, unless that one stands on it."""


class UnsureSwap(Exception):  # noqa: N818 - caught by the publish loop, never by a caller
    """The store did not say whether the swap happened; the newest state must be asked."""


class UnsyncedError(StorageError):
    """A version is there, and it is not known whether it would survive a power loss.

    Syncing again proves nothing: after a failure a disk may forget what it could not write.
    """

    code = "StorageError"
    effect = "unknown"
    hint = "look at the disk; then read, to see whether the write is there"


@dataclass(slots=True, eq=False)
class Cell:
    """A cell at one version.

    `mark` tells the object of this version from any other that may get its name. It is learned at
    the first look: as it is listed when it is empty, after reading the object when it is None.
    `base` is what a swap replaced, until a look has seen it in its place.
    """

    store: Store
    location: str
    dataset: Any
    base: "Cell | None" = None
    mark: str | None = ""

    @property
    def version(self) -> int:
        """The version number that a strict swap is based on."""
        return int(self.dataset.version)

    @property
    def stamp(self) -> str | None:
        """The format stamp, as it is written."""
        value = (self.dataset.schema.metadata or {}).get(STAMP_KEY.encode())
        return None if value is None else value.decode(errors="replace")

    def rows(self, columns: Sequence[str]) -> list[dict[str, Any]]:
        """All rows, in the order they were written."""
        found: list[dict[str, Any]] = self.dataset.to_table(columns=list(columns)).to_pylist()
        return found


def create_cell(store: Store, location: str, rows: pa.Table) -> Cell:
    """A new cell with its first rows and the format stamp, in one commit.

    Of several creators of one cell one wins; the others get an exception of Lance, of which only a
    look at the cell can tell what it means.
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
    store.sync(*(f"{location}/data/{one.path}" for f in fragments for one in f.files))
    # Not `write_dataset` in mode `create`: it overwrites what a rival made after its first look.
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
    """A cell at its newest version, or at a given one.

    Of a place whose name may be used again after its removal (`reused`) the first look reads the
    version once more; then, and at all other places, listings are enough.
    """
    dataset = store.open(location, version)
    if version is None and _has_successor(store, location, dataset):
        dataset = _reopen(store, location, dataset)
    return Cell(store, location, dataset, mark=None if reused else "")


def _has_successor(store: Store, location: str, dataset: Any) -> bool:
    """Whether a file has the name of the next version, told without a request."""
    number = int(dataset.version)
    return number > 0 and store.objects.glance(_name_of(location, number + 1)) is not None


def _reopen(store: Store, location: str, dataset: Any) -> Any:
    """The newest version, which another writer may just have published.

    Lance takes the version number from inside of the file. A file that holds an older version than
    its name says would silently take the branch back to that version.
    """
    newer = store.open(location)
    if newer.version > dataset.version:
        return newer
    name = _name_of(location, int(dataset.version) + 1)
    raise DamagedError(f"{name} is damaged: it holds version {dataset.version}")


def swap(store: Store, cell: Cell, rows: pa.Table) -> Cell:
    """Replace all rows, if and only if `cell` is the newest version.

    Raises `LostSwap` when it is not, `UnsureSwap` when the store gave no answer, `UnsyncedError`
    when it happened and the disk did not say that it would survive a power loss.
    """
    fragments = store.effects.run("state", cell.location, lambda: _write(store, cell, rows))
    store.sync(*(f"{cell.location}/data/{one.path}" for f in fragments for one in f.files))
    # The base's own schema: a plain Arrow schema would drop the stamp.
    operation = LanceOperation.Overwrite(cell.dataset.lance_schema, fragments)
    transaction = Transaction(cell.version, operation, uuid=_uuid())
    if store.root.local and not _in_line(cell, _listed(cell)):
        raise LostSwap  # on a disk the look is free, so it comes first, too
    try:
        dataset = store.effects.run(
            "publish", cell.location, lambda: _commit(store, cell, transaction)
        )
    except CommitConflictError as error:
        raise LostSwap from error
    except BaseException as error:
        # Also when the caller was interrupted: whether the swap happened must be asked first.
        raise UnsureSwap(str(error)) from error
    swapped = Cell(store, cell.location, dataset, base=cell)
    if swapped.stamp != cell.stamp:
        raise InternalError("the format stamp was lost by a publish")
    _secure_swap(swapped)
    return swapped


def secure(cell: Cell) -> None:
    """Let a version survive a power loss, whoever wrote it, before anybody is told of it.

    One that was replaced and cleaned up meanwhile is an `AbsentError`: what came after it counts.
    """
    try:
        cell.store.sync(*files_of(cell))
    except FileNotFoundError as error:
        raise AbsentError(f"version {cell.version} of {cell.location} is gone") from error
    except OSError as error:
        raise _unsynced(error) from error


def _secure_swap(cell: Cell) -> None:
    try:
        cell.store.sync(_version_name(cell))
    except OSError as error:
        if not isinstance(error, FileNotFoundError):
            raise _unsynced(error) from error
        raise LostSwap from error  # cleaned up already, so a newer one is there: with it or without
    except BaseException as error:
        raise UnsureSwap(str(error)) from error


def _unsynced(error: OSError) -> UnsyncedError:
    return UnsyncedError(
        "the write is there, but the disk did not say that it would survive a power loss",
        kind=storage_failure(error).kind,
        reason=error.strerror,
    )


def newest(cell: Cell) -> int:
    """The newest version number there is now: one listing. 0 when these may not be its versions.

    A swap counts by what it stands on. That its base is gone proves nothing by itself: the root may
    have been made again, or old versions were removed and a late swap took the number of one.
    """
    listed = _listed(cell)
    if not _in_line(cell.base or cell, listed):
        return 0
    if cell.base is not None and cell.base.version in listed and cell.version in listed:
        cell.base, cell.mark = None, listed[cell.version].mark
    return max(listed, default=0)


def stillness(cell: Cell) -> object | None:
    """What changes when any version comes or goes, told without a request; None where unknown."""
    return cell.store.objects.stillness(f"{cell.location}/_versions")


def settle(cell: Cell) -> None:
    """Take a swap for what it is: what it names was proved to be there, although its base is not.

    From here it is told by its own object, which the next look reads.
    """
    cell.base, cell.mark = None, None


def withdraw(cell: Cell) -> None:
    """Take a swap back that does not stand on its base, and of which nobody was told."""
    name = _version_name(cell)
    if cell.base is not None and _holds(cell, name):
        cell.store.objects.remove(name)


def _listed(cell: Cell) -> Mapping[int, Found]:
    """The newest versions there are now, by number: their names count downwards."""
    above = _above(cell.base or cell)
    if above:
        return above
    found = cell.store.objects.first(f"{cell.location}/_versions", _SHOWN)
    names = {one.name.rpartition("/")[2].removesuffix(".manifest"): one for one in found}
    return {_LAST - int(name): one for name, one in names.items() if name.isdecimal()}


def _above(cell: Cell) -> Mapping[int, Found]:
    """A version and all that came after it, where looks are free: a disk lists all there are.

    While a version is there, none above it was removed: the first that is missing ends the line. So
    the version itself is looked at last. Nothing when it is gone, or when there is more to see.
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
    """Whether the versions that are listed can be those that a cell belongs to.

    Old versions are removed from the oldest on: one that is gone has none below it.
    """
    found = listed.get(cell.version)
    if found is None:
        return not any(version < cell.version for version in listed)
    if cell.mark not in ("", found.mark) and not _holds(cell, found.name):
        return False
    cell.mark = found.mark or None
    return True


def _holds(cell: Cell, name: str) -> bool:
    """Whether an object is the version that a cell was read from: it names the same fragment."""
    body = cell.store.objects.read(name)
    return body is not None and all(path.encode() in body for path in _fragment_files(cell))


def _fragment_files(cell: Cell) -> list[str]:
    fragments = [one.metadata for one in cell.dataset.get_fragments()]
    return [str(one.path) for fragment in fragments for one in fragment.files]


def files_of(cell: Cell) -> tuple[str, ...]:
    """The files that one version consists of; the one that makes it readable comes last."""
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
    # Only Overwrite is strict: every other operation is quietly rebased on a newer version.
    return lance.LanceDataset.commit(
        cell.dataset, transaction, max_retries=0, storage_options=store.options
    )


def _uuid() -> str:
    digits = ids.nonce()
    return "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))
