"""Checks whether existing entities satisfy the constraints that a new schema adds.

Scans only what the validated steps of a plan name, before anything is written. Rows are checked in
their new form by the same rules as every write.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.errors import SchemaViolation
from omnigraph.history.plan import WriteTxn
from omnigraph.lang.schema.catalog import Check, Constraint, Edge, Node, Range, Unique
from omnigraph.lang.schema.migrate.steps import (
    AddConstraint,
    ChangeCardinality,
    ChangeEndpoints,
    NarrowEnum,
    PropertyStep,
    Step,
    TightenProperty,
)
from omnigraph.lang.schema.shape import columns_of
from omnigraph.rules.cardinality import miscounted
from omnigraph.rules.delta import written
from omnigraph.rules.unique import repeated_records
from omnigraph.rules.values import row_violations
from omnigraph.rules.violation import Violation
from omnigraph.storage.arrow import table_key
from omnigraph.storage.find import batches
from omnigraph.storage.table import Table

from .columns import Passage, passages
from .proposal import SchemaPlan

SHOWN = 10  # entities listed in an error


def judged_keys(plan: SchemaPlan) -> set[str]:
    """Return the keys, before the migration, of the tables whose rows must be checked."""
    every = list(_passages(plan))
    keys = {one.old_key for one in every if _steps(plan, one)}
    if any(isinstance(step, ChangeEndpoints) for step in plan.steps):
        keys |= {one.old_key for one in every if one.old.kind == "node"}
    return keys


def judge(plan: SchemaPlan, txn: WriteTxn) -> None:
    """Raise `SchemaViolation` with the first entities that violate a new constraint."""
    found = list(islice(_violations(plan, txn), SHOWN + 1))
    if found:
        shown = [_plain(one) for one in found[:SHOWN]]
        raise SchemaViolation(violations=shown, more=len(found) > SHOWN)


def _violations(plan: SchemaPlan, txn: WriteTxn) -> Iterator[Violation]:
    tables = {one.new_key: one.old_key for one in _passages(plan)}
    for passage in _passages(plan):
        entry = txn.entry(passage.old_key)
        steps = _steps(plan, passage)
        if steps and entry is not None and entry.rows:
            yield from _of_type(passage, steps, txn.table(passage.old_key))
            if any(isinstance(step, ChangeEndpoints) for step in steps):
                yield from _dangling(passage.new, txn, passage.old_key, tables)


def _passages(plan: SchemaPlan) -> Iterator[Passage]:
    return passages(plan.before.ir, plan.after)


def _steps(plan: SchemaPlan, passage: Passage) -> list[Step]:
    """Return the steps of a type that may fail on its rows."""
    return [one for one in plan.steps if one.tier == "validated" and _names(one, passage.new)]


def _names(step: Step, one: Node | Edge) -> bool:
    if not isinstance(step, PropertyStep | AddConstraint | ChangeCardinality | ChangeEndpoints):
        return False
    return (step.type_kind, step.type_name) == (one.kind, one.name)


def _of_type(passage: Passage, steps: Sequence[Step], table: Table) -> Iterator[Violation]:
    yield from _rows(passage, steps, table)
    for rule in _rules(steps, Unique):
        yield from _repeated(passage, rule, table)
    if isinstance(passage.new, Edge) and any(isinstance(s, ChangeCardinality) for s in steps):
        yield from _miscounted(passage.new, table)


def _rules(steps: Sequence[Step], *kinds: type[Any]) -> tuple[Constraint, ...]:
    added = (step.constraint for step in steps if isinstance(step, AddConstraint))
    return tuple(one for one in added if isinstance(one, kinds))


def _rows(passage: Passage, steps: Sequence[Step], table: Table) -> Iterator[Violation]:
    """Check the rules of single rows: required values, enums, ranges, patterns."""
    rules = _rules(steps, Range, Check)
    named = {s.property_name for s in steps if isinstance(s, TightenProperty | NarrowEnum)}
    if not named and not rules:
        return
    bounded = {name for rule in rules for name in columns_of(rule)}
    shown = tuple(p for p in passage.new.properties if p.name in named)
    trimmed = replace(passage.new, properties=shown, constraints=rules)
    if isinstance(trimmed, Node | Edge):
        trimmed = _with_types(trimmed, passage.new, bounded)
    for batch in _renewed(passage, sorted(named | bounded), table):
        yield from row_violations(trimmed, batch)


def _with_types(trimmed: Any, whole: Node | Edge, bounded: set[str]) -> Any:
    """Add constrained properties as nullable ones: only their types are needed."""
    have = {one.name for one in trimmed.properties}
    more = [p for p in whole.properties if p.name in bounded - have]
    loose = [replace(p, type=replace(p.type, nullable=True, enum_values=None)) for p in more]
    return replace(trimmed, properties=(*trimmed.properties, *loose))


def _repeated(passage: Passage, rule: Constraint, table: Table) -> Iterator[Violation]:
    """Find two entities with the same tuple."""
    trimmed = replace(passage.new, constraints=(rule,))
    rows = pa.Table.from_batches(list(_renewed(passage, columns_of(rule), table)))
    yield from repeated_records(trimmed, written(passage.new_key, rows, "fresh", records=True))


def _miscounted(edge: Edge, table: Table) -> Iterator[Violation]:
    """Find sources with too few or too many edges; nodes without edges are never counted."""
    parts = [one.column("src") for one in batches(table, ["src"])]
    counted = pa.chunked_array(parts, pa.string()).value_counts()
    counts = np.asarray(counted.field("counts"))
    bad = counts < edge.low
    if edge.high is not None:
        bad |= counts > edge.high
    wrong = counted.filter(pa.array(bad))
    order = pc.sort_indices(wrong.field("values"))
    for at in order.to_pylist():
        source, count = wrong.field("values")[at].as_py(), wrong.field("counts")[at].as_py()
        yield miscounted(edge, source, count, None)


def _dangling(
    edge: Node | Edge, txn: WriteTxn, key: str, tables: Mapping[str, str]
) -> Iterator[Violation]:
    """Find edges whose endpoints are not nodes of the types that the edge type now joins."""
    assert isinstance(edge, Edge)  # noqa: S101 - only edges have endpoints
    known = {name: _ids(txn, tables.get(f"node:{name}")) for name in {edge.source, edge.target}}
    for batch in batches(txn.table(key), ["id", "src", "dst"]):
        for column, name in (("src", edge.source), ("dst", edge.target)):
            lost = batch.filter(pc.invert(pc.is_in(batch.column(column), value_set=known[name])))
            for one in lost.select(["id", column]).to_pylist():
                reason = f"there is no {name} '{one[column]}'"
                yield Violation("endpoint", table_key(edge), one["id"], column, reason)


def _ids(txn: WriteTxn, key: str | None) -> pa.Array:
    """Return the ids of all nodes of a type; a new type has none."""
    parts = [] if key is None else [one.column("id") for one in batches(txn.table(key), ["id"])]
    return pa.chunked_array(parts, pa.string()).combine_chunks()


def _renewed(passage: Passage, names: Sequence[str], table: Table) -> Iterator[pa.RecordBatch]:
    """Read columns in their new form and under their new names, with the id."""
    wanted = {one.field.name: one for one in passage.columns}
    asked = [wanted[name] for name in dict.fromkeys(["id", *names])]
    sources = [one.source for one in asked if one.source is not None]
    for batch in batches(table, list(dict.fromkeys(sources))):
        made = [one.of(batch) for one in asked]
        yield pa.record_batch(made, [one.field.name for one in asked])


def _plain(one: Violation) -> dict[str, Any]:
    column = one.column if one.column is None or isinstance(one.column, str) else _joined(one)
    facts = {
        "type": one.type_key,
        "id": one.entity_id,
        "rule": one.rule,
        "property": column,
        "reason": one.reason or _held(one),
    }
    return {name: value for name, value in facts.items() if value is not None}


def _joined(one: Violation) -> str:
    return f"({', '.join(one.column or ())})"


def _held(one: Violation) -> str | None:
    if one.other_id is None:
        return None
    return f"value '{one.value}' is also held by '{one.other_id}'"
