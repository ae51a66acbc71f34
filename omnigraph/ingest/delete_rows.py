"""Find the stored rows that a load deletes: the rows that its records identify, and the edges of deleted nodes.

A record whose row does not exist is counted rather than rejected, so repeating a deletion has no effect. Endpoints
identify an edge only if it is the only edge with these endpoints.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.lang.schema.catalog import Catalog, EdgeType
from omnigraph.lang.schema.ir import SchemaIR
from omnigraph.rules.delta import Delta, Positions, TableDelta, as_single_array
from omnigraph.rules.lookup import Lookup
from omnigraph.rules.violation import Violation
from omnigraph.storage.arrow import table_key, table_schema
from omnigraph.storage.blobs import row_schema
from omnigraph.values.table_key import TableKey

from .partial_records import PartialRows

_ENDPOINTS = ("src", "dst")
_RECORD = "#record"  # the position of a record; a column name cannot contain `#`


@dataclass(slots=True)
class Deletion:
    """The stored rows to remove, by table, and the number of rows that were not found, by type."""

    removed_rows: dict[TableKey, pa.Table] = field(default_factory=dict)
    missing: dict[str, int] = field(default_factory=dict)

    def add(self, key: TableKey, rows: pa.Table) -> None:
        """Add rows from a table, without duplicates."""
        rows = rows.cast(pa.schema([pa.field(column.name, column.type) for column in rows.schema]))
        known_rows = self.removed_rows.get(key)
        all_rows = rows if known_rows is None else pa.concat_tables([known_rows, rows])
        ids = as_single_array(all_rows["id"])
        self.removed_rows[key] = all_rows.take(pc.index_in(ids.unique(), value_set=ids))

    def to_delta(self, ir: SchemaIR) -> Delta:
        """Convert the deletion to table changes."""
        return Delta(
            {key: _removal(ir, key, rows) for key, rows in sorted(self.removed_rows.items()) if rows.num_rows},
            edges_cascaded=True,
        )


def find_deleted_rows(
    catalog: Catalog, records: Mapping[TableKey, PartialRows], lookup: Lookup
) -> tuple[Deletion, list[Violation]]:
    """Return the stored rows to delete, including the edges of deleted nodes, and the ambiguous records."""
    deletion = Deletion()
    violations: list[Violation] = []
    for key, partial_rows in records.items():
        missing_count = _add_rows_by_id(deletion, partial_rows, lookup)
        if partial_rows.ids.null_count:
            missing_pairs, ambiguous = _add_edges_by_endpoints(deletion, partial_rows, lookup)
            missing_count += missing_pairs
            violations += ambiguous
        if missing_count:
            deletion.missing[key.type_name] = missing_count
    for edge_type in catalog.edges:
        for edges in _find_edges_of_deleted(edge_type, deletion, lookup):
            deletion.add(TableKey.edge(edge_type.name), edges)
    return deletion, violations


def _add_rows_by_id(deletion: Deletion, partial_rows: PartialRows, lookup: Lookup) -> int:
    """Add the stored rows that records identify by id; return the number of records whose row does not exist."""
    key, named_ids = table_key(partial_rows.entity_type), partial_rows.ids.drop_null().unique()
    if not len(named_ids):
        return 0
    rows = lookup.find(key, {"id": named_ids}, _identity_columns(key), with_row_ids=True)
    deletion.add(key, rows)
    return len(named_ids) - int(rows.num_rows)


def _add_edges_by_endpoints(
    deletion: Deletion, partial_rows: PartialRows, lookup: Lookup
) -> tuple[int, list[Violation]]:
    """Add the edges that records identify by endpoints; return how many are missing, and the ambiguous records."""
    key, pairs = table_key(partial_rows.entity_type), _endpoint_pairs(partial_rows)
    wanted_values = {name: as_single_array(pairs[name]).unique() for name in _ENDPOINTS}
    candidates = lookup.find(key, wanted_values, _identity_columns(key), with_row_ids=True)
    edges = candidates.join(pairs, list(_ENDPOINTS), join_type="inner", use_threads=False)
    edge_counts = np.bincount(edges[_RECORD].to_numpy(), minlength=pairs.num_rows)
    deletion.add(key, edges.select(candidates.column_names))
    return int((edge_counts == 0).sum()), list(_ambiguous_records(partial_rows, pairs, edge_counts))


def _identity_columns(key: TableKey) -> list[str]:
    return ["id", *(_ENDPOINTS if key.is_edge else ())]


def _endpoint_pairs(partial_rows: PartialRows) -> pa.Table:
    """Return the distinct endpoint pairs that identify edges, each with the line of its first record."""
    is_pair = pc.is_null(partial_rows.ids)
    pairs = partial_rows.rows.filter(is_pair).select(_ENDPOINTS)
    lines = partial_rows.input_lines[is_pair.to_numpy(zero_copy_only=False)]
    grouped = pairs.append_column("#line", pa.array(lines)).group_by(list(_ENDPOINTS), use_threads=False)
    distinct = grouped.aggregate([("#line", "min")])
    return distinct.append_column(_RECORD, pa.array(np.arange(distinct.num_rows, dtype=np.int64)))


def _ambiguous_records(partial_rows: PartialRows, pairs: pa.Table, edge_counts: Positions) -> Iterator[Violation]:
    for position in np.flatnonzero(edge_counts > 1):
        pair = {name: pairs[name][int(position)].as_py() for name in _ENDPOINTS}
        edge_text = f"'{pair['src']}' -> '{pair['dst']}'"
        yield Violation(
            "ambiguous",
            table_key(partial_rows.entity_type),
            reason=f"the endpoints do not identify a single edge: {edge_counts[position]} "
            f"{partial_rows.entity_type.name} edges go from '{pair['src']}' to '{pair['dst']}'",
            input_line=pairs["#line_min"][int(position)].as_py(),
            edge_text=edge_text,
            hint="specify the id of each edge to delete",
        )


def _find_edges_of_deleted(edge_type: EdgeType, deletion: Deletion, lookup: Lookup) -> Iterator[pa.Table]:
    """Yield the stored edges of deleted nodes; an edge occurs once for each deleted endpoint."""
    for column, node_name in zip(_ENDPOINTS, (edge_type.source, edge_type.target), strict=True):
        deleted_nodes = deletion.removed_rows.get(TableKey.node(node_name))
        if deleted_nodes is not None and deleted_nodes.num_rows:
            node_ids = as_single_array(deleted_nodes["id"])
            edge_key = TableKey.edge(edge_type.name)
            yield lookup.find(edge_key, {column: node_ids}, ["id", *_ENDPOINTS], with_row_ids=True)


def _removal(ir: SchemaIR, key: TableKey, rows: pa.Table) -> TableDelta:
    entity_type = ir.catalog.node(key.type_name) if not key.is_edge else ir.catalog.edge(key.type_name)
    assert entity_type is not None  # noqa: S101 - the records were read with this schema
    no_rows = row_schema(table_schema(ir, entity_type)).empty_table()
    no_positions = np.zeros(0, np.int64)
    return TableDelta(key, no_rows, no_positions, no_positions, np.zeros(0, np.uint64), removed_rows=rows)
