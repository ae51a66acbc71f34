"""Parallel edges: edges that both sides added with the same endpoints and properties.

Parallel edges have different ids, so both edges are kept unless the caller or the schema allows only one of them. Keyed
edges are never parallel: equal edges have equal keys and therefore the same id.
"""

from collections.abc import Iterator
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.storage.value_equality import same_rows
from omnigraph.values.table_key import TableKey

from .table_merge import TableSides


class ParallelEdgePair(NamedTuple):
    """The ids of two equivalent edges with the same type: the target's edge and the source's edge."""

    key: TableKey
    ours: str
    theirs: str


def find_parallel_edges(table_sides: TableSides) -> Iterator[ParallelEdgePair]:
    """Yield the ids of each pair of edges that the two sides added with equal content but different ids."""
    our_rows, their_rows = table_sides.added_rows()
    if not table_sides.table_key.is_edge or not our_rows.num_rows or not their_rows.num_rows:
        return
    our_candidates = _rows_absent_from(our_rows, their_rows)
    their_candidates = _rows_absent_from(their_rows, our_rows)
    paired_ids: set[str] = set()
    for our_position, their_positions in _pair_by_endpoints(our_candidates, their_candidates):
        our_row = our_candidates.slice(our_position, 1).drop_columns(["id"])
        for their_position in their_positions:
            their_id = their_candidates["id"][their_position].as_py()
            if their_id not in paired_ids and same_rows(our_row, their_candidates.slice(their_position, 1))[0]:
                paired_ids.add(their_id)
                yield ParallelEdgePair(table_sides.table_key, our_candidates["id"][our_position].as_py(), their_id)
                break


def _rows_absent_from(rows: pa.Table, other_rows: pa.Table) -> pa.Table:
    return rows.filter(pc.invert(pc.is_in(rows["id"], value_set=other_rows["id"].combine_chunks())))


def _pair_by_endpoints(our_rows: pa.Table, their_rows: pa.Table) -> Iterator[tuple[int, list[int]]]:
    """Yield the position of each of our edges, with the positions of the source's edges between the same nodes."""
    positions_by_endpoints: dict[tuple[str, str], list[int]] = {}
    their_endpoints = zip(their_rows["src"].to_pylist(), their_rows["dst"].to_pylist(), strict=True)
    for row_position, endpoints in enumerate(their_endpoints):
        positions_by_endpoints.setdefault(endpoints, []).append(row_position)
    for row_position, endpoints in enumerate(
        zip(our_rows["src"].to_pylist(), our_rows["dst"].to_pylist(), strict=True)
    ):
        if endpoints in positions_by_endpoints:
            yield row_position, positions_by_endpoints[endpoints]
