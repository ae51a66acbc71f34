"""Validate a branch's rows against its schema, using the same rules as every write.

Each table is read once, in batches. Only ids, endpoints, and the columns used in keys and unique constraints are kept
in memory. The rules themselves are defined in `rules`.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.history.commit import TableEntry
from omnigraph.history.schemas import StoredSchema
from omnigraph.ingest.assign_ids import key_ids
from omnigraph.lang.schema.catalog import EdgeType, Key, NodeType, Unique
from omnigraph.rules.cardinality import cardinality_violation
from omnigraph.rules.delta import build_table_delta
from omnigraph.rules.endpoints import dangling_violation, endpoint_columns
from omnigraph.rules.row_rules import row_violations
from omnigraph.rules.unique import repeated_records
from omnigraph.rules.violation import Violation
from omnigraph.storage.arrow import table_key, table_schema
from omnigraph.storage.find_rows import read_batches
from omnigraph.storage.store import Store
from omnigraph.storage.table import Table, open_table
from omnigraph.values.table_key import TableKey

from .finding import FindingKind, IntegrityFinding

_KINDS_BY_RULE: Mapping[str, FindingKind] = {
    "key": "key",
    "@unique": "unique",
    "endpoint": "endpoint",
    "@card": "cardinality",
}
_CORRECTION_HINT = "correct the entity with an update or a load; Omnigraph itself never writes such data"


@dataclass(slots=True)
class TableValidator:
    """Validates the tables in one state. `node_ids` contains the ids from the node tables read so far."""

    store: Store
    contract: StoredSchema
    tables: Mapping[TableKey, TableEntry]
    node_ids: dict[str, pa.Array] = field(default_factory=dict)
    row_count: int = 0

    def check_type(self, schema_type: NodeType | EdgeType) -> Iterator[IntegrityFinding]:
        """Report the faults in one table and, for an edge table, in its edges' endpoints."""
        type_key = table_key(schema_type)
        entry = self.tables.get(type_key)
        if entry is None:
            reason = "the schema has this type, but the branch has no table for it"
            yield IntegrityFinding("schema", reason, type_key=type_key)
            return
        table = open_table(self.store, entry.location, entry.lance_version)
        column_findings = list(_check_columns(self.contract, schema_type, table, entry))
        yield from column_findings
        if column_findings:
            return  # the rules need these columns
        for violation in self._find_violations(schema_type, table, entry):
            yield (violation if isinstance(violation, IntegrityFinding) else violation_finding(violation))

    def _find_violations(
        self, schema_type: NodeType | EdgeType, table: Table, entry: TableEntry
    ) -> Iterator[Violation | IntegrityFinding]:
        kept_batches: list[pa.RecordBatch] = []
        kept_columns = _columns_to_keep(schema_type)
        for batch in read_batches(table, table.schema.names):
            yield from row_violations(schema_type, batch)
            kept_batches.append(batch.select(kept_columns))
        kept_rows = pa.Table.from_batches(kept_batches) if kept_batches else _empty_table(table, kept_columns)
        self.row_count += kept_rows.num_rows
        if kept_rows.num_rows != entry.row_count:
            reason = (
                f"the branch state records a row count of {entry.row_count}, but the table has {kept_rows.num_rows}"
            )
            yield IntegrityFinding("count", reason, type_key=entry.key)
        yield from _find_repeated_ids(entry.key, kept_rows)
        yield from _find_repeated_values(schema_type, kept_rows)
        yield from _check_key_ids(self.contract, schema_type, kept_rows)
        if isinstance(schema_type, NodeType):
            self.node_ids[schema_type.name] = kept_rows["id"].combine_chunks()
        else:
            yield from self._find_dangling_edges(schema_type, kept_rows)
            yield from _find_miscounted_sources(schema_type, kept_rows)

    def _find_dangling_edges(self, edge_type: EdgeType, edge_rows: pa.Table) -> Iterator[Violation]:
        for endpoint in endpoint_columns(edge_type):
            node_ids = self.node_ids.get(endpoint[2].type_name)
            if node_ids is None:
                continue  # the node table could not be read, which is reported elsewhere
            dangling_rows = edge_rows.filter(pc.invert(pc.is_in(edge_rows[endpoint[1]], value_set=node_ids)))
            for edge_row in dangling_rows.select(["id", "src", "dst"]).to_pylist():
                yield dangling_violation(self.contract.ir.catalog, endpoint, edge_row, None)


def violation_finding(violation: Violation) -> IntegrityFinding:
    """Convert a rule violation to a finding."""
    finding_kind: FindingKind = _KINDS_BY_RULE.get(violation.rule, "value")
    column_list = "" if violation.column is None else f" {', '.join(_column_names(violation.column))}"
    reason = violation.reason or _describe_duplicate(violation)
    description = f"{violation.rule}{column_list}: {reason}"
    return IntegrityFinding(
        finding_kind, description, type_key=violation.type_key, entity_id=violation.entity_id, hint=_CORRECTION_HINT
    )


def _column_names(column: str | tuple[str, ...]) -> tuple[str, ...]:
    return (column,) if isinstance(column, str) else column


def _describe_duplicate(violation: Violation) -> str:
    return f"'{violation.value}' also belongs to '{violation.conflicting_id}'"


def _check_columns(
    contract: StoredSchema, schema_type: NodeType | EdgeType, table: Table, entry: TableEntry
) -> Iterator[IntegrityFinding]:
    """Check that the columns match the schema, and that no field id exceeds the recorded maximum."""
    expected_schema = table_schema(contract.ir, schema_type)
    for expected_field in expected_schema:
        position = table.schema.get_field_index(expected_field.name)
        if position < 0:
            yield IntegrityFinding("field", f"column {expected_field.name} is missing", type_key=entry.key)
        elif not _has_same_type(table.schema.field(position), expected_field):
            reason = (
                f"column '{expected_field.name}' has type {table.schema.field(position).type},"
                f" expected {expected_field.type}"
            )
            yield IntegrityFinding("field", reason, type_key=entry.key)
    if table.highest_field_id > entry.max_field_id:
        reason = (
            f"field id {table.highest_field_id} is in use, but the highest recorded field id is {entry.max_field_id}"
        )
        yield IntegrityFinding("field", reason, type_key=entry.key)


def _has_same_type(actual_field: pa.Field, expected_field: pa.Field) -> bool:
    has_blob = pa.types.is_struct(actual_field.type) or pa.types.is_struct(expected_field.type)
    return bool(has_blob or actual_field.type.equals(expected_field.type))


def _columns_to_keep(schema_type: NodeType | EdgeType) -> list[str]:
    endpoint_names = ["src", "dst"] if isinstance(schema_type, EdgeType) else []
    constrained_columns = [rule.columns for rule in schema_type.constraints if isinstance(rule, Key | Unique)]
    return list(
        dict.fromkeys(
            ["id", *endpoint_names, *(column for column_names in constrained_columns for column in column_names)]
        )
    )


def _empty_table(table: Table, column_names: list[str]) -> pa.Table:
    return pa.schema([table.schema.field(column) for column in column_names]).empty_table()


def _find_repeated_ids(type_key: TableKey, rows: pa.Table) -> Iterator[IntegrityFinding]:
    if len(pc.unique(rows["id"])) == rows.num_rows:
        return
    id_counts = pc.value_counts(rows["id"])
    for repeated_id in id_counts.filter(pc.greater(id_counts.field("counts"), 1)).to_pylist():
        reason = f"{repeated_id['counts']} rows have this id"
        yield IntegrityFinding("key", reason, type_key=type_key, entity_id=repeated_id["values"], hint=_CORRECTION_HINT)


def _find_repeated_values(schema_type: NodeType | EdgeType, rows: pa.Table) -> Iterator[Violation]:
    """Report entities that share a unique value. Keys are not checked here, because ids have already been checked."""
    unique_rules = tuple(rule for rule in schema_type.constraints if isinstance(rule, Unique))
    if unique_rules:
        unique_only = replace(schema_type, constraints=unique_rules)
        delta = build_table_delta(table_key(schema_type), rows, "fresh", from_records=True)
        yield from repeated_records(unique_only, delta)


def _check_key_ids(
    contract: StoredSchema, schema_type: NodeType | EdgeType, rows: pa.Table
) -> Iterator[IntegrityFinding]:
    if not schema_type.key or not rows.num_rows:
        return
    type_key, expected_ids = table_key(schema_type), key_ids(contract.ir, schema_type, rows, lambda *_: None)
    actual_ids = rows["id"].combine_chunks()
    for position in np.flatnonzero(_to_numpy_mask(pc.not_equal(actual_ids, expected_ids))):
        reason = f"the key requires the id '{expected_ids[int(position)].as_py()}'"
        entity_id = actual_ids[int(position)].as_py()
        yield IntegrityFinding("key", reason, type_key=type_key, entity_id=entity_id, hint=_CORRECTION_HINT)


def _to_numpy_mask(mask: pa.Array) -> Any:
    return pc.fill_null(mask, True).to_numpy(zero_copy_only=False)


def _find_miscounted_sources(edge_type: EdgeType, edge_rows: pa.Table) -> Iterator[Violation]:
    """Report source nodes with too few or too many edges. Nodes without edges are not checked."""
    if (edge_type.min_cardinality == 0 and edge_type.max_cardinality is None) or not edge_rows.num_rows:
        return
    edge_counts = pc.value_counts(edge_rows["src"])
    for source_count in edge_counts.to_pylist():
        edge_count = source_count["counts"]
        if edge_count < edge_type.min_cardinality or (
            edge_type.max_cardinality is not None and edge_count > edge_type.max_cardinality
        ):
            yield cardinality_violation(edge_type, source_count["values"], edge_count, None)
