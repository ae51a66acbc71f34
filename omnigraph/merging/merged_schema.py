"""The merged schema: how both sides' schemas are combined, and how their types correspond.

Types and properties are matched by identity, never by name. This module reads only schemas. `schema_alignment` converts
rows.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

from omnigraph.errors import EntityConflict, SchemaMismatch
from omnigraph.evolve.proposal import SchemaPlan
from omnigraph.history.commit import SchemaRow
from omnigraph.history.matched_types import TypeTransition, find_transition, type_transitions
from omnigraph.history.merge_inputs import MergeInputs
from omnigraph.history.schemas import COPY_DATA_HINT, StoredSchema, schemas_agree
from omnigraph.lang.schema.catalog import Catalog
from omnigraph.lang.schema.ir import SchemaIR
from omnigraph.lang.schema.merge import SchemaConflict, SchemaMerge, merge_schemas
from omnigraph.lang.schema.migrate.plan import MigrationPlan
from omnigraph.lang.schema.migrate.steps import UnsupportedChange
from omnigraph.lang.schema.migrate.types import all_steps
from omnigraph.records.cached_property import cached_property
from omnigraph.values.table_key import TableKey

from .discarded_changes import DiscardedChange
from .edited_drops import EditedDrop, find_dropped_additions, find_edited_drops
from .filled_values import FillChanges, find_fill_changes
from .misfits import find_misfits
from .recursive_schema import recursive_base_schema

SCHEMA_CONFLICT = "schema_conflict"
DecideSchema = Callable[[EntityConflict], str | None]


@dataclass(frozen=True)
class MergedSchema:
    """The merged schema and, for each of its types, the corresponding type on each side.

    `conflicts` lists the incompatible changes that no strategy has resolved and the values that do not fit the merged
    schema. As long as there are conflicts, rows must not be merged.
    """

    base_ir: SchemaIR
    target: StoredSchema
    target_row: SchemaRow
    combined: SchemaMerge
    conflicts: tuple[EntityConflict, ...] = ()
    edited_drops: tuple[EditedDrop, ...] = ()

    @property
    def ir(self) -> SchemaIR:
        """The merged schema with its identity ids. The target's ids do not change."""
        return self.combined.ir

    @property
    def catalog(self) -> Catalog:
        """The types in the merged schema."""
        return self.combined.ir.catalog

    @cached_property
    def our_transitions(self) -> dict[TableKey, TypeTransition]:
        """The transition of each remaining target type to the merged schema, by its key in the merged schema."""
        return {transition.new_key: transition for transition in type_transitions(self.target.ir, self.ir)}

    @cached_property
    def their_transitions(self) -> dict[TableKey, TypeTransition]:
        """The transition of each remaining source type to the merged schema, by its key in the merged schema."""
        return {transition.new_key: transition for transition in type_transitions(self.combined.their_ir, self.ir)}

    @cached_property
    def discarded_changes(self) -> tuple[DiscardedChange, ...]:
        """The values that a side wrote to types or properties that are missing from the merged schema."""
        return tuple(
            discarded
            for edited_drop in self.edited_drops
            if edited_drop.is_dropped_in(self.ir)
            for discarded in edited_drop.discarded_changes()
        )

    @cached_property
    def restored_columns(self) -> dict[TableKey, frozenset[str]]:
        """The properties that the target has dropped and the merge restores, by type and merged name."""
        restored = {table_key: self.dropped_columns(table_key)[0] for table_key in self.our_transitions}
        return {table_key: names for table_key, names in restored.items() if names}

    def base_columns(self, table_key: TableKey) -> frozenset[str]:
        """Return the properties of a merged type that exist in the base, by their names in the merged schema."""
        base_transition = find_transition(self.base_ir, self.ir, table_key)
        return frozenset() if base_transition is None else frozenset(base_transition.old_property_names)

    def dropped_columns(self, table_key: TableKey) -> tuple[frozenset[str], frozenset[str]]:
        """Return the properties that each side has dropped from a merged type since the base, ours first."""
        base_names = self.base_columns(table_key)
        sides = (self.our_transitions.get(table_key), self.their_transitions.get(table_key))
        ours, theirs = (
            frozenset() if transition is None else base_names.difference(transition.old_property_names)
            for transition in sides
        )
        return ours, theirs

    def fill_changes(self, table_key: TableKey) -> tuple[FillChanges, FillChanges]:
        """Return each side's fill values that differ from those of the merged schema, ours first."""
        ours, theirs = self.our_transitions.get(table_key), self.their_transitions.get(table_key)
        base = find_transition(self.base_ir, self.ir, table_key)
        if base is None or ours is None or theirs is None:
            return {}, {}
        return find_fill_changes(base, ours, theirs), find_fill_changes(base, theirs, ours)

    @cached_property
    def migration(self) -> SchemaPlan | None:
        """The plan that migrates the target to the merged schema, or None if the target's schema does not change."""
        our_ir = self.target.ir
        if (our_ir.catalog, our_ir.type_identities) == (self.ir.catalog, self.ir.type_identities):
            return None
        steps = tuple(all_steps(our_ir, self.ir, "soft", is_accepted=True))
        supported = not any(isinstance(step, UnsupportedChange) for step in steps)
        migration = MigrationPlan(supported, steps, (), self.ir)
        return SchemaPlan(self.combined.source, "merged.pg", self.target_row, self.target, migration)


def combine_schemas(merge_inputs: MergeInputs, decide: DecideSchema) -> MergedSchema | None:
    """Merge both sides' schemas; return None if their rows can be merged without conversion.

    For each conflict, `decide` returns `ours`, `theirs`, or None to leave the conflict open.
    """
    target, source = merge_inputs.target_snapshot.schema, merge_inputs.source_snapshot.schema
    if schemas_agree(source, target) and not _narrows_base_values(merge_inputs):
        return None
    if source.ir.identity_domain != target.ir.identity_domain:
        raise _foreign_error(merge_inputs)
    edited_drops = find_edited_drops(merge_inputs)
    dropped_edits = [edited_drop.to_dropped_edit() for edited_drop in edited_drops]
    base = recursive_base_schema(
        merge_inputs, lambda base: len(merge_schemas(base, target, source, None, dropped_edits).conflicts)
    )
    combined = merge_schemas(
        base, target, source, lambda conflict: decide(describe_conflict(conflict, merge_inputs)), dropped_edits
    )
    if combined.their_numbers:  # a later merge could not determine which ids refer to the same thing
        raise _renumbered_error(merge_inputs)
    conflicts = tuple(describe_conflict(conflict, merge_inputs) for conflict in combined.conflicts)
    target_row = merge_inputs.target_snapshot.schema_row
    if not conflicts:
        found_keys = {(edit.side, edit.type_id, edit.property_id) for edit in edited_drops}
        additions = find_dropped_additions(merge_inputs, base.ir, combined.ir)
        edited_drops += tuple(
            edit for edit in additions if (edit.side, edit.type_id, edit.property_id) not in found_keys
        )
    merged = MergedSchema(base.ir, target, target_row, combined, conflicts, edited_drops)
    plan = None if conflicts else merged.migration
    refusal = None if plan is None else plan.migration.refusal()
    if refusal is not None:
        raise refusal
    return merged if conflicts else replace(merged, conflicts=find_misfits(merge_inputs, merged))


def _narrows_base_values(merge_inputs: MergeInputs) -> bool:
    """Return whether a number property in a merge base may have values that do not fit its type in the target."""
    target = merge_inputs.target_snapshot
    return any(
        transition.narrowed_names
        for base in merge_inputs.base_snapshots
        if base.schema_row != target.schema_row
        for transition in type_transitions(base.schema.ir, target.schema.ir)
    )


def describe_conflict(conflict: SchemaConflict, merge_inputs: MergeInputs) -> EntityConflict:
    """Convert a conflict between schema changes to the common form of merge conflicts."""
    kind, _, name = conflict.subject.rpartition(":")
    our_branch, their_branch = merge_inputs.target_snapshot.branch, merge_inputs.source_snapshot.branch
    states = (f"on '{our_branch}': {conflict.ours or 'absent'}", f"on '{their_branch}': {conflict.theirs or 'absent'}")
    message = conflict.reason or f"{conflict.kind.replace('_', ' ')}; {', '.join(states)}"
    base, ours, theirs = (
        None if declaration is None else {"declaration": declaration}
        for declaration in (conflict.base, conflict.ours, conflict.theirs)
    )
    return EntityConflict(kind or "schema", name, None, SCHEMA_CONFLICT, message, base, ours, theirs)


def _foreign_error(merge_inputs: MergeInputs) -> SchemaMismatch:
    source, target = merge_inputs.source_snapshot.branch, merge_inputs.target_snapshot.branch
    return SchemaMismatch(source=source, target=target, hint=COPY_DATA_HINT.format(source=source, target=target))


def _renumbered_error(merge_inputs: MergeInputs) -> SchemaMismatch:
    """Return an error for additions that have the same name or id but different meanings on the two branches."""
    source, target = merge_inputs.source_snapshot.branch, merge_inputs.target_snapshot.branch
    return SchemaMismatch(
        f"branches '{source}' and '{target}' added properties that cannot be stored as one property",
        source=source,
        target=target,
        hint=f"rename one of the added properties, or {COPY_DATA_HINT.format(source=source, target=target)}",
    )
