"""Stored rows overlaid with the rows an operation has written so far: one version per id.

Owns read-your-writes. A row that the operation wrote hides the stored row with the same id, a row
that it removed is not visible, and every read of stored rows is recorded as a requirement.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.errors import KeyConflict
from omnigraph.history.plan import WriteTxn
from omnigraph.lang.query import plan
from omnigraph.lang.schema.catalog import Catalog, Edge, Node
from omnigraph.lang.schema.ir import SchemaIR
from omnigraph.rules.check import type_named
from omnigraph.rules.delta import FRESH, UNKNOWN, Addresses, Delta, Positions, TableDelta, flat
from omnigraph.rules.lookup import Committed
from omnigraph.rules.values import row_violations
from omnigraph.storage.arrow import table_key
from omnigraph.storage.blobs import row_schema
from omnigraph.storage.scan import ROW_ADDRESS, ROW_ID

from .evaluate import TableSource, mask
from .fetch import needs
from .push import push

Params = Mapping[str, Any]
_ENDS = ("src", "dst")


@dataclass(slots=True)
class Layer:
    """Changes that an operation has made to one table so far.

    `row_ids` and `addresses` are aligned with `written_rows`: the stored row each one replaces.
    """

    type: Node | Edge
    rows: pa.Table
    row_ids: Positions
    addresses: Addresses
    removed: pa.Table
    previous: pa.Table

    @property
    def key(self) -> str:
        """Key of the table."""
        return table_key(self.type)


@dataclass(slots=True)
class Overlay:
    """All tables of one base version, with the changes of one operation on top."""

    txn: WriteTxn
    ir: SchemaIR
    layers: dict[str, Layer] = field(default_factory=dict)
    lookup: Committed = None  # type: ignore[assignment]
    changes: int = 0
    _waiting: dict[str, list[tuple[pa.Table, int]]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.lookup = Committed(self.txn)

    @property
    def catalog(self) -> Catalog:
        """Schema of the base version."""
        return self.ir.catalog

    def schema(self, key: str) -> pa.Schema:
        """Return the columns that rows of a table have."""
        return row_schema(self.txn.table(key).schema)

    def write(self, key: str, rows: pa.Table, origin: int, *, strict: bool = False) -> None:
        """Add rows, replacing rows with the same ids."""
        self._judge(key, rows)
        if strict and origin != FRESH:
            self._refuse_taken(key, flat(rows["id"]))
        self._waiting.setdefault(key, []).append((rows, origin))
        self.changes += 1

    def update(
        self, key: str, where: plan.Predicate, params: Params, values: Mapping[str, pa.Scalar]
    ) -> int:
        """Assign values to the rows that match a predicate; return how many there are."""
        layer = self.layer(key)
        schema = self.schema(key)
        stored = self._stored(key, where, params, schema.names)
        mine = self._mine(layer, where, params)
        rows = pa.concat_tables(
            [stored.select(schema.names).cast(schema), layer.rows.filter(pa.array(mine))]
        )
        if not rows.num_rows:
            return 0
        rows = _assigned(rows, values)
        self._judge(key, rows)
        row_ids = np.concatenate([_whole(stored[ROW_ID]), layer.row_ids[mine]])
        addresses = np.concatenate([stored[ROW_ADDRESS].to_numpy(), layer.addresses[mine]])
        _drop(layer, mine)
        layer.rows = pa.concat_tables([layer.rows, rows])
        layer.row_ids = np.concatenate([layer.row_ids, row_ids])
        layer.addresses = np.concatenate([layer.addresses, addresses])
        self.changes += 1
        return int(rows.num_rows)

    def delete(self, key: str, where: plan.Predicate, params: Params) -> pa.Array:
        """Remove the rows that match a predicate; return their ids."""
        layer = self.layer(key)
        stored = self._stored(key, where, params, _system(layer.type))
        return self._remove(layer, stored, self._mine(layer, where, params))

    def cascade(self, edge: Edge, node: str, gone: pa.Array) -> int:
        """Remove the edges of deleted nodes of a type; return how many there were."""
        layer = self.layer(f"edge:{edge.name}")
        columns = [c for c, t in zip(_ENDS, (edge.source, edge.target), strict=True) if t == node]
        found = [
            self.lookup.find(layer.key, {column: gone}, _system(edge), places=True)
            for column in columns
        ]
        stored = self._hidden(layer, _each_once(pa.concat_tables(found)))
        mine = np.zeros(layer.rows.num_rows, bool)
        for column in columns:
            mine |= pc.is_in(layer.rows[column], value_set=gone).to_numpy()
        return len(self._remove(layer, stored, mine))

    def layer(self, key: str) -> Layer:
        """Return the changes of a table, with all pending writes applied."""
        found = self.layers.get(key)
        if found is None:
            found = self.layers[key] = self._empty(key)
        for rows, origin in self._waiting.pop(key, ()):
            _put(found, rows, origin)
        return found

    def delta(self) -> Delta:
        """Return the final state of all changes."""
        for key in list(self._waiting):
            self.layer(key)
        tables = {key: _table_delta(layer) for key, layer in self.layers.items()}
        return Delta({key: one for key, one in sorted(tables.items()) if not one.empty}, True)

    def _empty(self, key: str) -> Layer:
        type_ = type_named(self.catalog, key)
        names = _system(type_)
        bare = pa.schema([(name, pa.string()) for name in names])
        places = pa.schema([(ROW_ID, pa.uint64()), (ROW_ADDRESS, pa.uint64())])
        removed = pa.schema([*bare, *places]).empty_table()
        rows = self.schema(key).empty_table()
        nothing = np.zeros(0, np.int64), np.zeros(0, np.uint64)
        return Layer(type_, rows, *nothing, removed, bare.empty_table())

    def _stored(
        self, key: str, where: plan.Predicate, params: Params, columns: list[str]
    ) -> pa.Table:
        """Return stored rows that match a predicate and that the operation has not changed."""
        constants = TableSource(pa.table({}), params).constant
        schema = self.txn.table(key).schema
        pushed = push(schema, where, constants)
        tested = [] if pushed is not None else sorted({name for _, name in needs(where)})
        names = list(dict.fromkeys([*columns, *tested]))
        found = self.lookup.select(key, names, pushed)
        if pushed is None and found.num_rows:
            found = found.filter(pa.array(mask(TableSource(found, params), where)))
        return self._hidden(self.layer(key), found)

    def _hidden(self, layer: Layer, found: pa.Table) -> pa.Table:
        for ids in (layer.rows["id"], layer.removed["id"]):
            if len(ids) and found.num_rows:
                found = found.filter(pc.invert(pc.is_in(found["id"], value_set=flat(ids))))
        return found

    def _mine(
        self, layer: Layer, where: plan.Predicate, params: Params
    ) -> np.ndarray[Any, np.dtype[np.bool_]]:
        """Return a mask of the rows written by this operation that match a predicate."""
        if not layer.rows.num_rows:
            return np.zeros(0, bool)
        return mask(TableSource(layer.rows, params), where)

    def _remove(
        self, layer: Layer, stored: pa.Table, mine: np.ndarray[Any, np.dtype[np.bool_]]
    ) -> pa.Array:
        names = layer.removed.column_names
        written = layer.rows.filter(pa.array(mine))
        ids = pa.concat_arrays([flat(stored["id"]), flat(written["id"])])
        places = self._places(layer, mine)
        layer.removed = pa.concat_tables(
            [
                layer.removed,
                *(one.select(names).cast(layer.removed.schema) for one in (stored, places)),
            ]
        )
        _drop(layer, mine)
        self.changes += len(ids) > 0
        return ids

    def _places(self, layer: Layer, mine: np.ndarray[Any, np.dtype[np.bool_]]) -> pa.Table:
        """Return the stored rows behind rows that the operation wrote and now removes."""
        known = mine & (layer.row_ids >= 0)
        names = _system(layer.type)
        made = layer.rows.filter(pa.array(known)).select(names)
        made = made.append_column(ROW_ID, pa.array(layer.row_ids[known].astype(np.uint64)))
        made = made.append_column(ROW_ADDRESS, pa.array(layer.addresses[known]))
        asked = mine & (layer.row_ids == UNKNOWN)
        if not asked.any():
            return made
        ids = flat(layer.rows.filter(pa.array(asked))["id"])
        found = self.lookup.find(layer.key, {"id": ids}, names, places=True)
        return pa.concat_tables([made, found.cast(made.schema)])

    def _refuse_taken(self, key: str, ids: pa.Array) -> None:
        layer = self.layer(key)
        found = self.lookup.find(key, {"id": ids}, ["id"])
        gone = flat(layer.removed["id"])
        kept = found.filter(pc.invert(pc.is_in(found["id"], value_set=gone)))["id"]
        taken = [*flat(kept).to_pylist(), *_shared(ids, flat(layer.rows["id"]))]
        if taken:
            raise KeyConflict(type_key=key, entity_id=taken[0])

    def _judge(self, key: str, rows: pa.Table) -> None:
        """Check the row rules on every row version, including versions replaced later."""
        broken = next(row_violations(type_named(self.catalog, key), rows), None)
        if broken is not None:
            raise broken.error()


def _put(layer: Layer, rows: pa.Table, origin: int) -> None:
    """Apply written rows on top of the changes; they replace rows with the same ids."""
    ids = flat(rows["id"])
    row_ids = np.full(len(ids), origin, np.int64)
    addresses = np.zeros(len(ids), np.uint64)
    if layer.rows.num_rows:
        _take_over(layer, ids, row_ids, addresses)
    if layer.removed.num_rows:
        _take_back(layer, ids, row_ids, addresses)
    layer.rows = pa.concat_tables([layer.rows, rows.select(layer.rows.column_names)])
    layer.row_ids = np.concatenate([layer.row_ids, row_ids])
    layer.addresses = np.concatenate([layer.addresses, addresses])


def _take_over(layer: Layer, ids: pa.Array, row_ids: Positions, addresses: Addresses) -> None:
    held = flat(layer.rows["id"])
    place = pc.index_in(ids, value_set=held)
    here = pc.is_valid(place).to_numpy(zero_copy_only=False)
    if here.any():
        at = place.drop_null().to_numpy()
        row_ids[here], addresses[here] = layer.row_ids[at], layer.addresses[at]
        _drop(layer, pc.is_in(held, value_set=ids).to_numpy(zero_copy_only=False))


def _take_back(layer: Layer, ids: pa.Array, row_ids: Positions, addresses: Addresses) -> None:
    """Turn removed rows that are written again into replacements of their stored rows."""
    gone = flat(layer.removed["id"])
    place = pc.index_in(ids, value_set=gone)
    here = pc.is_valid(place).to_numpy(zero_copy_only=False)
    if here.any():
        back = layer.removed.take(place.drop_null())
        row_ids[here], addresses[here] = _whole(back[ROW_ID]), back[ROW_ADDRESS].to_numpy()
        layer.previous = pa.concat_tables(
            [layer.previous, back.select(layer.previous.column_names)]
        )
        layer.removed = layer.removed.filter(pc.invert(pc.is_in(gone, value_set=ids)))


def _drop(layer: Layer, mine: np.ndarray[Any, np.dtype[np.bool_]]) -> None:
    if mine.any():
        layer.rows = layer.rows.filter(pa.array(~mine))
        layer.row_ids, layer.addresses = layer.row_ids[~mine], layer.addresses[~mine]


def _table_delta(layer: Layer) -> TableDelta:
    return TableDelta(
        layer.key,
        layer.rows,
        np.arange(layer.rows.num_rows),
        layer.row_ids,
        layer.addresses,
        removed=layer.removed,
        previous=layer.previous if isinstance(layer.type, Edge) else None,
        judged=True,
    )


def _assigned(rows: pa.Table, values: Mapping[str, pa.Scalar]) -> pa.Table:
    for name, value in values.items():
        at = rows.schema.get_field_index(name)
        rows = rows.set_column(at, rows.schema.field(at), pa.repeat(value, rows.num_rows))
    return rows


def _each_once(found: pa.Table) -> pa.Table:
    """Return rows with distinct ids: an edge may be found from both its endpoints."""
    ids = flat(found["id"])
    first = pc.index_in(ids.unique(), value_set=ids)
    return found.take(first)


def _shared(ids: pa.Array, others: pa.Array) -> list[str]:
    found: list[str] = ids.filter(pc.is_in(ids, value_set=others)).to_pylist()
    return found


def _system(one: Node | Edge) -> list[str]:
    return ["id", "src", "dst"] if isinstance(one, Edge) else ["id"]


def _whole(column: pa.ChunkedArray) -> Positions:
    made: Positions = column.to_numpy().astype(np.int64)
    return made
