"""Check the rules that involve all records in a load, using Spark joins over the task reports.

The rules cover duplicates, uniqueness, endpoints and cardinality; `rules` defines their semantics. Spark finds the
records that break a rule, and the driver converts them to violations.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from omnigraph.lang.schema.catalog import EdgeType, NodeType
from omnigraph.lang.schema.ir import ordered_key_columns
from omnigraph.lang.schema.type_names import type_for_key
from omnigraph.rules.violation import Violation
from omnigraph.spark.check_context import LoadCheckContext
from omnigraph.spark.edge_checks import (
    cardinality_violations,
    dangling_violations,
    lost_endpoint_violations,
    orphan_violations,
)
from omnigraph.values.table_key import TableKey

from .duplicate_rows import DuplicateGroup, find_duplicate_groups
from .task_reports import HeldValueReport, select_reports
from .unique_tuples import format_tuple, unique_groups


@dataclass(frozen=True, slots=True)
class SetViolations:
    """Violations of the rules that involve all records: repeated ids and values first, then all others.

    `replaced_positions` are the positions of the records that later records replace.
    """

    repeated: Sequence[Violation] = ()
    others: Sequence[Violation] = ()
    replaced_positions: frozenset[int] = frozenset()


def find_set_violations(context: LoadCheckContext) -> SetViolations:
    """Return the violations of the rules that involve all records."""
    is_patch = context.load_job.mode == "patch"  # a patch never moves an edge
    lost_endpoints, duplicate_free_keys = ([], frozenset()) if is_patch else lost_endpoint_violations(context)
    repeated_ids = _find_repeated_ids(context, context.input_keys - duplicate_free_keys)
    repeated = [*_repeated_id_violations(context, repeated_ids), *_repeated_tuple_violations(context)]
    replaced_positions = frozenset(position for positions in repeated_ids.values() for position in positions[:-1])
    violations = _held_value_violations(context, replaced_positions)
    if is_patch:
        return SetViolations(repeated, violations, replaced_positions)
    violations += [finding for finding in lost_endpoints if finding.input_line not in replaced_positions]
    violations += dangling_violations(context, replaced_positions)
    violations += orphan_violations(context)
    violations += cardinality_violations(context, replaced_positions)
    return SetViolations(repeated, violations, replaced_positions)


PositionsById = dict[tuple[int, str], list[int]]


def _find_repeated_ids(context: LoadCheckContext, table_keys: frozenset[TableKey]) -> PositionsById:
    """Return the ids that occur in several records, each with the positions of its records in input order."""
    id_source = context.id_source(*sorted(table_keys))
    return {
        (type_number, entity_id): positions
        for (type_number, entity_id), positions in find_duplicate_groups(id_source, ["type", "id"])
    }


def _repeated_id_violations(context: LoadCheckContext, repeated: PositionsById) -> Iterator[Violation]:
    for (type_number, entity_id), positions in repeated.items():
        entity_type, table_key = (context.entity_type(type_number), context.load_job.table_keys[type_number])
        if entity_type.key is not None and context.load_job.mode != "patch":
            key_property = entity_type.key[0] if len(entity_type.key) == 1 else entity_type.key
            for position in positions[1:]:
                yield Violation(
                    "@unique",
                    table_key,
                    entity_id,
                    key_property,
                    input_line=position,
                    value=_key_text(context, entity_type, entity_id),
                    conflicting_id=entity_id,
                    conflicting_line=positions[0],
                )
        elif context.load_job.mode != "merge":
            for previous_position, position in pairwise(positions):
                yield Violation("key", table_key, entity_id, input_line=position, conflicting_line=previous_position)


def _key_text(context: LoadCheckContext, entity_type: NodeType | EdgeType, entity_id: str) -> str:
    """Return an id's key values as text, in the order in which the key's columns are declared."""
    key_columns = ordered_key_columns(context.load_job.schema_ir, entity_type.name, entity_type.kind)
    if len(key_columns) == 1:
        return entity_id
    value_by_column = dict(zip(key_columns, json.loads(entity_id), strict=True))
    return ", ".join(value_by_column[column] for column in entity_type.key or ())


def _repeated_tuple_violations(context: LoadCheckContext) -> Iterator[Violation]:
    if not any(unique_groups(type_for_key(context.load_job.schema_ir.catalog, key)) for key in context.input_keys):
        return
    duplicates = find_duplicate_groups(context.tuple_source(), ["type", "grp", "value"])
    ids_by_position = _read_ids_at(context, duplicates)
    for (type_number, group_number, tuple_text), positions in duplicates:
        entity_type = context.entity_type(type_number)
        unique_columns = unique_groups(entity_type)[group_number]
        for position in positions[1:]:
            if context.load_job.mode == "patch" and ids_by_position[position] == ids_by_position[positions[0]]:
                continue  # patches to the same row, which are already reported
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


def _read_ids_at(context: LoadCheckContext, duplicates: list[DuplicateGroup]) -> dict[int, str]:
    """Return the ids of the records in duplicate groups, keyed by position."""
    positions = [position for _, group_positions in duplicates for position in group_positions]
    if not positions:
        return {}
    tuple_rows = context.tuple_rows()
    position_ids = tuple_rows.where(tuple_rows.spot.isin(positions)).select("spot", "id").toArrow()
    return dict(zip(position_ids["spot"].to_pylist(), position_ids["id"].to_pylist(), strict=True))


def _column_or_columns(columns: tuple[str, ...]) -> str | tuple[str, ...]:
    return columns[0] if len(columns) == 1 else columns


def _held_value_violations(context: LoadCheckContext, replaced_positions: frozenset[int]) -> list[Violation]:
    """Return violations for records whose unique value belongs to a stored entity that the load does not replace."""
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
    holder_keys = (context.load_job.table_keys[type_number] for type_number in loaded_holders["type"].to_pylist())
    replaced_holders = set(zip(holder_keys, loaded_holders["id"].to_pylist(), strict=True))
    return [
        violation for violation in violations if (violation.type_key, violation.conflicting_id) not in replaced_holders
    ]
