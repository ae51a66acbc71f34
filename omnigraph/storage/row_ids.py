"""Verify that a change reuses a row id only if it also removes the old copy of the row with this id.

Lance accepts any row id. Without this check, two rows could end up with the same row id, or a row id could be
reassigned while it is still in use. The check avoids reading files wherever possible.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from lance.fragment import RowIdSequence

from omnigraph.errors import InternalError


def check_row_ids(dataset: Any, addresses: Sequence[int], row_ids: Sequence[int], row_count: int) -> None:
    """Raise an error if a row id does not belong to a removed address, or if a row id or an address occurs twice."""
    if len(set(addresses)) != len(addresses):
        raise InternalError("a change removes the same row twice")
    if len(row_ids) != row_count:
        raise InternalError(f"expected {row_count} row ids for the replaced rows, got {len(row_ids)}")
    if len(set(row_ids)) != len(row_ids):
        raise InternalError("two replaced rows have the same row id")
    if len(row_ids) > len(addresses):
        raise InternalError(f"{len(row_ids)} rows are replaced, but only {len(addresses)} are removed")
    if row_ids and not set(row_ids) <= set(_row_ids_of_addresses(dataset, addresses)):
        raise InternalError("a row is replaced, but its old copy is not removed")


def _row_ids_of_addresses(dataset: Any, addresses: Sequence[int]) -> Iterator[int]:
    """Yield the row ids at these addresses, using the fragment metadata of the version."""
    by_fragment: dict[int, list[int]] = {}
    for address in addresses:
        by_fragment.setdefault(address >> 32, []).append(address & 0xFFFFFFFF)
    for fragment_id, offsets in by_fragment.items():
        fragment = dataset.get_fragment(fragment_id)
        if fragment is None:
            raise InternalError(f"a change removes a row from fragment {fragment_id}, which does not exist")
        yield from row_ids_at(fragment, offsets)


def row_ids_at(fragment: Any, offsets: Sequence[int]) -> list[int]:
    """Return the row ids at these offsets in a fragment."""
    try:
        row_id_sequence = RowIdSequence.from_inline_metadata(fragment.metadata.row_id_meta).to_pyarrow()
    except (NotImplementedError, OSError, ValueError):  # the row ids are stored in a separate file
        return _read_row_ids(fragment, offsets)
    if max(offsets) >= len(row_id_sequence):
        raise InternalError(f"a change removes a row beyond the end of fragment {fragment.fragment_id}")
    row_ids: list[int] = row_id_sequence.take(pa.array(offsets, pa.int64())).to_pylist()
    return row_ids


def _read_row_ids(fragment: Any, offsets: Sequence[int]) -> list[int]:
    fragment_rows = fragment.to_table(columns=[], with_row_id=True, with_row_address=True)
    wanted_addresses = pa.array([fragment.fragment_id << 32 | offset for offset in offsets], pa.uint64())
    row_ids: list[int] = fragment_rows.filter(pc.is_in(fragment_rows["_rowaddr"], wanted_addresses))[
        "_rowid"
    ].to_pylist()
    return row_ids
