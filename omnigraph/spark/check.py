"""Check the rules that need all records of a load, as Spark joins over the reports of its tasks.

Covers duplicates, uniqueness, endpoints and cardinality, with the semantics defined in `rules`.
Spark finds the records that break a rule; the driver turns them into violations.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import groupby, pairwise
from typing import TYPE_CHECKING, Any

from omnigraph.history.snapshot import Snapshot
from omnigraph.lang.schema.catalog import EdgeType, NodeType
from omnigraph.lang.schema.type_names import type_for_key
from omnigraph.rules.cardinality import cardinality_violation
from omnigraph.rules.endpoints import EndpointColumn, dangling_violation, endpoint_columns
from omnigraph.rules.violation import Violation
from omnigraph.values.table_key import TableKey

from .endpoint_lookup import EndpointLookup, NodeIdSource, endpoint_columns_of, find_lost_endpoints
from .report_rows import KEY_ROWS, REPLACED_EDGE_ROWS, TUPLE_ROWS
from .rule_inputs import key_columns, make_key_rows, make_tuple_rows, tuple_columns
from .scan import scan
from .stage import LoadJob
from .staged_fragments import StagedFragment, map_fragment_rows, map_staged_fragments
from .task_reports import ExistingIdReport, HeldValueReport, TaskReport, select_reports
from .unique_tuples import format_tuple, unique_groups

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


_LOOKUP_RATIO = (
    4  # with this many times more stored nodes than loaded edges, look ids up instead of reading
)


@dataclass(frozen=True)
class LoadCheckContext:
    """Everything the rules read: the reports of tasks, and the base snapshot.

    `collected` are the reports that the driver collected from `task_reports`.
    """

    spark: "SparkSession"
    load_id: str  # id of the load
    load_job: LoadJob
    snapshot: Snapshot
    task_reports: "DataFrame"
    collected: Sequence[TaskReport]
    input_keys: frozenset[TableKey]  # table keys that the input names
    staged_fragments: Mapping[TableKey, Sequence[StagedFragment]]  # written fragments by table key
    reported_keys: frozenset[TableKey]  # table keys with records that exist only in task reports
    unwritten_keys: frozenset[TableKey]  # table keys with records that are in no fragment

    @property
    def replaces_types(self) -> bool:
        """Whether the load replaces all rows of the types in the input."""
        return self.load_job.mode == "overwrite"

    def entity_type(self, type_number: int) -> NodeType | EdgeType:
        """Return a type by its number in the task reports."""
        return type_for_key(self.load_job.schema_ir.catalog, self.load_job.table_keys[type_number])

    def key_rows(self, *table_keys: TableKey) -> "DataFrame":
        """Ids, endpoints and positions of the records of some types, with the columns of `KEY_ROWS`.

        Generated ids are null: no other record can refer to them.
        """
        frames = []
        if self.reported_keys & set(table_keys):
            type_numbers = [self.load_job.table_keys.index(key) for key in table_keys]
            frames.append(KEY_ROWS.select_from(self.task_reports, type_numbers))
        frames.append(
            self._staged_rows(
                table_keys, key_columns, make_key_rows(self.load_job.table_keys), KEY_ROWS.ddl
            )
        )
        return reduce(lambda a, b: a.unionAll(b), frames)

    def tuple_rows(self) -> "DataFrame":
        """The `@unique` tuples of all records, with the columns of `TUPLE_ROWS`."""
        reported_tuples = TUPLE_ROWS.select_from(self.task_reports)
        unique_keys = [
            key
            for key in self.input_keys
            if unique_groups(type_for_key(self.load_job.schema_ir.catalog, key))
        ]
        make_rows = make_tuple_rows(self.load_job.schema_ir, self.load_job.table_keys)
        return reported_tuples.unionAll(
            self._staged_rows(
                unique_keys, tuple_columns(self.load_job.schema_ir), make_rows, TUPLE_ROWS.ddl
            )
        )

    def _staged_rows(
        self, table_keys: Sequence[TableKey], select_columns: Any, make_rows: Any, ddl: str
    ) -> "DataFrame":
        fragments = [
            fragment
            for key in table_keys
            for fragment in self.staged_fragments.get(key, ())
            if select_columns(fragment)
        ]
        read_fragment = map_fragment_rows(self.load_job.pinned_graph, select_columns, make_rows)
        return map_staged_fragments(self.spark, fragments, read_fragment, ddl)

    def stored_rows(self, table_key: TableKey, columns: Sequence[str]) -> "DataFrame":
        """Read the stored rows of a type."""
        return scan(self.spark, self.snapshot, table_key, columns)

    def has_stored_rows(self, table_key: TableKey) -> bool:
        """Whether a type has stored rows."""
        return table_key in self.load_job.filled_keys


def find_set_violations(context: LoadCheckContext) -> tuple[list[Violation], frozenset[int]]:
    """Return the violations that need all records, and the positions of replaced records."""
    violations: list[Violation] = []
    lost_endpoints, duplicate_free_keys = _find_lost_endpoints(context)
    repeated_ids = _find_repeated_ids(context, context.input_keys - duplicate_free_keys)
    violations += _repeated_id_violations(context, repeated_ids)
    replaced_positions = frozenset(
        position for positions in repeated_ids.values() for position in positions[:-1]
    )
    violations += _repeated_tuple_violations(context)
    violations += [
        report.violation
        for report in select_reports(context.collected, ExistingIdReport)
        if report.violation.input_line not in replaced_positions
    ]
    violations += _held_value_violations(context, replaced_positions)
    violations += [
        finding for finding in lost_endpoints if finding.input_line not in replaced_positions
    ]
    violations += _dangling_violations(context, replaced_positions)
    violations += _orphan_violations(context)
    violations += _cardinality_violations(context, replaced_positions)
    return violations, replaced_positions


PositionsById = dict[tuple[int, str], list[int]]


def _find_repeated_ids(context: LoadCheckContext, table_keys: frozenset[TableKey]) -> PositionsById:
    """Ids that several records have, with their positions in order."""
    if not table_keys:
        return {}
    id_rows = (
        context.key_rows(*sorted(table_keys)).where("id is not null").select("type", "id", "spot")
    )
    return {
        (type_number, entity_id): positions
        for (type_number, entity_id), positions in _find_duplicate_groups(id_rows, ["type", "id"])
    }


def _find_duplicate_groups(
    rows: "DataFrame", group_columns: list[str]
) -> list[tuple[tuple[Any, ...], list[int]]]:
    """Groups of more than one row, with their positions.

    Only hashes are exchanged and counted; rows with equal hashes are then compared by value.
    """
    from pyspark.sql import functions as f

    hashed_rows = rows.withColumn("h", f.xxhash64(*group_columns))
    repeated_hashes = hashed_rows.groupBy("h").count().where("count > 1").select("h").toArrow()
    if not repeated_hashes.num_rows:
        return []
    hash_frame = f.broadcast(rows.sparkSession.createDataFrame(repeated_hashes))
    matches = (
        hashed_rows.join(hash_frame, "h", "left_semi").select(*group_columns, "spot").toArrow()
    )
    sorted_rows = sorted(
        zip(*(matches[column].to_pylist() for column in [*group_columns, "spot"]), strict=True)
    )
    positions_by_group = [
        (group_values, [group_row[-1] for group_row in group_rows])
        for group_values, group_rows in groupby(sorted_rows, lambda sorted_row: sorted_row[:-1])
    ]
    return [
        (group_values, positions)
        for group_values, positions in positions_by_group
        if len(positions) > 1
    ]


def _repeated_id_violations(
    context: LoadCheckContext, repeated: PositionsById
) -> Iterator[Violation]:
    for (type_number, entity_id), positions in repeated.items():
        entity_type, table_key = (
            context.entity_type(type_number),
            context.load_job.table_keys[type_number],
        )
        if isinstance(entity_type, NodeType) and entity_type.key is not None:
            key_property = entity_type.key[0] if len(entity_type.key) == 1 else entity_type.key
            for position in positions[1:]:
                yield Violation(
                    "@unique", table_key, entity_id, key_property, input_line=position, value=entity_id, conflicting_id=entity_id,
                    conflicting_line=positions[0],
                )  # fmt: skip
        elif context.load_job.mode != "merge":
            for previous_position, position in pairwise(positions):
                yield Violation(
                    "key",
                    table_key,
                    entity_id,
                    input_line=position,
                    conflicting_line=previous_position,
                )


def _repeated_tuple_violations(context: LoadCheckContext) -> Iterator[Violation]:
    if not any(
        unique_groups(type_for_key(context.load_job.schema_ir.catalog, key))
        for key in context.input_keys
    ):
        return
    tuple_rows = context.tuple_rows()
    group_columns = ["type", "grp", "value"]
    ids_by_position = _read_ids_at(
        tuple_rows, duplicates := _find_duplicate_groups(tuple_rows, group_columns)
    )
    for (type_number, group_number, tuple_text), positions in duplicates:
        entity_type = context.entity_type(type_number)
        unique_columns = unique_groups(entity_type)[group_number]
        for position in positions[1:]:
            yield Violation(
                "@unique", context.load_job.table_keys[type_number], ids_by_position[position], _column_or_columns(unique_columns), input_line=position,
                value=format_tuple(tuple_text, unique_columns), conflicting_id=ids_by_position[positions[0]], conflicting_line=positions[0],
            )  # fmt: skip


def _read_ids_at(
    tuple_rows: "DataFrame", duplicates: list[tuple[tuple[Any, ...], list[int]]]
) -> dict[int, str]:
    """Return the ids of the records at the positions of duplicate groups."""
    positions = [position for _, group_positions in duplicates for position in group_positions]
    if not positions:
        return {}
    position_ids = tuple_rows.where(tuple_rows.spot.isin(positions)).select("spot", "id").toArrow()
    return dict(zip(position_ids["spot"].to_pylist(), position_ids["id"].to_pylist(), strict=True))


def _column_or_columns(columns: tuple[str, ...]) -> str | tuple[str, ...]:
    return columns[0] if len(columns) == 1 else columns


def _held_value_violations(
    context: LoadCheckContext, replaced_positions: frozenset[int]
) -> list[Violation]:
    """Unique values held by a stored entity that the load does not replace."""
    violations = [
        report.violation
        for report in select_reports(context.collected, HeldValueReport)
        if report.violation.input_line not in replaced_positions
    ]
    if not violations:
        return []
    holder_ids = sorted({violation.conflicting_id or "" for violation in violations})
    key_rows = context.key_rows(*sorted({violation.type_key for violation in violations}))
    loaded_holders = key_rows.where(key_rows.id.isin(holder_ids)).select("type", "id").toArrow()
    holder_keys = (
        context.load_job.table_keys[type_number]
        for type_number in loaded_holders["type"].to_pylist()
    )
    replaced_holders = set(zip(holder_keys, loaded_holders["id"].to_pylist(), strict=True))
    return [
        violation
        for violation in violations
        if (violation.type_key, violation.conflicting_id) not in replaced_holders
    ]


def _drop_replaced(rows: "DataFrame", replaced_positions: frozenset[int]) -> "DataFrame":
    return rows.where(~rows.spot.isin(sorted(replaced_positions))) if replaced_positions else rows


def _find_lost_endpoints(context: LoadCheckContext) -> tuple[list[Violation], frozenset[TableKey]]:
    """Look up edges without a node in an index of ids; also return types without repeated ids."""
    edge_types = {
        TableKey.edge(edge_type.name): edge_type
        for edge_type in context.load_job.schema_ir.catalog.edges
        if TableKey.edge(edge_type.name) in context.input_keys
    }
    columns_by_edge = {
        edge_key: [
            (column, node_key)
            for column, node_key in endpoint_columns_of(item)
            if node_key not in context.unwritten_keys
        ]
        for edge_key, item in edge_types.items()
    }
    id_sources = {
        node_key: _node_id_source(context, node_key)
        for endpoints in columns_by_edge.values()
        for _, node_key in endpoints
    }
    edge_fragments = [
        item for edge_key in edge_types for item in context.staged_fragments.get(edge_key, ())
    ]
    reported_edges = sorted(context.reported_keys & set(edge_types))
    if not id_sources or not (edge_fragments or reported_edges):
        return [], frozenset()
    lookup = EndpointLookup(
        context.load_id, context.load_job.pinned_graph, id_sources, columns_by_edge
    )
    reported_rows = context.key_rows(*reported_edges) if reported_edges else None
    lost_rows, types_with_repeats = find_lost_endpoints(
        context.spark, lookup, context.load_job.table_keys, edge_fragments, reported_rows
    )
    violations = [
        _endpoint_violation(context, edge_types[item["edge"]], item) for item in lost_rows
    ]
    return violations, frozenset(
        context.input_keys & set(id_sources)
    ) - types_with_repeats - context.reported_keys


def _endpoint_violation(
    context: LoadCheckContext, edge_type: EdgeType, lost_row: dict[str, Any]
) -> Violation:
    endpoint = next(
        candidate for candidate in endpoint_columns(edge_type) if candidate[1] == lost_row["side"]
    )
    return dangling_violation(
        context.load_job.schema_ir.catalog, endpoint, lost_row, lost_row["spot"]
    )


def _node_id_source(context: LoadCheckContext, node_key: TableKey) -> NodeIdSource:
    """Where to find the ids that a node type has after the load."""
    fragments = context.staged_fragments.get(node_key, ())
    is_replaced = context.replaces_types and node_key in context.input_keys
    stored_count = 0 if is_replaced else context.snapshot.tables[node_key].row_count
    edge_count = sum(
        fragment.row_count
        for type_fragments in context.staged_fragments.values()
        for fragment in type_fragments
        if fragment.table_key.is_edge
    )
    looks_up_stored = stored_count > edge_count * _LOOKUP_RATIO
    return NodeIdSource(
        node_key, fragments, 0 if looks_up_stored else stored_count, looks_up_stored
    )


def _dangling_violations(
    context: LoadCheckContext, replaced_positions: frozenset[int]
) -> Iterator[Violation]:
    """Edges without a node, for node types that have records in no fragment."""
    edge_types = [
        edge_type
        for edge_type in context.load_job.schema_ir.catalog.edges
        if TableKey.edge(edge_type.name) in context.input_keys
    ]
    endpoints = [endpoint for edge_type in edge_types for endpoint in endpoint_columns(edge_type)]
    for unwritten_key in sorted(
        {node_key for _, _, node_key in endpoints} & context.unwritten_keys
    ):
        endpoints_at_key = [endpoint for endpoint in endpoints if endpoint[2] == unwritten_key]
        missing_ids = _find_missing_ids(
            context, unwritten_key, endpoints_at_key, replaced_positions
        )
        if missing_ids:
            for edge, column, _ in endpoints_at_key:
                yield from _violations_at_missing_nodes(
                    context, edge, column, unwritten_key, missing_ids, replaced_positions
                )


def _find_missing_ids(
    context: LoadCheckContext,
    node_key: TableKey,
    endpoints: list[EndpointColumn],
    replaced_positions: frozenset[int],
) -> list[str]:
    """Ids that written edges use and that no node has after the load."""
    used_ids = [
        _drop_replaced(
            context.key_rows(TableKey.edge(edge_type.name)), replaced_positions
        ).selectExpr(f"{column} as id")
        for edge_type, column, _ in endpoints
    ]
    existing_ids = []
    if node_key in context.input_keys:
        existing_ids.append(context.key_rows(node_key).where("id is not null").select("id"))
    if context.has_stored_rows(node_key) and not (
        context.replaces_types and node_key in context.input_keys
    ):
        existing_ids.append(context.stored_rows(node_key, ["id"]))
    missing_frame = reduce(lambda a, b: a.unionAll(b), used_ids).distinct()
    if existing_ids:
        missing_frame = missing_frame.join(
            reduce(lambda a, b: a.unionAll(b), existing_ids), "id", "left_anti"
        )
    missing_ids: list[str] = missing_frame.toArrow()["id"].to_pylist()
    return missing_ids


def _violations_at_missing_nodes(
    context: LoadCheckContext,
    edge_type: EdgeType,
    column: str,
    node_key: TableKey,
    missing_ids: list[str],
    replaced_positions: frozenset[int],
) -> Iterator[Violation]:
    edge_rows = _drop_replaced(context.key_rows(TableKey.edge(edge_type.name)), replaced_positions)
    dangling_rows = (
        edge_rows.where(edge_rows[column].isin(missing_ids))
        .select("id", "src", "dst", "spot")
        .toArrow()
    )
    for dangling_row in dangling_rows.to_pylist():
        yield dangling_violation(
            context.load_job.schema_ir.catalog,
            (edge_type, column, node_key),
            dangling_row,
            dangling_row["spot"],
        )


def _orphan_violations(context: LoadCheckContext) -> Iterator[Violation]:
    """Stored edges that remain although an overwrite removes their node."""
    if not context.replaces_types:
        return
    for edge_type in context.load_job.schema_ir.catalog.edges:
        edge_key = TableKey.edge(edge_type.name)
        for _, column, node_key in endpoint_columns(edge_type):
            if edge_key in context.input_keys or node_key not in context.input_keys:
                continue
            if context.has_stored_rows(edge_key) and context.has_stored_rows(node_key):
                yield from _stored_edges_without_node(context, edge_key, column, node_key)


def _stored_edges_without_node(
    context: LoadCheckContext, edge_key: TableKey, column: str, node_key: TableKey
) -> Iterator[Violation]:
    retained_ids = context.key_rows(node_key).where("id is not null").selectExpr(f"id as {column}")
    orphaned_rows = (
        context.stored_rows(edge_key, ["id", column])
        .join(retained_ids, column, "left_anti")
        .toArrow()
    )
    for orphan in orphaned_rows.to_pylist():
        reason = f"{column} '{orphan[column]}' not found in {node_key.type_name}"
        yield Violation("endpoint", edge_key, orphan["id"], column, reason, value=orphan[column])


def _cardinality_violations(
    context: LoadCheckContext, replaced_positions: frozenset[int]
) -> Iterator[Violation]:
    bounded_edges = {
        edge_key: edge_type
        for edge_type in context.load_job.schema_ir.catalog.edges
        if (edge_key := TableKey.edge(edge_type.name)) in context.input_keys
        and (edge_type.min_cardinality > 0 or edge_type.max_cardinality is not None)
    }
    edges_only_in_load = {
        edge_key: edge_type
        for edge_key, edge_type in bounded_edges.items()
        if not context.has_stored_rows(edge_key) and not context.replaces_types
    }
    if edges_only_in_load:
        yield from _count_loaded_edges(context, edges_only_in_load, replaced_positions)
    for edge_key, edge_type in bounded_edges.items():
        if edge_key not in edges_only_in_load:
            yield from _count_all_edges(context, edge_type, replaced_positions)


def _count_loaded_edges(
    context: LoadCheckContext,
    edge_types: Mapping[TableKey, EdgeType],
    replaced_positions: frozenset[int],
) -> Iterator[Violation]:
    """Cardinality violations of types without stored edges: only loaded edges count."""
    from pyspark.sql import functions as f

    edges_by_number = {
        context.load_job.table_keys.index(edge_key): edge_type
        for edge_key, edge_type in edge_types.items()
    }
    grouped_rows = _drop_replaced(context.key_rows(*edge_types), replaced_positions).groupBy(
        "type", "src"
    )
    edge_counts = grouped_rows.agg(f.count("*").alias("n"), f.min("spot").alias("spot"))
    outside_bounds = " or ".join(
        f"(type = {type_number} and ({_outside_bounds_sql(edge_type)}))"
        for type_number, edge_type in edges_by_number.items()
    )
    for count_row in edge_counts.where(outside_bounds).toArrow().to_pylist():
        yield cardinality_violation(
            edges_by_number[count_row["type"]], count_row["src"], count_row["n"], count_row["spot"]
        )


def _outside_bounds_sql(edge_type: EdgeType) -> str:
    upper_bound = (
        "" if edge_type.max_cardinality is None else f" or n > {int(edge_type.max_cardinality)}"
    )
    return f"n < {int(edge_type.min_cardinality)}{upper_bound}"


def _count_all_edges(
    context: LoadCheckContext, edge_type: EdgeType, replaced_positions: frozenset[int]
) -> Iterator[Violation]:
    """Sources with too few or too many edges after the load, stored edges included."""
    from pyspark.sql import functions as f

    edge_key = TableKey.edge(edge_type.name)
    loaded_rows = _drop_replaced(context.key_rows(edge_key), replaced_positions)
    counted_rows = loaded_rows.select("src", "spot", f.lit(1).alias("n"))
    touched_sources = [loaded_rows.select("src")]
    null_position = f.lit(None).cast("bigint")
    if context.has_stored_rows(edge_key):
        stored_edges = context.stored_rows(edge_key, ["id", "src"])
        if context.replaces_types:
            touched_sources.append(stored_edges.select("src"))
        else:
            loaded_ids = loaded_rows.where("id is not null").select("id")
            retained_edges = stored_edges.join(loaded_ids, "id", "left_anti")
            counted_rows = counted_rows.unionAll(
                retained_edges.select("src", null_position.alias("spot"), f.lit(1).alias("n"))
            )
            edge_number = context.load_job.table_keys.index(edge_key)
            replaced_edges = REPLACED_EDGE_ROWS.select_from(context.task_reports, [edge_number])
            touched_sources.append(replaced_edges.select("src"))
    sources = reduce(lambda a, b: a.unionAll(b), touched_sources).distinct()
    source_key = TableKey.node(edge_type.source)
    if context.replaces_types and source_key in context.input_keys:
        sources = sources.join(
            context.key_rows(source_key).selectExpr("id as src"), "src", "left_semi"
        )
    grouped_counts = sources.join(counted_rows, "src", "left").groupBy("src")
    edge_counts = grouped_counts.agg(
        f.coalesce(f.sum("n"), f.lit(0)).alias("n"), f.min("spot").alias("spot")
    )
    for count_row in edge_counts.where(_outside_bounds_sql(edge_type)).toArrow().to_pylist():
        yield cardinality_violation(edge_type, count_row["src"], count_row["n"], count_row["spot"])
