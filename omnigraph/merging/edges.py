"""Parallel edges: edges with the same endpoints and properties that both sides added.

Edges have ids of their own, so both are kept unless the caller or the schema asks for one.
"""

from collections.abc import Iterator
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.storage.equality import same_rows

from .sides import Sides


class Parallel(NamedTuple):
    """Two equivalent edges of one type: the id on the target, and the id that is merged."""

    key: str
    ours: str
    theirs: str


def parallel_edges(sides: Sides) -> Iterator[Parallel]:
    """Yield edges that both sides added with different ids and equal content, paired by id."""
    ours, theirs = sides.added()
    if not sides.key.startswith("edge:") or not ours.num_rows or not theirs.num_rows:
        return
    mine, other = _others(ours, theirs), _others(theirs, ours)
    taken: set[str] = set()
    for at, candidates in _candidates(mine, other):
        row = mine.slice(at, 1).drop_columns(["id"])
        for place in candidates:
            entity = other["id"][place].as_py()
            if entity not in taken and same_rows(row, other.slice(place, 1))[0]:
                taken.add(entity)
                yield Parallel(sides.key, mine["id"][at].as_py(), entity)
                break


def _others(one: pa.Table, other: pa.Table) -> pa.Table:
    return one.filter(pc.invert(pc.is_in(one["id"], value_set=other["id"].combine_chunks())))


def _candidates(ours: pa.Table, theirs: pa.Table) -> Iterator[tuple[int, list[int]]]:
    """Yield positions of our edges, each with those of their edges between the same endpoints."""
    places: dict[tuple[str, str], list[int]] = {}
    ends = zip(theirs["src"].to_pylist(), theirs["dst"].to_pylist(), strict=True)
    for at, pair in enumerate(ends):
        places.setdefault(pair, []).append(at)
    for at, pair in enumerate(zip(ours["src"].to_pylist(), ours["dst"].to_pylist(), strict=True)):
        if pair in places:
            yield at, places[pair]
