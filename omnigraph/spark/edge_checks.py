"""Check the endpoints and cardinality of loaded edges, using Spark joins or index lookups."""

from collections.abc import Iterator, Mapping
from functools import reduce
from typing import Any

from omnigraph.lang.schema.catalog import EdgeType
from omnigraph.rules.cardinality import cardinality_violation
from omnigraph.rules.endpoints import EndpointColumn, dangling_violation, endpoint_columns
from omnigraph.rules.violation import Violation
from omnigraph.spark.check_context import LoadCheckContext, drop_replaced
from omnigraph.spark.endpoint_lookup import EndpointLookup, NodeIdSource, endpoint_columns_of, find_lost_endpoints
from omnigraph.spark.report_rows import REPLACED_EDGE_ROWS
from omnigraph.values.table_key import TableKey

_LOOKUP_RATIO = 4  # if there are more than four stored nodes per loaded edge, ids are looked up instead of read


def lost_endpoint_violations(context: LoadCheckContext) -> tuple[list[Violation], frozenset[TableKey]]:
    """Look up endpoints in an index to find edges with missing nodes.

    Return the violations, and the node types without repeated ids.
    """
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
    edge_fragments = [item for edge_key in edge_types for item in context.staged_fragments.get(edge_key, ())]
    reported_edges = sorted(context.reported_keys & set(edge_types))
    if not id_sources or not (edge_fragments or reported_edges):
        return [], frozenset()
    lookup = EndpointLookup(context.load_id, context.load_job.pinned_graph, id_sources, columns_by_edge)
    reported_rows = context.reported_key_rows(*reported_edges) if reported_edges else None
    lost_rows, types_with_repeats = find_lost_endpoints(
        context.spark, lookup, context.load_job.table_keys, edge_fragments, reported_rows
    )
    violations = [_endpoint_violation(context, edge_types[item["edge"]], item) for item in lost_rows]
    return violations, frozenset(context.input_keys & set(id_sources)) - types_with_repeats - context.reported_keys


def _endpoint_violation(context: LoadCheckContext, edge_type: EdgeType, lost_row: dict[str, Any]) -> Violation:
    endpoint = next(candidate for candidate in endpoint_columns(edge_type) if candidate[1] == lost_row["side"])
    return dangling_violation(context.load_job.schema_ir.catalog, endpoint, lost_row, lost_row["spot"])


def _node_id_source(context: LoadCheckContext, node_key: TableKey) -> NodeIdSource:
    """Return the sources of the ids that a node type will have after the load."""
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
    return NodeIdSource(node_key, fragments, 0 if looks_up_stored else stored_count, looks_up_stored)


def dangling_violations(context: LoadCheckContext, replaced_positions: frozenset[int]) -> Iterator[Violation]:
    """Yield violations for edges with missing nodes, but only for node types that have records outside fragments."""
    edge_types = [
        edge_type
        for edge_type in context.load_job.schema_ir.catalog.edges
        if TableKey.edge(edge_type.name) in context.input_keys
    ]
    endpoints = [endpoint for edge_type in edge_types for endpoint in endpoint_columns(edge_type)]
    for unwritten_key in sorted({node_key for _, _, node_key in endpoints} & context.unwritten_keys):
        endpoints_at_key = [endpoint for endpoint in endpoints if endpoint[2] == unwritten_key]
        missing_ids = _find_missing_ids(context, unwritten_key, endpoints_at_key, replaced_positions)
        if missing_ids:
            for edge, column, _ in endpoints_at_key:
                yield from _violations_at_missing_nodes(
                    context, edge, column, unwritten_key, missing_ids, replaced_positions
                )


def _find_missing_ids(
    context: LoadCheckContext, node_key: TableKey, endpoints: list[EndpointColumn], replaced_positions: frozenset[int]
) -> list[str]:
    """Return the endpoint ids in written edges for which no node will exist after the load."""
    used_ids = [
        drop_replaced(context.key_rows(TableKey.edge(edge_type.name)), replaced_positions).selectExpr(f"{column} as id")
        for edge_type, column, _ in endpoints
    ]
    existing_ids = []
    if node_key in context.input_keys:
        existing_ids.append(context.key_rows(node_key).where("id is not null").select("id"))
    if context.has_stored_rows(node_key) and not (context.replaces_types and node_key in context.input_keys):
        existing_ids.append(context.stored_rows(node_key, ["id"]))
    missing_frame = reduce(lambda a, b: a.unionAll(b), used_ids).distinct()
    if existing_ids:
        missing_frame = missing_frame.join(reduce(lambda a, b: a.unionAll(b), existing_ids), "id", "left_anti")
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
    edge_rows = drop_replaced(context.key_rows(TableKey.edge(edge_type.name)), replaced_positions)
    dangling_rows = edge_rows.where(edge_rows[column].isin(missing_ids)).select("id", "src", "dst", "spot").toArrow()
    for dangling_row in dangling_rows.to_pylist():
        yield dangling_violation(
            context.load_job.schema_ir.catalog, (edge_type, column, node_key), dangling_row, dangling_row["spot"]
        )


def orphan_violations(context: LoadCheckContext) -> Iterator[Violation]:
    """Yield violations for stored edges whose nodes an overwrite removes."""
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
    orphaned_rows = context.stored_rows(edge_key, ["id", column]).join(retained_ids, column, "left_anti").toArrow()
    for orphan in orphaned_rows.to_pylist():
        reason = f"{column} '{orphan[column]}' not found in {node_key.type_name}"
        yield Violation("endpoint", edge_key, orphan["id"], column, reason, value=orphan[column])


def cardinality_violations(context: LoadCheckContext, replaced_positions: frozenset[int]) -> Iterator[Violation]:
    """Yield violations of cardinality bounds; each source's stored edges are also counted."""
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
    context: LoadCheckContext, edge_types: Mapping[TableKey, EdgeType], replaced_positions: frozenset[int]
) -> Iterator[Violation]:
    """Yield cardinality violations for edge types without stored edges, by counting only the loaded edges."""
    from pyspark.sql import functions as f

    edges_by_number = {
        context.load_job.table_keys.index(edge_key): edge_type for edge_key, edge_type in edge_types.items()
    }
    grouped_rows = drop_replaced(context.key_rows(*edge_types), replaced_positions).groupBy("type", "src")
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
    upper_bound = "" if edge_type.max_cardinality is None else f" or n > {int(edge_type.max_cardinality)}"
    return f"n < {int(edge_type.min_cardinality)}{upper_bound}"


def _count_all_edges(
    context: LoadCheckContext, edge_type: EdgeType, replaced_positions: frozenset[int]
) -> Iterator[Violation]:
    """Yield violations for sources with too few or too many edges after the load, including stored edges."""
    from pyspark.sql import functions as f

    edge_key = TableKey.edge(edge_type.name)
    loaded_rows = drop_replaced(context.key_rows(edge_key), replaced_positions)
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
        sources = sources.join(context.key_rows(source_key).selectExpr("id as src"), "src", "left_semi")
    grouped_counts = sources.join(counted_rows, "src", "left").groupBy("src")
    edge_counts = grouped_counts.agg(f.coalesce(f.sum("n"), f.lit(0)).alias("n"), f.min("spot").alias("spot"))
    for count_row in edge_counts.where(_outside_bounds_sql(edge_type)).toArrow().to_pylist():
        yield cardinality_violation(edge_type, count_row["src"], count_row["n"], count_row["spot"])
