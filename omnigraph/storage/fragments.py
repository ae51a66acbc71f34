"""Read and write individual fragments, and combine fragments from many writers.

Several processes may write the fragments for one change. Each process returns descriptions of its fragments, and one
process combines all descriptions into a staged change. This module does not determine which data is visible.
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

from .blobs import to_stored_rows
from .bounded_scans import scan_table_batches
from .checksums import FileChecksum
from .data_writer import write_data
from .failures import to_storage_error
from .row_ids import check_row_ids
from .stage_rows import remove_rows
from .store import Store
from .table import StagedChange, Table, data_files, fragment_fingerprint, schema_fingerprint

_CHECKSUMS_MEMBER = "checksums"  # the JSON member that writers in this package add to the description of a fragment
_UNLIMITED_ROWS = 1 << 30  # maximum number of rows per file; the caller decides where a fragment ends
RowAddresses = npt.NDArray[np.uint64]


def list_fragment_ids(table: Table) -> list[int]:
    """Return the ids of the fragments in a version."""
    return [fragment.fragment_id for fragment in table.dataset.get_fragments()]


def fragment_row_counts(table: Table) -> dict[int, int]:
    """Return the number of rows in each fragment, including deleted rows."""
    return {fragment.fragment_id: fragment.physical_rows for fragment in table.dataset.get_fragments()}


def fragment_bytes(table: Table, fragment_ids: Collection[int]) -> int:
    """Return the total size of all data files in the fragments. A file without a recorded size counts as zero."""
    chosen_fragments = (fragment for fragment in table.dataset.get_fragments() if fragment.fragment_id in fragment_ids)
    return sum(data_file.file_size_bytes or 0 for fragment in chosen_fragments for data_file in fragment.metadata.files)


def describe_fragments(table: Table) -> list[tuple[dict[str, Any], int]]:
    """Return the description and the row count, including deleted rows, of each fragment in a version."""
    fragments = table.dataset.get_fragments()
    return [(fragment.metadata.to_json(), fragment.physical_rows) for fragment in fragments]


def read_fragments(  # noqa: PLR0913 - all but four are keyword-only
    table: Table,
    fragment_ids: Sequence[int],
    columns: Sequence[str],
    filter_expression: Any = None,
    *,
    with_row_ids: bool = False,
    blob_handling: str = "all_binary",
    batch_rows: int = 65_536,
    batch_readahead: int | None = None,
) -> Iterator[pa.RecordBatch]:
    """Yield the rows in some fragments in batches, with blobs as bytes or as Lance's blob descriptions.

    At most `batch_readahead` batches are decoded ahead of the consumer. By default, Lance chooses this number.
    """
    chosen_fragments = [table.dataset.get_fragment(fragment_id) for fragment_id in fragment_ids]
    try:
        yield from scan_table_batches(
            table,
            columns,
            batch_rows=batch_rows,
            filter=filter_expression,
            fragments=chosen_fragments,
            with_row_id=with_row_ids,
            with_row_address=with_row_ids,
            blob_handling=blob_handling,
            batch_readahead=batch_readahead,
            fragment_readahead=1,
        )
    except OSError as error:
        raise to_storage_error(error, effect="none") from error


def write_fragment(store: Store, table: Table, rows: pa.Table, row_ids: Sequence[int] | None = None) -> dict[str, Any]:
    """Write rows as one fragment. With `row_ids`, the new rows keep the row ids of the rows that they replace.

    The returned description contains the checksums of the new files. They are computed right after the write, while the
    files are still in the page cache.
    """
    stored_rows = to_stored_rows(rows, table.schema).select(table.schema.names).cast(table.schema)
    write = partial(write_data, store, table.location, table.dataset, stored_rows, _UNLIMITED_ROWS)
    written_data = store.effects.run("stage", table.location, write)
    if len(written_data.fragments) != 1:
        raise InternalError(f"expected one fragment, but Lance wrote {len(written_data.fragments)}")
    fragment = written_data.fragments[0]
    if row_ids is not None:
        fragment.row_id_meta = RowIdSequence(list(row_ids)).to_inline_metadata()
    fragment_json: dict[str, Any] = fragment.to_json()
    checksums = written_data.checksums or store.checksum_local_files(data_files(table, [fragment]))
    return {
        **fragment_json,
        _CHECKSUMS_MEMBER: {file_name: checksum.to_json() for file_name, checksum in checksums.items()},
    }


def read_staged_fragment(
    store: Store, table: Table, fragment_json: Mapping[str, Any], columns: Sequence[str]
) -> Iterator[pa.RecordBatch]:
    """Yield the rows in a fragment that does not belong to any version yet."""
    try:
        for file_entry in fragment_json["files"]:
            file_uri = f"{table.dataset.uri}/data/{file_entry['path']}"
            reader = LanceFileReader(file_uri, storage_options=store.options, columns=list(columns))
            yield from reader.read_all(batch_size=65_536).to_batches()
    except (OSError, ValueError) as error:  # Lance raises a ValueError for a file that a cleanup has removed
        raise to_storage_error(error, effect="none") from error


def stage_appended_fragments(table: Table, fragment_entries: Sequence[Mapping[str, Any]]) -> StagedChange:
    """Stage fragments from any number of writers as an append."""
    new_fragments = _fragments_from_json(fragment_entries)
    operation = LanceOperation.Append(new_fragments)
    new_files, fingerprint = data_files(table, new_fragments), schema_fingerprint(table)
    checksums = _collect_checksums(fragment_entries)
    return StagedChange(
        table.location, operation, fingerprint, (), _count_rows(new_fragments), new_files, checksums=checksums
    )


def stage_overwriting_fragments(table: Table, fragment_entries: Sequence[Mapping[str, Any]]) -> StagedChange:
    """Stage fragments from any number of writers as a replacement of all rows."""
    new_fragments = _fragments_from_json(fragment_entries)
    operation = LanceOperation.Overwrite(table.dataset.lance_schema, new_fragments)
    touched_fragments = tuple(fragment_fingerprint(fragment.metadata) for fragment in table.dataset.get_fragments())
    row_delta = _count_rows(new_fragments) - table.dataset.count_rows()
    new_files, fingerprint = data_files(table, new_fragments), schema_fingerprint(table)
    checksums = _collect_checksums(fragment_entries)
    return StagedChange(
        table.location, operation, fingerprint, touched_fragments, row_delta, new_files, checksums=checksums
    )


def stage_changed_fragments(
    store: Store,
    table: Table,
    fragment_entries: Sequence[Mapping[str, Any]],
    removed_addresses: RowAddresses,
    carried_row_ids: Sequence[int] = (),
) -> StagedChange:
    """Stage fragments from any number of writers, and remove rows by address in the same change.

    `carried_row_ids` are the existing row ids that rows in the fragments keep. This function verifies these ids.
    """
    if carried_row_ids:
        check_row_ids(table.dataset, removed_addresses.tolist(), carried_row_ids, len(carried_row_ids))
    removal = remove_rows(store, table, removed_addresses.tolist())
    new_fragments = _fragments_from_json(fragment_entries)
    return removal.to_staged_change(
        table, new_fragments, _count_rows(new_fragments) - len(removed_addresses), _collect_checksums(fragment_entries)
    )


def _fragments_from_json(fragment_entries: Sequence[Mapping[str, Any]]) -> list[Any]:
    bare_entries = (
        {member_name: fragment_entry[member_name] for member_name in fragment_entry if member_name != _CHECKSUMS_MEMBER}
        for fragment_entry in fragment_entries
    )
    return [FragmentMetadata.from_json(json.dumps(fragment_entry)) for fragment_entry in bare_entries]


def _collect_checksums(fragment_entries: Sequence[Mapping[str, Any]]) -> dict[str, FileChecksum]:
    """Return the checksums that the writers of the fragments recorded."""
    recorded_items = (
        recorded_item
        for fragment_entry in fragment_entries
        for recorded_item in fragment_entry.get(_CHECKSUMS_MEMBER, {}).items()
    )
    return {file_name: FileChecksum.from_json(checksum_json) for file_name, checksum_json in recorded_items}


def _count_rows(fragments: Sequence[Any]) -> int:
    return sum(fragment.physical_rows for fragment in fragments)
