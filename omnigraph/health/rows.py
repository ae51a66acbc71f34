"""Validation of a branch's rows against its schema, by the same rules as every write.

Reads each table once, batch by batch, and keeps only ids, endpoints, and the columns of keys and
unique constraints in memory. The rules themselves are defined in `rules`.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.history.commit import TableEntry
from omnigraph.history.schemas import Contract
from omnigraph.ingest.ids import key_ids
from omnigraph.lang.schema.catalog import Edge, Key, Node, Unique
from omnigraph.rules.cardinality import miscounted
from omnigraph.rules.delta import written
from omnigraph.rules.endpoints import dangling, ends_of
from omnigraph.rules.unique import repeated_records
from omnigraph.rules.values import row_violations
from omnigraph.rules.violation import Violation
from omnigraph.storage.arrow import table_key, table_schema
from omnigraph.storage.find import batches
from omnigraph.storage.store import Store
from omnigraph.storage.table import Table, open_table

from .finding import Finding, Kind

_KINDS: Mapping[str, Kind] = {
    "key": "key",
    "@unique": "unique",
    "endpoint": "endpoint",
    "@card": "cardinality",
}
_HINT = "correct the entity with an update or a load; no Omnigraph write produces this"


@dataclass(slots=True)
class Judge:
    """Validates the tables of one state; `node_ids` holds the ids of node tables read so far."""

    store: Store
    contract: Contract
    tables: Mapping[str, TableEntry]
    ids: dict[str, pa.Array] = field(default_factory=dict)
    rows: int = 0

    def of_type(self, one: Node | Edge) -> Iterator[Finding]:
        """Report what is wrong in one table; for edges, also with their endpoints."""
        key = table_key(one)
        entry = self.tables.get(key)
        if entry is None:
            reason = "the schema has this type, but the branch has no table for it"
            yield Finding("schema", reason, type_key=key)
            return
        table = open_table(self.store, entry.location, entry.lance_version)
        shape = list(_shape(self.contract, one, table, entry))
        yield from shape
        if shape:
            return  # the rules need these columns
        for violation in self._violations(one, table, entry):
            yield violation if isinstance(violation, Finding) else told(violation)

    def _violations(
        self, one: Node | Edge, table: Table, entry: TableEntry
    ) -> Iterator[Violation | Finding]:
        held: list[pa.RecordBatch] = []
        names = _held(one)
        for batch in batches(table, table.schema.names):
            yield from row_violations(one, batch)
            held.append(batch.select(names))
        rows = pa.Table.from_batches(held) if held else _empty(table, names)
        self.rows += rows.num_rows
        if rows.num_rows != entry.rows:
            reason = f"the state counts {entry.rows} rows, but there are {rows.num_rows}"
            yield Finding("count", reason, type_key=entry.key)
        yield from _repeated_ids(entry.key, rows)
        yield from _repeated(one, rows)
        if isinstance(one, Node):
            self.ids[one.name] = rows["id"].combine_chunks()
            yield from _key_spelling(self.contract, one, rows)
        else:
            yield from self._ends(one, rows)
            yield from _miscounted(one, rows)

    def _ends(self, one: Edge, rows: pa.Table) -> Iterator[Violation]:
        for end in ends_of(one):
            known = self.ids.get(end[2].partition(":")[2])
            if known is None:
                continue  # the node table could not be read, which is reported
            lost = rows.filter(pc.invert(pc.is_in(rows[end[1]], value_set=known)))
            for row in lost.select(["id", "src", "dst"]).to_pylist():
                yield dangling(self.contract.ir.catalog, end, row, None)


def told(one: Violation) -> Finding:
    """Return a broken rule as a finding."""
    kind: Kind = _KINDS.get(one.rule, "value")
    column = "" if one.column is None else f" {', '.join(_names(one.column))}"
    reason = one.reason or _held_twice(one)
    text = f"{one.rule}{column}: {reason}"
    return Finding(kind, text, type_key=one.type_key, entity_id=one.entity_id, hint=_HINT)


def _names(column: str | tuple[str, ...]) -> tuple[str, ...]:
    return (column,) if isinstance(column, str) else column


def _held_twice(one: Violation) -> str:
    return f"'{one.value}' also belongs to '{one.other_id}'"


def _shape(
    contract: Contract, one: Node | Edge, table: Table, entry: TableEntry
) -> Iterator[Finding]:
    """Check that the columns match the schema, and that no unrecorded field id is in use."""
    wanted = table_schema(contract.ir, one)
    for column in wanted:
        place = table.schema.get_field_index(column.name)
        if place < 0:
            yield Finding("field", f"column {column.name} is missing", type_key=entry.key)
        elif not _alike(table.schema.field(place), column):
            found = table.schema.field(place).type
            reason = f"column {column.name} is {found}, but the schema says {column.type}"
            yield Finding("field", reason, type_key=entry.key)
    if table.highest_field_id > entry.max_field_id:
        reason = (
            f"field id {table.highest_field_id} is in use,"
            f" but the highest one that the state records is {entry.max_field_id}"
        )
        yield Finding("field", reason, type_key=entry.key)


def _alike(one: pa.Field, other: pa.Field) -> bool:
    blob = pa.types.is_struct(one.type) or pa.types.is_struct(other.type)
    return bool(blob or one.type.equals(other.type))


def _held(one: Node | Edge) -> list[str]:
    ends = ["src", "dst"] if isinstance(one, Edge) else []
    rules = [rule.columns for rule in one.constraints if isinstance(rule, Key | Unique)]
    return list(dict.fromkeys(["id", *ends, *(name for names in rules for name in names)]))


def _empty(table: Table, names: list[str]) -> pa.Table:
    return pa.schema([table.schema.field(name) for name in names]).empty_table()


def _repeated_ids(key: str, rows: pa.Table) -> Iterator[Finding]:
    if len(pc.unique(rows["id"])) == rows.num_rows:
        return
    counted = pc.value_counts(rows["id"])
    for one in counted.filter(pc.greater(counted.field("counts"), 1)).to_pylist():
        reason = f"{one['counts']} rows have this id"
        yield Finding("key", reason, type_key=key, entity_id=one["values"], hint=_HINT)


def _repeated(one: Node | Edge, rows: pa.Table) -> Iterator[Violation]:
    """Report entities that share a unique value; keys are ids, which are checked already."""
    unique = tuple(rule for rule in one.constraints if isinstance(rule, Unique))
    if unique:
        trimmed = replace(one, constraints=unique)
        delta = written(table_key(one), rows, "fresh", records=True)
        yield from repeated_records(trimmed, delta)


def _key_spelling(contract: Contract, one: Node, rows: pa.Table) -> Iterator[Finding]:
    if not one.key or not rows.num_rows:
        return
    ids = key_ids(contract.ir, one, rows, lambda *_: None)
    given = rows["id"].combine_chunks()
    for at in np.flatnonzero(_plain(pc.not_equal(given, ids))):
        reason = f"its key requires the id '{ids[int(at)].as_py()}'"
        found = given[int(at)].as_py()
        yield Finding("key", reason, type_key=table_key(one), entity_id=found, hint=_HINT)


def _plain(mask: pa.Array) -> Any:
    return pc.fill_null(mask, True).to_numpy(zero_copy_only=False)


def _miscounted(one: Edge, rows: pa.Table) -> Iterator[Violation]:
    """Report sources with too few or too many edges; a node without edges is never counted."""
    if (one.low == 0 and one.high is None) or not rows.num_rows:
        return
    counted = pc.value_counts(rows["src"])
    for source in counted.to_pylist():
        count = source["counts"]
        if count < one.low or (one.high is not None and count > one.high):
            yield miscounted(one, source["values"], count, None)
