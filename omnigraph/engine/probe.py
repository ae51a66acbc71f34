"""Neighbours without lists: looks up few rows in the edge table, which is fast with an index.

Owns lookups through `src` and `dst`. They return the same as neighbour lists and pay off only for
few rows; `BudgetedProbe` switches to lists once too many rows were looked up.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.storage.scan import count, row_id_array, scan, take
from omnigraph.storage.table import Table

from .adjacency import Adjacency, Array, OneWay
from .encode import Encoder, encoder_of
from .rows import Ids, Mask
from .topology import make_bag, make_sets, read_encoder

_DENSE = 50  # above one id in this many, reading all ids is faster than looking them up


@dataclass(slots=True, eq=False)
class Probed:
    """One edge type in one direction: rows of `near_column` are looked up, `far_column` is read."""

    edge: Table
    own: Table
    other: Table
    near: str
    far: str
    _asked: Ids = field(default_factory=lambda: np.empty(0, np.int64))
    _found: OneWay | None = None

    def degrees(self, rows: Ids) -> Ids:
        """Return how many distinct neighbours each row has."""
        return self._way(rows).degrees(self._places(rows))

    def edge_degrees(self, rows: Ids) -> Ids:
        """Return how many edges each row has."""
        return self._way(rows).edge_degrees(self._places(rows))

    def expand(self, rows: Ids, passes: Mask | None = None) -> tuple[Ids, Ids]:
        """Return the set of neighbours for each position."""
        return self._way(rows).expand(self._places(rows), passes)

    def union(self, rows: Ids) -> Array:
        """Return the neighbours of all rows."""
        return self.expand(rows)[1]

    @property
    def size(self) -> int:
        """Always 0: the bound is unknown without reading the whole table."""
        return 0

    def expand_edges(self, rows: Ids) -> tuple[Ids, Ids, Ids]:
        """Return one neighbour for each edge."""
        return self._way(rows).expand_edges(self._places(rows))

    def contains(self, sources: Ids, targets: Ids) -> Mask:
        """Return for each pair whether the target is a neighbour of the source."""
        return self._way(sources).contains(self._places(sources), targets)

    def _places(self, rows: Ids) -> Ids:
        """Return the positions of these rows among the rows that were looked up last."""
        places = np.searchsorted(self._asked, rows)
        return np.where(rows < 0, -1, places).astype(np.int64, copy=False)

    def _way(self, rows: Ids) -> OneWay:
        """Return lists of these rows; the last ones are cached for the next call."""
        distinct = np.unique(rows)
        distinct = distinct[distinct >= 0]
        if self._found is None or not np.isin(distinct, self._asked).all():
            self._found = self._read(distinct)
            self._asked = distinct
        return self._found

    def _read(self, rows: Ids) -> OneWay:
        ids = take(self.own, rows, ["id"])["id"].combine_chunks()
        known = ids.is_valid().to_numpy(zero_copy_only=False)
        wanted = ids.filter(pa.array(known))
        found = scan(
            self.edge, [self.near, self.far], pc.field(self.near).isin(wanted), row_ids=True
        )
        owners = Encoder(wanted, np.flatnonzero(known)).encode(found[self.near])
        values = self._far(found[self.far])
        ends = (owners >= 0) & (values >= 0)
        owners, values, edges = owners[ends], values[ends], row_id_array(found)[ends]
        return OneWay(
            make_sets(owners, values, len(rows)), make_bag(owners, values, edges, len(rows))
        )

    def _far(self, column: pa.ChunkedArray) -> Ids:
        wanted = pc.unique(column)
        if len(wanted) * _DENSE > count(self.other) + 5_000:
            return read_encoder(self.other)[0].encode(column)
        found = scan(self.other, ["id"], pc.field("id").isin(wanted), row_ids=True)
        return encoder_of(found["id"], row_id_array(found)).encode(column)


@dataclass(slots=True, eq=False)
class Sparing:
    """Probes the edge table while `may_probe(row_count)` is true, then builds lists."""

    probed: Adjacency
    lists: Callable[[], Adjacency]
    allows: Callable[[int], bool]
    _built: Adjacency | None = None
    _last: Ids | None = None

    def degrees(self, rows: Ids) -> Ids:
        """Return how many distinct neighbours each row has."""
        return self._way(rows).degrees(rows)

    def edge_degrees(self, rows: Ids) -> Ids:
        """Return how many edges each row has."""
        return self._way(rows).edge_degrees(rows)

    def expand(self, rows: Ids, passes: Mask | None = None) -> tuple[Ids, Ids]:
        """Return the set of neighbours for each position."""
        return self._way(rows).expand(rows, passes)

    def union(self, rows: Ids) -> Array:
        """Return the neighbours of all rows."""
        return self._way(rows).union(rows)

    @property
    def size(self) -> int:
        """Bound of all row ids; 0 until lists are built."""
        return self._built.size if self._built is not None else 0

    def expand_edges(self, rows: Ids) -> tuple[Ids, Ids, Ids]:
        """Return one neighbour for each edge."""
        return self._way(rows).expand_edges(rows)

    def contains(self, sources: Ids, targets: Ids) -> Mask:
        """Return for each pair whether the target is a neighbour of the source."""
        return self._way(sources).contains(sources, targets)

    def _way(self, rows: Ids) -> Adjacency:
        if self._built is not None:
            return self._built
        if rows is not self._last and not self.allows(len(rows)):
            self._built = self.lists()
            return self._built
        self._last = rows
        return self.probed
