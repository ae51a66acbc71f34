"""Read byte ranges from a stored blob in one table version.

Only the requested range is held in memory. A missing or truncated blob file raises `BlobIntegrityError`, and a store
failure raises `StorageError`. This module never writes.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from omnigraph.errors import BlobIntegrityError, StorageError

from .failures import as_storage_errors, to_storage_error
from .large_blobs import blob_file_name
from .store import Store
from .table import Table, data_files

# How a blob is stored: packed with other blobs, or in its own file; 0 means inside the data file.
_SEPARATE_FILE_KINDS = (1, 2)


@dataclass(frozen=True, slots=True)
class StoredBlob:
    """A blob in one row. The upper half of `address` is the id of the fragment that contains the row."""

    store: Store
    table: Table
    column: str
    row_id: int
    address: int
    size: int
    blob_file: Any

    def read_range(self, start: int, stop: int) -> bytes:
        """Return the bytes from `start` to `stop`. The range must lie within the blob."""
        try:
            with as_storage_errors("none"):
                content: bytes = self.blob_file.read_range(start, stop - start)
        except (StorageError, ValueError, RuntimeError) as error:
            self._raise_if_damaged(error)
            raise to_storage_error(error, effect="none") from error
        if len(content) != stop - start:
            raise BlobIntegrityError(
                f"a blob in column '{self.column}' ends after {start + len(content)} of {self.size} bytes"
            )
        return content

    @property
    def identity(self) -> str:
        """An identifier for the stored bytes, which never change: data file, row offset in the file, and column."""
        return f"{self._data_files()[0]}:{self.address & 0xFFFFFFFF}:{self.column}"

    def file_names(self) -> list[str]:
        """Return the root-relative names of the data and blob files in the row's fragment."""
        fragment_files = self._data_files()
        blob_files = [
            listed_object.name
            for file_name in fragment_files
            for listed_object in self.store.objects.list(file_name.removesuffix(".lance"))
        ]
        return [*fragment_files, *blob_files]

    def _data_files(self) -> tuple[str, ...]:
        return data_files(self.table, [self.table.dataset.get_fragment(self.address >> 32).metadata])

    def _raise_if_damaged(self, error: Exception) -> None:
        """Raise `BlobIntegrityError` if the blob's file is definitely missing or too short."""
        descriptor = self._read_descriptor()
        if descriptor is None or descriptor["kind"] not in _SEPARATE_FILE_KINDS:
            return
        try:
            sizes = self._list_blob_sizes(blob_file_name(descriptor["blob_id"]))
        except StorageError:
            return  # the store does not respond, so the state of the file is unknown
        needed_bytes = descriptor["position"] + descriptor["size"]
        if not any(file_size >= needed_bytes for file_size in sizes):
            state = f"has {max(sizes)} of {needed_bytes} bytes" if sizes else "is missing"
            raise BlobIntegrityError(f"a blob in column '{self.column}' is damaged: its file {state}") from error

    def _read_descriptor(self) -> Mapping[str, Any] | None:
        try:
            with as_storage_errors("none"):
                rows = self.table.dataset._take_rows([self.row_id], columns=[self.column])
        except (StorageError, ValueError, RuntimeError):
            return None
        descriptor: Mapping[str, Any] | None = rows[self.column][0].as_py()
        return descriptor

    def _list_blob_sizes(self, file_name: str) -> list[int]:
        return [
            listed_object.size
            for data_file in self._data_files()
            for listed_object in self.store.objects.list(data_file.removesuffix(".lance"))
            if listed_object.name.endswith(f"/{file_name}")
        ]


def open_stored_blob(store: Store, table: Table, column: str, row_id: int, address: int) -> StoredBlob | None:
    """Open the blob in a row, or return None if the value is NULL."""
    with as_storage_errors("none"):
        (blob_file,) = table.dataset.take_blobs(column, ids=[row_id])
    if blob_file is None:
        return None
    return StoredBlob(store, table, column, row_id, address, blob_file.size(), blob_file)
