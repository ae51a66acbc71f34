"""Plan a merge: which tables take part, what each becomes, and which conflicts remain.

Owns the step from the changes of both sides, and from decisions about conflicts, to one change of
the target that the rules have validated. Must only read, never write.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.history.commit import TableEntry
from omnigraph.history.diff import diff_table, empty_changes, find_old_key
from omnigraph.history.merge_inputs import MergeInputs
from omnigraph.ingest.defaults import backfill_values
from omnigraph.lang.schema.type_names import type_for_key
from omnigraph.publish.plan import Requirement, WriteTxn
from omnigraph.rules.check import check_delta
from omnigraph.rules.delta import NEW_ROW, UNRESOLVED_ROW, Delta, TableDelta
from omnigraph.rules.lookup import RecordingLookup
from omnigraph.rules.row_rules import row_violations
from omnigraph.rules.violation import Violation
from omnigraph.storage.difference import compare_versions
from omnigraph.values.table_key import TableKey

from .conflicts import DetectedConflict, EntityKey, conflict_of_entity, conflict_of_violation
from .limits import MergeLimits, check_delta_size
from .lost_edges import LostEdge, find_lost_edges
from .offloaded import (
    OffloadedDelta,
    OffloadedSides,
    OffloadEngine,
    make_offloaded_delta,
    unchanged_sides,
)
from .parallel_edges import ParallelEdgePair, find_parallel_edges
from .recursive_base import sides_from_recursive_base
from .sides import Choice, Granularity, TableSides

Decision: TypeAlias = Choice | Any  # a side, or the row that replaces both
Decisions: TypeAlias = Mapping[EntityKey, Decision]


@dataclass(frozen=True, slots=True)
class MergeOptions:
    """How a merge combines changes, how much it may hold, and which engine may help it."""

    granularity: Granularity = "entity"
    collapse_edges: bool = False
    limits: MergeLimits = field(default_factory=MergeLimits)
    offload_engine: OffloadEngine | None = None


@dataclass(frozen=True)
class MergePlan:
    """What a merge would do to the target, and every remaining conflict."""

    conflicts: tuple[DetectedConflict, ...]
    delta: Delta
    adopted_tables: Mapping[TableKey, TableEntry]
    parallel_edges: tuple[ParallelEdgePair, ...] = ()
    merged_properties: int = 0
    requirements: tuple[Requirement, ...] = ()  # what the rules read from the target
    lost_edges: tuple[LostEdge, ...] = ()
    offloaded_tables: Mapping[TableKey, OffloadedDelta] = field(
        default_factory=dict
    )  # also those that are adopted


class MergePlanner:
    """Plans one merge; each table is compared once, when it is first needed."""

    def __init__(self, merge_inputs: MergeInputs, options: MergeOptions | None = None) -> None:
        self.merge_inputs = merge_inputs
        self.options = options or MergeOptions()
        self.catalog = merge_inputs.target_snapshot.schema.ir.catalog
        self._sides_by_key: dict[TableKey, TableSides] = {}

    def changed_tables(self) -> list[TableKey]:
        """Return the tables that the source changed, in order; reads no rows."""
        all_keys = sorted(
            {*self.merge_inputs.target_snapshot.tables, *self.merge_inputs.source_snapshot.tables}
        )
        return [key for key in all_keys if self._source_changed(key)]

    def table_sides(self, table_key: TableKey) -> TableSides:
        """Return what both sides changed in a table."""
        if table_key not in self._sides_by_key:
            self._sides_by_key[table_key] = self._compare_sides(table_key)
        return self._sides_by_key[table_key]

    def make_plan(self, decisions: Decisions) -> MergePlan:
        """Plan the change of the target under some decisions, and check it against the rules."""
        merge_inputs = self.merge_inputs
        txn = WriteTxn(
            merge_inputs.target_snapshot.store,
            merge_inputs.target_snapshot.branch,
            merge_inputs.target_manifest,
            "",
            0,
        )
        lookup, engine = RecordingLookup(txn), self.options.offload_engine
        edge_pairs = tuple(
            item
            for key in self.changed_tables()
            for item in find_parallel_edges(self.table_sides(key))
        )
        dropped_edges = (
            {(item.key, item.theirs) for item in edge_pairs} if self.options.collapse_edges else ()
        )
        table_deltas = {}
        for key in sorted({*self.changed_tables(), *(key for key, _ in decisions)}):
            item = _make_table_delta(
                self.table_sides(key), decisions, dropped_edges, lookup, engine
            )
            if not item.is_empty:
                table_deltas[key] = item
        check_delta_size(table_deltas.values(), self.options.limits)
        delta, violations = check_delta(self.catalog, Delta(table_deltas), lookup, limit=None)
        offloaded_tables = {
            key: item for key, item in delta.tables.items() if isinstance(item, OffloadedDelta)
        }
        for key, offloaded_delta in offloaded_tables.items():
            violations += row_violations(
                type_for_key(self.catalog, key), offloaded_delta.suspect_rows
            )
        conflicts = [*self._contested_conflicts(decisions), *self._rule_conflicts(violations)]
        adopted_tables = {
            key: self._make_adopted_entry(key)
            for key in delta.tables
            if self._can_adopt(key, decisions)
        }
        if dropped_edges:
            adopted_tables = {
                adopted_key: adopted_entry
                for adopted_key, adopted_entry in adopted_tables.items()
                if all(adopted_key != key for key, _ in dropped_edges)
            }
        written_tables = {
            key: item for key, item in delta.tables.items() if key not in adopted_tables
        }
        combined_values = sum(
            self.table_sides(key).combined_value_count for key in self.changed_tables()
        )
        ordered_conflicts = sorted(conflicts, key=lambda item: item.sort_key)
        delta, read_requirements = replace(delta, tables=written_tables), tuple(lookup.requirements)
        edges_lost = find_lost_edges(self.catalog, self.table_sides, decisions)
        return MergePlan(
            tuple(ordered_conflicts),
            delta,
            adopted_tables,
            edge_pairs,
            combined_values,
            read_requirements,
            edges_lost,
            offloaded_tables,
        )

    def has_same_files(self, table_key: TableKey) -> bool:
        """Whether both sides have the same files of a table: a change was reverted.

        Tables of different row counts are not opened, and no row is read.
        """
        our_entry = self.merge_inputs.target_snapshot.tables.get(table_key)
        their_entry = self.merge_inputs.source_snapshot.tables.get(table_key)
        if our_entry is None or their_entry is None:
            return False
        if (our_entry.row_count, our_entry.location) != (
            their_entry.row_count,
            their_entry.location,
        ):
            return False
        return compare_versions(
            self.merge_inputs.target_snapshot.table(table_key),
            self.merge_inputs.source_snapshot.table(table_key),
        ).is_empty

    def adopted_entry(self, table_key: TableKey) -> TableEntry:
        """Return a table of the source as the target will name it."""
        return self._make_adopted_entry(table_key)

    def _source_changed(self, table_key: TableKey) -> bool:
        our_entry = self.merge_inputs.target_snapshot.tables.get(table_key)
        their_entry = self.merge_inputs.source_snapshot.tables.get(table_key)
        source_content = their_entry.content_id if their_entry else None
        if source_content == (our_entry.content_id if our_entry else None):
            return False
        return any(content != source_content for content in self._base_content_ids(table_key))

    def _base_content_ids(self, table_key: TableKey) -> list[str | None]:
        reference = (
            self.merge_inputs.target_snapshot
            if table_key in self.merge_inputs.target_snapshot.tables
            else self.merge_inputs.source_snapshot
        )
        base_entries = (
            base.tables.get(find_old_key(base, reference, table_key))
            for base in self.merge_inputs.base_snapshots
        )
        return [None if base is None else base.content_id for base in base_entries]

    @cached_property
    def _offloaded_keys(self) -> frozenset[TableKey]:
        """Keys of the tables that another engine compares."""
        if self.options.offload_engine is None:
            return frozenset()
        candidate_keys = [key for key in self.changed_tables() if self._has_one_base(key)]
        return self.options.offload_engine.select_tables(self.merge_inputs, candidate_keys)

    def _has_one_base(self, table_key: TableKey) -> bool:
        """Whether both sides of a table started from one content."""
        merge_inputs = self.merge_inputs
        in_all_versions = all(
            table_key in snapshot.tables
            for snapshot in (
                merge_inputs.base_snapshot,
                merge_inputs.target_snapshot,
                merge_inputs.source_snapshot,
            )
        )
        return in_all_versions and len(set(self._base_content_ids(table_key))) == 1

    def _compare_sides(self, table_key: TableKey) -> TableSides:
        merge_inputs, granularity = self.merge_inputs, self.options.granularity
        engine = self.options.offload_engine
        if engine is not None and self._offloaded_keys and self._has_one_base(table_key):
            if table_key in self._offloaded_keys:
                return engine.compare(merge_inputs, table_key, granularity)
            if not self._source_changed(table_key):
                return unchanged_sides(merge_inputs, table_key, granularity)
        initial_values = backfill_values(type_for_key(self.catalog, table_key))
        our_changes = (
            diff_table(
                merge_inputs.base_snapshot,
                merge_inputs.target_snapshot,
                table_key,
                column_defaults=initial_values,
            )
            if self._target_changed(table_key)
            else None
        )
        their_changes = diff_table(
            merge_inputs.base_snapshot,
            merge_inputs.source_snapshot,
            table_key,
            column_defaults=initial_values,
        )
        if our_changes is None:
            our_changes = empty_changes(table_key, merge_inputs.target_snapshot.table(table_key))
        first_base_sides = TableSides(table_key, our_changes, their_changes, granularity)
        has_several_bases = len(set(self._base_content_ids(table_key))) > 1
        return (
            sides_from_recursive_base(merge_inputs, first_base_sides, granularity)
            if has_several_bases
            else first_base_sides
        )

    def _target_changed(self, table_key: TableKey) -> bool:
        """Whether the target changed a table since any base."""
        target_entry = self.merge_inputs.target_snapshot.tables.get(table_key)
        target_content = target_entry.content_id if target_entry else None
        return any(
            base_content != target_content for base_content in self._base_content_ids(table_key)
        )

    def _can_adopt(self, table_key: TableKey, decisions: Decisions) -> bool:
        """Whether the target can adopt the table version of the other side.

        It can if the target still has exactly the base version: nothing of its own would be lost.
        """
        base_entry = self.merge_inputs.base_snapshot.tables.get(table_key)
        our_entry = self.merge_inputs.target_snapshot.tables.get(table_key)
        their_entry = self.merge_inputs.source_snapshot.tables.get(table_key)
        if (
            base_entry is None
            or our_entry is None
            or their_entry is None
            or len(self.merge_inputs.base_snapshots) > 1
        ):
            return False
        target_is_base = (base_entry.content_id, base_entry.lance_version) == (
            our_entry.content_id,
            our_entry.lance_version,
        )
        is_undecided = all(decided_key != table_key for decided_key, _ in decisions)
        return target_is_base and is_undecided and our_entry.location == their_entry.location

    def _make_adopted_entry(self, table_key: TableKey) -> TableEntry:
        their_entry = self.merge_inputs.source_snapshot.tables[table_key]
        our_entry = self.merge_inputs.target_snapshot.tables.get(table_key)
        version = our_entry.version + 1 if our_entry is not None else their_entry.version
        return replace(
            their_entry, version=version, branch=self.merge_inputs.target_snapshot.branch
        )

    def _contested_conflicts(self, decisions: Decisions) -> Iterable[DetectedConflict]:
        branch_names = (
            self.merge_inputs.target_snapshot.branch,
            self.merge_inputs.source_snapshot.branch,
        )
        for key in self.changed_tables():
            for entity in self.table_sides(key).contested_entities.values():
                if (key, entity.id) not in decisions:
                    yield conflict_of_entity(key, entity, *branch_names)

    def _rule_conflicts(self, violations: Iterable[Violation]) -> Iterable[DetectedConflict]:
        branch_names = (
            self.merge_inputs.target_snapshot.branch,
            self.merge_inputs.source_snapshot.branch,
        )
        violations = list(violations)
        for table_key in {violation.type_key for violation in violations}:
            table_sides = self.table_sides(table_key)
            if isinstance(table_sides, OffloadedSides):
                table_sides.load_entities(
                    violation.entity_id or ""
                    for violation in violations
                    if violation.type_key == table_key
                )
        for violation in violations:
            yield conflict_of_violation(
                violation,
                type_for_key(self.catalog, violation.type_key),
                self.table_sides,
                *branch_names,
            )


def _make_table_delta(
    table_sides: TableSides,
    decisions: Decisions,
    dropped_edges: Iterable[EntityKey],
    lookup: RecordingLookup,
    engine: OffloadEngine | None,
) -> TableDelta:
    """Return what to write to and remove from one table of the target."""
    inserted_rows, updated_rows, deleted_ids = table_sides.changes_to_take()
    choices = {
        entity_id: decision
        for (key, entity_id), decision in decisions.items()
        if key == table_sides.table_key
    }
    excluded_ids = {
        *choices,
        *(entity_id for key, entity_id in dropped_edges if key == table_sides.table_key),
    }
    inserted_rows, updated_rows, deleted_ids = _exclude_ids(
        inserted_rows, updated_rows, deleted_ids, excluded_ids
    )
    decided_rows, removed_ids = _apply_decisions(table_sides, choices)
    updated_rows = pa.concat_tables([updated_rows, *map(table_sides.to_rule_columns, decided_rows)])
    deleted_ids = pa.concat_arrays([deleted_ids, pa.array(removed_ids, pa.string())])
    written_rows = pa.concat_tables([inserted_rows, updated_rows]).combine_chunks()
    row_origins = np.concatenate(
        [
            np.full(inserted_rows.num_rows, NEW_ROW, np.int64),
            np.full(updated_rows.num_rows, UNRESOLVED_ROW, np.int64),
        ]
    )
    id_columns = ["id", "src", "dst"] if table_sides.table_key.is_edge else ["id"]
    removed_rows = (
        lookup.find(table_sides.table_key, {"id": deleted_ids}, id_columns, with_row_ids=True)
        if len(deleted_ids)
        else None
    )
    addresses = np.zeros(len(row_origins), np.uint64)
    table_delta = TableDelta(
        table_sides.table_key,
        written_rows,
        np.arange(len(row_origins)),
        row_origins,
        addresses,
        removed_rows=removed_rows,
    )
    if not isinstance(table_sides, OffloadedSides):
        return table_delta
    combined_rows, _, _ = _exclude_ids(
        table_sides.combined_rows, table_sides.combined_rows, deleted_ids, excluded_ids
    )
    return make_offloaded_delta(
        table_delta, table_sides, pa.concat_tables([combined_rows, *decided_rows]), engine
    )


def _exclude_ids(
    inserted_rows: pa.Table, updated_rows: pa.Table, deleted_ids: pa.Array, excluded_ids: set[str]
) -> tuple[pa.Table, pa.Table, pa.Array]:
    if not excluded_ids:
        return inserted_rows, updated_rows, deleted_ids
    excluded_array = pa.array(sorted(excluded_ids), pa.string())
    inserted_rows, updated_rows = (
        rows.filter(pc.invert(pc.is_in(rows["id"], excluded_array)))
        for rows in (inserted_rows, updated_rows)
    )
    return (
        inserted_rows,
        updated_rows,
        deleted_ids.filter(pc.invert(pc.is_in(deleted_ids, excluded_array))),
    )


def _apply_decisions(
    table_sides: TableSides, choices: Mapping[str, Decision]
) -> tuple[list[pa.Table], list[str]]:
    """Return rows to write and ids to remove, from the decisions about single entities."""
    decided_rows: list[pa.Table] = []
    removed_ids = []
    for entity_id, decision in sorted(choices.items()):
        if isinstance(decision, pa.Table):
            decided_rows.append(decision)
        elif _choice_changes_target(table_sides, entity_id, decision):
            row = table_sides.row_if_chosen(entity_id, decision)
            decided_rows += [row] if row is not None else []
            removed_ids += [entity_id] if row is None else []
    return decided_rows, removed_ids


def _choice_changes_target(table_sides: TableSides, entity_id: str, side: Choice) -> bool:
    """Whether a choice changes the target; an entity that neither side changed is equal on both."""
    if side == "theirs":
        return table_sides.is_changed(entity_id)
    return table_sides.granularity == "property" and entity_id in table_sides.contested_entities
