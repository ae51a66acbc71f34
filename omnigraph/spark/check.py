"""Check the rules that need all records of a load, as Spark joins over the reports of its tasks.

Covers duplicates and uniqueness; `edge_checks` covers endpoints and cardinality. The semantics are
those of `rules`. Spark finds the records that break a rule; the driver turns them into violations.
"""

from collections.abc import Iterator
from itertools import groupby, pairwise
from typing import TYPE_CHECKING, Any

from omnigraph.lang.schema.catalog import NodeType
from omnigraph.rules.violation import Violation

from .check_context import LoadCheckContext, is_current
from .edge_checks import (
    cardinality_violations,
    dangling_violations,
    lost_endpoint_violations,
    orphan_violations,
)
from .pinned_graph import entity_type_of
from .task_reports import unpickle_data
from .unique_tuples import format_tuple, unique_groups

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def find_set_violations(context: LoadCheckContext) -> tuple[list[Violation], frozenset[int]]:
    """Return the violations that need all records, and the positions of replaced records."""
    violations: list[Violation] = []
    lost_endpoints, duplicate_free_keys = lost_endpoint_violations(context)
    repeated_ids = _find_repeated_ids(context, context.input_keys - duplicate_free_keys)
    violations += _repeated_id_violations(context, repeated_ids)
    replaced_positions = frozenset(
        position for positions in repeated_ids.values() for position in positions[:-1]
    )
    violations += _repeated_tuple_violations(context)
    violations += [
        unpickle_data(finding["data"])
        for finding in context.driver_rows
        if is_current(finding, "taken", replaced_positions)
    ]
    violations += _held_value_violations(context, replaced_positions)
    violations += [
        finding for finding in lost_endpoints if finding.input_line not in replaced_positions
    ]
    violations += dangling_violations(context, replaced_positions)
    violations += orphan_violations(context)
    violations += cardinality_violations(context, replaced_positions)
    return violations, replaced_positions


PositionsById = dict[tuple[int, str], list[int]]


def _find_repeated_ids(context: LoadCheckContext, table_keys: frozenset[str]) -> PositionsById:
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
        entity_type = context.entity_type(type_number)
        table_key = context.load_job.table_keys[type_number]
        if isinstance(entity_type, NodeType) and entity_type.key is not None:
            for position in positions[1:]:
                yield Violation(
                    "@unique",
                    table_key,
                    entity_id,
                    _column_or_columns(entity_type.key),
                    input_line=position,
                    value=entity_id,
                    conflicting_id=entity_id,
                    conflicting_line=positions[0],
                )
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
        unique_groups(entity_type_of(context.load_job.schema_ir, key)) for key in context.input_keys
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
                "@unique",
                context.load_job.table_keys[type_number],
                ids_by_position[position],
                _column_or_columns(unique_columns),
                input_line=position,
                value=format_tuple(tuple_text, unique_columns),
                conflicting_id=ids_by_position[positions[0]],
                conflicting_line=positions[0],
            )


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
    held_reports = [
        report for report in context.driver_rows if is_current(report, "held", replaced_positions)
    ]
    if not held_reports:
        return []
    holder_ids = sorted({report["src"] for report in held_reports})
    key_rows = context.key_rows(
        *sorted({context.load_job.table_keys[report["type"]] for report in held_reports})
    )
    loaded_holders = key_rows.where(key_rows.id.isin(holder_ids)).select("type", "id").toArrow()
    replaced_holders = set(
        zip(loaded_holders["type"].to_pylist(), loaded_holders["id"].to_pylist(), strict=True)
    )
    return [
        unpickle_data(report["data"])
        for report in held_reports
        if (report["type"], report["src"]) not in replaced_holders
    ]
