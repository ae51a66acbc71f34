"""Parallel edges: the same edge, with the same ends and properties, that both sides added.

Edges have ids of their own, so both are kept unless the caller asks for one, or the schema does.
"""

from collections.abc import Iterator
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.storage.equality import same_rows

from .sides import Sides


class Parallel(NamedTuple):
    """Two edges of one type that say the same: the id on the target, the id that is merged."""

    key: str
    ours: str
    theirs: str


def parallel_edges(sides: Sides) -> Iterator[Parallel]:
    """Edges that both sides added with other ids and the same content, paired off by id."""
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
    """Places of edges of the target, each with those of the other side between the same ends."""
    places: dict[tuple[str, str], list[int]] = {}
    ends = zip(theirs["src"].to_pylist(), theirs["dst"].to_pylist(), strict=True)
    for at, pair in enumerate(ends):
        places.setdefault(pair, []).append(at)
    for at, pair in enumerate(zip(ours["src"].to_pylist(), ours["dst"].to_pylist(), strict=True)):
        if pair in places:
            yield at, places[pair]
