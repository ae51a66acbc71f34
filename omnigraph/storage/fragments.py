"""Single fragments: read some, write new ones, and combine those of many writers.

For writers in several processes: each writes its fragments and returns their description, and one
of them turns all descriptions into one staged change. Nothing here decides what is visible.
"""

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from lance import FragmentMetadata, LanceOperation
from lance.file import LanceFileReader
from lance.fragment import RowIdSequence

from omnigraph.errors import InternalError

from .blobs import stored_form
from .checksums import FileChecksum
from .failures import storage_failure
from .row_ids import check_row_ids
from .staging import write_data
from .store import Store
from .table import Staged, Table, data_files, field_digest, mark_of, remove_rows

_CHECKSUMS = "checksums"  # the member that our writers add to the description of a fragment
_WHOLE = 1 << 30  # rows of one file: the caller decides where a fragment ends
Addresses = npt.NDArray[np.uint64]


def fragment_ids(table: Table) -> list[int]:
    """Return the ids of the fragments of a version."""
    return [one.fragment_id for one in table.dataset.get_fragments()]


def fragment_sizes(table: Table) -> dict[int, int]:
    """Return how many rows each fragment had when it was written."""
    return {one.fragment_id: one.physical_rows for one in table.dataset.get_fragments()}


def bytes_of(table: Table, fragments: Collection[int]) -> int:
    """Return the size of the data files of some fragments, as far as the version records it."""
    chosen = (one for one in table.dataset.get_fragments() if one.fragment_id in fragments)
    return sum(file.file_size_bytes or 0 for one in chosen for file in one.metadata.files)


def written_fragments(table: Table) -> list[tuple[dict[str, Any], int]]:
    """Return the description and the row count of each fragment of a version."""
    every = table.dataset.get_fragments()
    return [(one.metadata.to_json(), one.physical_rows) for one in every]


def read_fragments(
    table: Table,
    fragments: Sequence[int],
    columns: Sequence[str],
    where: Any = None,
    *,
    places: bool = False,
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of some fragments, batch by batch, with blobs as bytes."""
    chosen = [table.dataset.get_fragment(one) for one in fragments]
    try:
        scanner = table.dataset.scanner(
            columns=list(columns),
            filter=where,
            fragments=chosen,
            with_row_id=places,
            with_row_address=places,
            blob_handling="all_binary",
            batch_size=65_536,
            fragment_readahead=1,
        )
        yield from scanner.to_batches()
    except OSError as error:
        raise storage_failure(error, effect="none") from error


def write_rows(
    store: Store, table: Table, rows: pa.Table, row_ids: Sequence[int] | None = None
) -> dict[str, Any]:
    """Write rows as one fragment; with `row_ids` they keep those of the rows they replace.

    The returned description contains the checksums of its files, taken while they are still in the
    page cache of the machine that wrote them.
    """
    shaped = stored_form(rows, table.schema).select(table.schema.names).cast(table.schema)
    write = partial(write_data, store, table.location, table.dataset, shaped, _WHOLE)
    written = store.effects.run("stage", table.location, write)
    if len(written.fragments) != 1:
        raise InternalError(f"expected one fragment, Lance wrote {len(written.fragments)}")
    fragment = written.fragments[0]
    if row_ids is not None:
        fragment.row_id_meta = RowIdSequence(list(row_ids)).to_inline_metadata()
    facts: dict[str, Any] = fragment.to_json()
    checksums = written.checksums or store.checksum_files(data_files(table, [fragment]))
    return {**facts, _CHECKSUMS: {name: one.to_json() for name, one in checksums.items()}}


def read_staged(
    store: Store, table: Table, facts: Mapping[str, Any], columns: Sequence[str]
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a fragment that was written and is not part of any version yet."""
    try:
        for one in facts["files"]:
            path = f"{table.dataset.uri}/data/{one['path']}"
            file = LanceFileReader(path, storage_options=store.options, columns=list(columns))
            yield from file.read_all(batch_size=65_536).to_batches()
    except OSError as error:
        raise storage_failure(error, effect="none") from error


def appended(table: Table, fragments: Sequence[Mapping[str, Any]]) -> Staged:
    """Stage fragments of any writers as an append."""
    new = _revived(fragments)
    operation = LanceOperation.Append(new)
    files, fields = data_files(table, new), field_digest(table)
    sums = _checksums(fragments)
    return Staged(table.location, operation, fields, (), _rows(new), files, checksums=sums)


def overwritten(table: Table, fragments: Sequence[Mapping[str, Any]]) -> Staged:
    """Stage fragments of any writers as a replacement of all rows."""
    new = _revived(fragments)
    operation = LanceOperation.Overwrite(table.dataset.lance_schema, new)
    touched = tuple(mark_of(one.metadata) for one in table.dataset.get_fragments())
    count = _rows(new) - table.dataset.count_rows()
    files, fields = data_files(table, new), field_digest(table)
    sums = _checksums(fragments)
    return Staged(table.location, operation, fields, touched, count, files, checksums=sums)


def changed(
    store: Store,
    table: Table,
    fragments: Sequence[Mapping[str, Any]],
    removed: Addresses,
    kept: Sequence[int] = (),
) -> Staged:
    """Stage fragments of any writers together with the removal of rows by address.

    `carried_row_ids` are row ids that rows in the fragments take over; they are verified here.
    """
    if kept:
        check_row_ids(table.dataset, removed.tolist(), kept, len(kept))
    removal, new = remove_rows(store, table, removed.tolist()), _revived(fragments)
    return removal.as_change(table, new, _rows(new) - len(removed), _checksums(fragments))


def _revived(fragments: Sequence[Mapping[str, Any]]) -> list[Any]:
    bare = ({key: one[key] for key in one if key != _CHECKSUMS} for one in fragments)
    return [FragmentMetadata.from_json(json.dumps(one)) for one in bare]


def _checksums(fragments: Sequence[Mapping[str, Any]]) -> dict[str, FileChecksum]:
    """Return the checksums that the writers of the fragments recorded."""
    recorded = (item for one in fragments for item in one.get(_CHECKSUMS, {}).items())
    return {name: FileChecksum.from_json(facts) for name, facts in recorded}


def _rows(fragments: Sequence[Any]) -> int:
    return sum(one.physical_rows for one in fragments)
