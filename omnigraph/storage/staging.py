"""Write data files so that their checksums are known: on a disk in place, for S3 through a spool.

Lance does not report what it wrote to an object store, and reading a file back costs a request. So
files for an object store are first written to a local directory and uploaded from there: as many
requests as Lance would need, and a checksum that stays valid when the root moves to a disk.
"""

import json
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import lance
import numpy as np
import pyarrow as pa
from lance import FragmentMetadata, LanceOperation
from lance.fragment import write_fragments

from omnigraph import ids

from .checksums import BLOCK, FileChecksum, checksum_manifest
from .deletion_list import write_offsets
from .deletions import deletion_file, known_offsets, remember_offsets
from .failures import DamagedError
from .objects import BLOCK as PART
from .store import Store

FORMAT: Literal["2.2"] = "2.2"


@dataclass(frozen=True, slots=True)
class WrittenFragments:
    """Fragments that no version names yet, and those checksums of their files that are known."""

    fragments: list[Any]
    checksums: dict[str, FileChecksum] = field(default_factory=dict)


def write_data(
    store: Store, location: str, dataset: Any, rows: pa.Table, rows_per_file: int
) -> WrittenFragments:
    """Write rows as data files of a table, with at most `rows_per_file` rows each."""
    if store.root.local:
        return WrittenFragments(_write(dataset, rows, rows_per_file, store.options))
    with tempfile.TemporaryDirectory(prefix="omnigraph-") as directory:
        fragments = _write(_mirror(dataset, directory), rows, rows_per_file, None)
        return WrittenFragments(fragments, dict(_send(store, location, Path(directory))))


def _write(dataset: Any, rows: pa.Table, rows_per_file: int, options: Any) -> list[Any]:
    fragments: list[Any] = write_fragments(
        rows,
        dataset,
        mode="append",
        max_rows_per_file=rows_per_file,
        data_storage_version=FORMAT,
        enable_stable_row_ids=True,
        storage_options=options,
    )
    return fragments


def _mirror(dataset: Any, directory: str) -> Any:
    """Create an empty local table with the same fields and field ids."""
    return lance.LanceDataset.commit(
        directory,
        LanceOperation.Overwrite(dataset.lance_schema, []),
        enable_v2_manifest_paths=True,
        enable_stable_row_ids=True,
    )


def _send(store: Store, location: str, directory: Path) -> Iterator[tuple[str, FileChecksum]]:
    """Upload all data files; blob files come before the data file that names them."""
    files = (path for path in (directory / "data").rglob("*") if path.is_file())
    for path in sorted(files, key=lambda path: (-len(path.parts), path)):
        name = f"{location}/{path.relative_to(directory).as_posix()}"
        if path.stat().st_size <= PART:
            body = path.read_bytes()
            store.objects.backend.send(name, body)
            yield name, FileChecksum.of_bytes(body)
        else:
            store.objects.backend.fill(name, _blocks(path))
            yield name, FileChecksum.of_blocks(_blocks(path))


def _blocks(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        yield from iter(lambda: file.read(BLOCK), b"")


def delete_rows(
    store: Store, location: str, version: int, fragment: Any, offsets: list[int]
) -> tuple[Any | None, dict[str, FileChecksum]]:
    """Delete rows of a fragment; return it (None if no row remains) and its new checksums."""
    if store.root.local:
        return fragment.delete_rows(offsets), {}
    known = known_offsets(store, location, fragment)
    if known is None:
        raise DamagedError(f"a deletion file of {location} is missing or damaged")
    deleted = np.union1d(known, np.asarray(offsets, np.int64))
    if len(deleted) == fragment.physical_rows:
        return None, {}
    facts = fragment.metadata.to_json()
    facts["deletion_file"] = {
        "read_version": version,
        "id": int(ids.nonce()[:16], 16),
        "file_type": "array",
        "num_deleted_rows": len(deleted),
        "base_id": None,
    }
    marked = FragmentMetadata.from_json(json.dumps(facts))
    name, body = deletion_file(location, marked), write_offsets(deleted)
    store.objects.backend.send(name, body)
    remember_offsets(store, name, deleted)
    return marked, {name: FileChecksum.of_bytes(body)}


def manifest_checksum(dataset: Any) -> FileChecksum:
    """Return the checksum of a version from memory: of the manifest section of its file."""
    return checksum_manifest(dataset._ds.serialized_manifest())
