"""A small dataset of one fragment that is read whole and swapped whole, by strict compare-and-swap.

Owns the only operation in Lance that is strict about its base version, the proof that a swap is
still the newest, and the format stamp. It does not know what the rows mean.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import lance
import pyarrow as pa
from lance import LanceOperation
from lance.commit import CommitConflictError
from lance.dataset import Transaction
from lance.fragment import write_fragments

from omnigraph import ids
from omnigraph.errors import InternalError

from .layout import STAMP, STAMP_KEY
from .store import Store

_FORMAT: Literal["2.2"] = "2.2"


class LostSwap(Exception):  # noqa: N818 - caught by the publish loop, never by a caller
    """Somebody else swapped first: this swap did not happen."""


class UnsureSwap(Exception):  # noqa: N818 - caught by the publish loop, never by a caller
    """The store did not say whether the swap happened; the newest state must be asked."""


@dataclass(frozen=True, slots=True)
class Cell:
    """A cell at one version."""

    location: str
    dataset: Any

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
    _sync(store, location, dataset)
    return Cell(location, dataset)


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


def open_cell(store: Store, location: str, version: int | None = None) -> Cell:
    """A cell at its newest version, or at a given one."""
    return Cell(location, store.open(location, version))


def swap(store: Store, cell: Cell, rows: pa.Table) -> Cell:
    """Replace all rows, if and only if `cell` is the newest version.

    Raises `LostSwap` when it is not, `UnsureSwap` when the store gave no answer.
    """
    fragments = store.effects.run("state", cell.location, lambda: _write(store, cell, rows))
    store.sync(*(f"{cell.location}/data/{one.path}" for f in fragments for one in f.files))
    # The base's own schema: a plain Arrow schema would drop the stamp.
    operation = LanceOperation.Overwrite(cell.dataset.lance_schema, fragments)
    transaction = Transaction(cell.version, operation, uuid=_uuid())
    try:
        dataset = store.effects.run(
            "publish", cell.location, lambda: _commit(store, cell, transaction)
        )
        _sync(store, cell.location, dataset)
    except CommitConflictError as error:
        raise LostSwap from error
    except BaseException as error:
        # Also when the caller was interrupted: whether the swap happened must be asked first.
        raise UnsureSwap(str(error)) from error
    swapped = Cell(cell.location, dataset)
    if swapped.stamp != cell.stamp:
        raise InternalError("the format stamp was lost by a publish")
    return swapped


def newest(cell: Cell) -> int:
    """The newest version number there is now: one listing."""
    return int(cell.dataset.latest_version)


def files_of(cell: Cell) -> tuple[str, ...]:
    """The files that one version consists of; the one that makes it readable comes last."""
    fragments = [one.metadata for one in cell.dataset.get_fragments()]
    data = [f"{cell.location}/data/{one.path}" for f in fragments for one in f.files]
    return (*data, f"{cell.location}/_versions/{(1 << 64) - 1 - cell.version:020}.manifest")


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


def _sync(store: Store, location: str, dataset: Any) -> None:
    store.sync(f"{location}/_versions/{(1 << 64) - 1 - dataset.version}.manifest")
