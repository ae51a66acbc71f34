"""Write data files and compute their checksums: directly on a local disk, or via a temporary directory for S3.

Lance does not report which bytes it wrote to an object store, and reading a file back takes a request. Files for an
object store are therefore written to a local directory first and then uploaded. The upload takes no more requests than
a write by Lance. The checksums stay valid if the root is moved to a local disk.
"""

import json
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import field
from pathlib import Path
from typing import Any, Literal

import lance
import numpy as np
import pyarrow as pa
from lance import FragmentMetadata, LanceOperation
from lance.fragment import write_fragments

from omnigraph.records.frozen import record
from omnigraph.values import clock_and_ids

from .checksums import CHECKSUM_BLOCK_BYTES, FileChecksum, checksum_manifest
from .deletion_list import write_offsets
from .deletions import cached_offsets, deletion_file_name, remember_offsets
from .failures import DamagedError, failures_with_effect
from .object_backend import TRANSFER_BLOCK_BYTES as PART
from .store import Store
from .table_fields import lance_columns
from .wide_rows import split_by_size

LANCE_FILE_VERSION: Literal["2.2"] = "2.2"


@record
class WrittenFragments:
    """Fragments that no version references yet, with the known checksums of their files."""

    fragments: list[Any]
    checksums: dict[str, FileChecksum] = field(default_factory=dict)


def write_data(
    store: Store, location: str, dataset: Any, rows: pa.Table, rows_per_file: int, bytes_per_file: int | None = None
) -> WrittenFragments:
    """Write rows to a table's data files, limiting the rows and the uncompressed bytes in each file."""
    pieces = [rows] if bytes_per_file is None else list(split_by_size(rows, bytes_per_file))
    if store.root.is_local:
        return WrittenFragments(_append_fragments(dataset, pieces, rows_per_file, store.options))
    with tempfile.TemporaryDirectory(prefix="omnigraph-") as directory:
        fragments = _append_fragments(_create_local_mirror(dataset, directory), pieces, rows_per_file, None)
        with failures_with_effect("none"):
            return WrittenFragments(fragments, dict(_upload_files(store, location, Path(directory))))


def _append_fragments(dataset: Any, pieces: Iterable[pa.Table], rows_per_file: int, options: Any) -> list[Any]:
    return [
        fragment
        for rows in pieces
        for fragment in write_fragments(
            rows,
            dataset,
            mode="append",
            max_rows_per_file=rows_per_file,
            data_storage_version=LANCE_FILE_VERSION,
            enable_stable_row_ids=True,
            storage_options=options,
            external_blob_mode="ingest",  # pending blobs are copied from their files
        )
    ]


def _create_local_mirror(dataset: Any, directory: str) -> Any:
    """Create an empty local table with the same fields and field ids as the dataset.

    Lance renumbers the fields when it creates a table. If columns of the dataset were dropped or reordered, rows
    written to the local table would therefore get the field ids of other columns. A second commit restores the field
    ids.
    """
    set_schema = LanceOperation.Overwrite(dataset.lance_schema, [])
    options: dict[str, Any] = {"enable_v2_manifest_paths": True, "enable_stable_row_ids": True}
    mirror = lance.LanceDataset.commit(directory, set_schema, **options)
    if lance_columns(mirror.lance_schema) != lance_columns(dataset.lance_schema):
        mirror = lance.LanceDataset.commit(mirror, set_schema, read_version=mirror.version, **options)
    return mirror


def _upload_files(store: Store, location: str, directory: Path) -> Iterator[tuple[str, FileChecksum]]:
    """Upload all data files. Blob files are uploaded before the data file that references them."""
    local_files = (local_path for local_path in (directory / "data").rglob("*") if local_path.is_file())
    for local_path in sorted(local_files, key=lambda local_path: (-len(local_path.parts), local_path)):
        object_name = f"{location}/{local_path.relative_to(directory).as_posix()}"
        if local_path.stat().st_size <= PART:
            file_bytes = local_path.read_bytes()
            store.objects.backend.write_data_file(object_name, file_bytes)
            yield object_name, FileChecksum.of_bytes(file_bytes)
        else:
            store.objects.backend.write_blocks(object_name, _read_blocks(local_path))
            yield object_name, FileChecksum.of_blocks(_read_blocks(local_path))


def _read_blocks(local_path: Path) -> Iterator[bytes]:
    with local_path.open("rb") as file:
        yield from iter(lambda: file.read(CHECKSUM_BLOCK_BYTES), b"")


def write_deletions(
    store: Store, location: str, version: int, fragment: Any, offsets: list[int]
) -> tuple[Any | None, dict[str, FileChecksum]]:
    """Mark rows in a fragment as deleted.

    Returns two values: the fragment (None if no rows remain), and the checksums known without reading a file back.
    """
    if store.root.is_local:
        return fragment.delete_rows(offsets), {}
    previous_offsets = cached_offsets(store, location, fragment)
    if previous_offsets is None:
        raise DamagedError(f"a deletion file for {location} is missing or damaged")
    deleted_offsets = np.union1d(previous_offsets, np.asarray(offsets, np.int64))
    if len(deleted_offsets) == fragment.physical_rows:
        return None, {}
    fragment_json = fragment.metadata.to_json()
    fragment_json["deletion_file"] = {
        "read_version": version,
        "id": int(clock_and_ids.new_nonce()[:16], 16),
        "file_type": "array",
        "num_deleted_rows": len(deleted_offsets),
        "base_id": None,
    }
    marked_fragment = FragmentMetadata.from_json(json.dumps(fragment_json))
    file_name = deletion_file_name(location, marked_fragment)
    file_bytes = write_offsets(deleted_offsets)
    with failures_with_effect("none"):
        store.objects.backend.write_data_file(file_name, file_bytes)
    remember_offsets(store, file_name, deleted_offsets)
    return marked_fragment, {file_name: FileChecksum.of_bytes(file_bytes)}


def manifest_checksum(dataset: Any) -> FileChecksum:
    """Compute the checksum of the manifest that a dataset holds in memory."""
    return checksum_manifest(dataset._ds.serialized_manifest())
