"""Plan a merge: which tables are affected, how each table changes, and which conflicts remain.

This module turns both sides' changes and the decisions about conflicts into a single validated change to the target.
The planner never writes.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace

from omnigraph.errors import EntityConflict
from omnigraph.history.commit import TableEntry
from omnigraph.history.diff import diff_table, empty_changes, find_old_entry
from omnigraph.history.merge_inputs import MergeInputs
from omnigraph.lang.schema.type_names import type_for_key
from omnigraph.publish.requirements import Requirement
from omnigraph.publish.write_txn import WriteTxn
from omnigraph.records.cached_property import cached_property
from omnigraph.rules.check_delta import check_delta
from omnigraph.rules.delta import Delta, TableDelta
from omnigraph.rules.lookup import Lookup, RecordingLookup
from omnigraph.rules.row_rules import row_violations
from omnigraph.rules.violation import Violation
from omnigraph.storage.version_difference import compare_versions
from omnigraph.values.table_key import TableKey

from .conflicts import DetectedConflict, EntityKey, conflict_of_entity, conflict_of_violation, involved_entities_of
from .decisions import DecidedEntity, Decisions, decide_entities, decisions_by_table, is_resolved
from .discarded_changes import DiscardedChange, find_discarded_changes
from .lookup_sides import LookupSides
from .lost_edges import LostEdge, find_lost_edges
from .merge_limits import MergeLimits, check_delta_size, too_large_changes
from .merged_schema import MergedSchema
from .offloaded_table import OffloadedDelta, OffloadEngine, unchanged_sides
from .parallel_edges import ParallelEdgePair, find_parallel_edges
from .recursive_base import sides_from_recursive_base
from .schema_alignment import AlignedTables
from .table_delta import make_table_delta, with_our_changes, with_target_rows
from .table_merge import Granularity, TableSides


@dataclass(frozen=True, slots=True)
class MergeOptions:
    """The options for a merge: how it combines changes, its memory limits, and the external engine for large tables."""

    granularity: Granularity = "property"
    collapse_edges: bool = False
    limits: MergeLimits = field(default_factory=MergeLimits)
    offload_engine: OffloadEngine | None = None


@dataclass(frozen=True)
class MergePlan:
    """The changes that a merge would make to the target, and every remaining conflict."""

    conflicts: tuple[DetectedConflict, ...]
    delta: Delta
    adopted_tables: Mapping[TableKey, TableEntry]
    parallel_edges: tuple[ParallelEdgePair, ...] = ()
    merged_properties: int = 0
    requirements: tuple[Requirement, ...] = ()  # the requirements on data that the rules read from the target
    lost_edges: tuple[LostEdge, ...] = ()
    # The keys include tables that the target adopts unchanged from the source.
    offloaded_tables: Mapping[TableKey, OffloadedDelta] = field(default_factory=dict)
    discarded_changes: tuple[DiscardedChange, ...] = ()
    merged_schema: MergedSchema | None = None  # set only if the two sides have different schemas


class MergePlanner:
    """Plans a merge. Each table is compared only once, when it is first needed.

    If the two sides have different schemas, `aligned_tables` compares their tables. Tables then have the merged
    schema's keys and columns, and every comparison runs in this process.
    """

    def __init__(
        self,
        merge_inputs: MergeInputs,
        options: MergeOptions | None = None,
        aligned_tables: AlignedTables | None = None,
    ) -> None:
        self.merge_inputs = merge_inputs
        self.options = options or MergeOptions()
        self.aligned_tables = aligned_tables
        target_catalog = merge_inputs.target_snapshot.schema.ir.catalog
        self.catalog = target_catalog if aligned_tables is None else aligned_tables.catalog
        self._sides_by_key: dict[TableKey, TableSides] = {}

    def changed_tables(self) -> list[TableKey]:
        """Return the sorted keys of the tables that the source changed, without reading any rows."""
        if self.aligned_tables is not None:
            return self.aligned_tables.changed_tables()
        all_keys = sorted({*self.merge_inputs.target_snapshot.tables, *self.merge_inputs.source_snapshot.tables})
        return [key for key in all_keys if self._source_changed(key)]

    @too_large_changes()
    def table_sides(self, table_key: TableKey) -> TableSides:
        """Return the changes that both sides made to a table."""
        if table_key not in self._sides_by_key:
            self._sides_by_key[table_key] = self._compare_sides(table_key)
        return self._sides_by_key[table_key]

    @too_large_changes()
    def make_plan(self, decisions: Decisions) -> MergePlan:
        """Plan the change to the target under the given decisions, and check the result against the rules."""
        target = self.merge_inputs.target_snapshot
        txn = WriteTxn(target.store, target.branch, self.merge_inputs.target_manifest, "", 0)
        target_lookup = RecordingLookup(txn)
        lookup = target_lookup if self.aligned_tables is None else self.aligned_tables.lookup(target_lookup)
        edge_pairs = tuple(
            edge_pair for key in self.changed_tables() for edge_pair in find_parallel_edges(self.table_sides(key))
        )
        dropped_edges: Collection[EntityKey] = (
            {(edge_pair.key, edge_pair.theirs) for edge_pair in edge_pairs} if self.options.collapse_edges else ()
        )
        decided_entities = {
            key: decide_entities(self.table_sides(key), choices)
            for key, choices in decisions_by_table(decisions).items()
        }
        table_deltas = self._make_table_deltas(decided_entities, dropped_edges, lookup)
        check_delta_size(table_deltas.values(), self.options.limits)
        delta, violations = check_delta(self.catalog, Delta(table_deltas), lookup, limit=None)
        offloaded_tables = {
            key: table_delta for key, table_delta in delta.tables.items() if isinstance(table_delta, OffloadedDelta)
        }
        for key, offloaded_delta in offloaded_tables.items():
            violations += row_violations(type_for_key(self.catalog, key), offloaded_delta.suspect_rows)
        violations = self._check_with_target_changes(delta, lookup) or violations
        conflicts = [*self._contested_conflicts(decisions), *self._rule_conflicts(violations)]
        tables_with_dropped_edges = {key for key, _ in dropped_edges}
        adopted_tables = {
            key: self.adopted_entry(key)
            for key in delta.tables
            if key not in tables_with_dropped_edges and self._can_adopt(key, decisions)
        }
        written_tables = {key: table_delta for key, table_delta in delta.tables.items() if key not in adopted_tables}
        return MergePlan(
            tuple(sorted(conflicts, key=lambda conflict: conflict.sort_key)),
            replace(delta, tables=written_tables),
            adopted_tables,
            edge_pairs,
            sum(self.table_sides(key).combined_value_count for key in self.changed_tables()),
            tuple(target_lookup.requirements),
            find_lost_edges(self.catalog, self.table_sides, decisions),
            offloaded_tables,
            (*self._dropped_edits(), *find_discarded_changes(self.table_sides, decided_entities)),
            self.merged_schema,
        )

    def _check_with_target_changes(self, delta: Delta, lookup: Lookup) -> list[Violation]:
        """Return the violations in the merged graph if the source added rules that the target's rows may violate.

        Rows that the target has not changed since the base satisfy these rules, because the same
        rows satisfy them in the source.
        """
        checked_keys = [] if self.aligned_tables is None else self.aligned_tables.newly_checked_tables()
        if not checked_keys:
            return []
        checked_tables = {
            key: with_our_changes(delta.tables.get(key), self.table_sides(key)) for key in sorted(checked_keys)
        }
        return check_delta(self.catalog, Delta({**delta.tables, **checked_tables}), lookup, limit=None)[1]

    def _dropped_edits(self) -> tuple[DiscardedChange, ...]:
        return () if self.aligned_tables is None else self.aligned_tables.discarded_changes()

    @property
    def open_schema_conflicts(self) -> tuple[EntityConflict, ...]:
        """The unresolved schema conflicts. If there are any, rows must not be merged."""
        return () if self.merged_schema is None else self.merged_schema.conflicts

    @property
    def decided_schema_conflicts(self) -> int:
        """The number of schema conflicts that a strategy has resolved."""
        return 0 if self.merged_schema is None else len(self.merged_schema.combined.resolved)

    @property
    def merged_schema(self) -> MergedSchema | None:
        """The merged schema, or None if both sides have the same schema."""
        return None if self.aligned_tables is None else self.aligned_tables.merged

    def _make_table_deltas(
        self,
        decided_entities: Mapping[TableKey, list[DecidedEntity]],
        dropped_edges: Collection[EntityKey],
        lookup: Lookup,
    ) -> dict[TableKey, TableDelta]:
        engine = self.options.offload_engine
        table_deltas = {
            key: make_table_delta(self.table_sides(key), decided_entities.get(key, ()), dropped_edges, lookup, engine)
            for key in sorted({*self.changed_tables(), *decided_entities})
        }
        if self.aligned_tables is not None:
            table_deltas = {
                key: with_target_rows(table_delta, self.aligned_tables.restored_rows(key))
                for key, table_delta in table_deltas.items()
            }
        return {key: table_delta for key, table_delta in table_deltas.items() if not table_delta.is_empty}

    def has_same_files(self, table_key: TableKey) -> bool:
        """Return whether both sides have the same files for a table, as they do after a change is reverted.

        Tables whose row counts differ are not opened, and no rows are read.
        """
        our_entry = self.merge_inputs.target_snapshot.tables.get(table_key)
        their_entry = self.merge_inputs.source_snapshot.tables.get(table_key)
        if our_entry is None or their_entry is None:
            return False
        if our_entry.row_count != their_entry.row_count:
            return False
        if our_entry.location != their_entry.location:
            return False
        our_table = self.merge_inputs.target_snapshot.table(table_key)
        their_table = self.merge_inputs.source_snapshot.table(table_key)
        # A column that contains only nulls has no file, so equal files do not imply equal columns.
        has_same_columns = our_table.schema.equals(their_table.schema, check_metadata=True)
        return has_same_columns and compare_versions(our_table, their_table).is_empty

    def fast_forward_tables(self) -> dict[TableKey, TableEntry]:
        """Return the source's tables that the target adopts in a fast-forward."""
        return {key: self.adopted_entry(key) for key in self.changed_tables() if self._differs_in_files(key)}

    def _differs_in_files(self, table_key: TableKey) -> bool:
        return table_key in self.merge_inputs.source_snapshot.tables and not self.has_same_files(table_key)

    def adopted_entry(self, table_key: TableKey) -> TableEntry:
        """Return the table entry that the target uses when it adopts one of the source's tables."""
        their_entry = self.merge_inputs.source_snapshot.tables[table_key]
        our_entry = self.merge_inputs.target_snapshot.tables.get(table_key)
        version = our_entry.version + 1 if our_entry is not None else their_entry.version
        return replace(their_entry, version=version, branch=self.merge_inputs.target_snapshot.branch)

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
        base_entries = (find_old_entry(base, reference, table_key) for base in self.merge_inputs.base_snapshots)
        return [None if base is None else base.content_id for base in base_entries]

    @cached_property
    def _offloaded_keys(self) -> frozenset[TableKey]:
        """The keys of the tables that the external engine compares."""
        if self.options.offload_engine is None or self.aligned_tables is not None:
            return frozenset()
        candidate_keys = [key for key in self.changed_tables() if self._has_one_base(key)]
        return self.options.offload_engine.select_tables(self.merge_inputs, candidate_keys)

    def _has_one_base(self, table_key: TableKey) -> bool:
        """Return whether the base, target and source have the table, and all merge bases agree on its content."""
        merge_inputs = self.merge_inputs
        in_all_versions = all(
            table_key in snapshot.tables
            for snapshot in (merge_inputs.base_snapshot, merge_inputs.target_snapshot, merge_inputs.source_snapshot)
        )
        return in_all_versions and len(set(self._base_content_ids(table_key))) == 1

    def _compare_sides(self, table_key: TableKey) -> TableSides:
        merge_inputs, granularity = self.merge_inputs, self.options.granularity
        if self.aligned_tables is not None:
            return self.aligned_tables.compare_sides(table_key, granularity)
        engine = self.options.offload_engine
        if engine is not None and self._offloaded_keys and self._has_one_base(table_key):
            if table_key in self._offloaded_keys:
                return engine.compare(merge_inputs, table_key, granularity)
            if not self._source_changed(table_key):
                return unchanged_sides(merge_inputs, table_key, granularity)
        our_changes = (
            diff_table(merge_inputs.base_snapshot, merge_inputs.target_snapshot, table_key)
            if self._target_changed(table_key)
            else None
        )
        their_changes = diff_table(merge_inputs.base_snapshot, merge_inputs.source_snapshot, table_key)
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
        """Return whether a table's content in the target differs from its content in any base."""
        target_entry = self.merge_inputs.target_snapshot.tables.get(table_key)
        target_content = target_entry.content_id if target_entry else None
        return any(base_content != target_content for base_content in self._base_content_ids(table_key))

    def _can_adopt(self, table_key: TableKey, decisions: Decisions) -> bool:
        """Return whether the target can adopt the source's version of a table.

        Adoption requires that the target still has exactly the base version, so none of its changes are lost.
        """
        if self.aligned_tables is not None:
            return False
        base_entry = self.merge_inputs.base_snapshot.tables.get(table_key)
        our_entry = self.merge_inputs.target_snapshot.tables.get(table_key)
        their_entry = self.merge_inputs.source_snapshot.tables.get(table_key)
        if base_entry is None or our_entry is None or their_entry is None or len(self.merge_inputs.base_snapshots) > 1:
            return False
        target_is_base = (base_entry.content_id, base_entry.lance_version) == (
            our_entry.content_id,
            our_entry.lance_version,
        )
        is_undecided = all(decided_key != table_key for decided_key, _ in decisions)
        return target_is_base and is_undecided and our_entry.location == their_entry.location

    def _contested_conflicts(self, decisions: Decisions) -> Iterable[DetectedConflict]:
        branch_names = (self.merge_inputs.target_snapshot.branch, self.merge_inputs.source_snapshot.branch)
        for key in self.changed_tables():
            for entity in self.table_sides(key).contested_entities.values():
                if not is_resolved(entity, decisions.get((key, entity.id))):
                    yield conflict_of_entity(key, entity, *branch_names)

    def _rule_conflicts(self, violations: Iterable[Violation]) -> Iterable[DetectedConflict]:
        branch_names = (self.merge_inputs.target_snapshot.branch, self.merge_inputs.source_snapshot.branch)
        violations = list(violations)
        self._load_entities(violations)
        for violation in violations:
            yield conflict_of_violation(
                violation, type_for_key(self.catalog, violation.type_key), self.table_sides, *branch_names
            )

    def _load_entities(self, violations: Iterable[Violation]) -> None:
        """For tables that use lookups, load the entities that violations involve, with one lookup per table."""
        ids_by_table: dict[TableKey, set[str]] = {}
        for violation in violations:
            ids_by_table.setdefault(violation.type_key, set()).add(violation.entity_id or "")
            if violation.rule != "@card":  # for `@card`, the edges are found by their source node
                entity_type = type_for_key(self.catalog, violation.type_key)
                for table_key, entity_id in involved_entities_of(violation, entity_type, self.table_sides):
                    ids_by_table.setdefault(table_key, set()).add(entity_id)
        for table_key, entity_ids in ids_by_table.items():
            table_sides = self.table_sides(table_key)
            if isinstance(table_sides, LookupSides):
                table_sides.load_entities(entity_ids)
