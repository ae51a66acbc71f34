"""Merge the schemas of several merge bases in memory, to obtain the schema of the recursive merge base.

Several merge bases occur in a criss-cross history. Their schemas are merged in the same way as their rows: pairwise, in
order of commit id, and each pair with its own merge base. If two bases contradict each other, the merged base gets a
declaration that neither side has. Any difference between the sides is then a conflict, which a strategy can resolve.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import get_args

from omnigraph.errors import SchemaMismatch
from omnigraph.history.diff import snapshot_at
from omnigraph.history.merge_bases import merge_bases
from omnigraph.history.merge_inputs import MergeInputs
from omnigraph.history.schemas import COPY_DATA_HINT
from omnigraph.lang.schema.merge import SchemaConflict, SchemaVersion, SourcedSchema, Winner, merge_schemas

CountConflicts = Callable[[SourcedSchema], int]


def recursive_base_schema(merge_inputs: MergeInputs, count_conflicts: CountConflicts) -> SourcedSchema:
    """Merge the schemas of all bases.

    `count_conflicts` returns the number of conflicts between the sides for a given base. Raises `SchemaMismatch` if the
    schemas of the bases cannot be merged.
    """
    commit_ids = tuple(snapshot.commit_id for snapshot in merge_inputs.base_snapshots)
    first_merge = _BaseSchemaMerge(merge_inputs)
    base = first_merge.merged_schema(commit_ids)
    winners = dict(first_merge.winners)
    for contradiction in first_merge.winners:
        base, winners = _choose_winner(merge_inputs, commit_ids, count_conflicts, base, winners, contradiction)
    return base


def _choose_winner(
    merge_inputs: MergeInputs,
    commit_ids: tuple[str, ...],
    count_conflicts: CountConflicts,
    base: SourcedSchema,
    winners: dict[SchemaConflict, Winner],
    contradiction: SchemaConflict,
) -> tuple[SourcedSchema, dict[SchemaConflict, Winner]]:
    """Choose the winner of a contradiction: the declaration that leads to the most conflicts between the sides.

    A contradiction has three different declarations, and the two sides have at most two of them, so neither side has
    the third one. With this declaration in the base, every change on a side is either kept or reported as a conflict.
    """
    best, best_count = (base, winners), count_conflicts(base)
    for winner in get_args(Winner):
        other_winners = {**winners, contradiction: winner}
        other_base = _BaseSchemaMerge(merge_inputs, other_winners).merged_schema(commit_ids)
        if count_conflicts(other_base) > best_count:
            best, best_count = (other_base, other_winners), count_conflicts(other_base)
    return best


@dataclass(slots=True)
class _BaseSchemaMerge:
    """A merge of several bases' schemas. `winners` maps each contradiction to its winner (by default `base`)."""

    merge_inputs: MergeInputs
    winners: dict[SchemaConflict, Winner] = field(default_factory=dict)

    def merged_schema(self, commit_ids: tuple[str, ...]) -> SourcedSchema:
        """Merge the schemas of the given commits."""
        log = self.merge_inputs.target_snapshot.log
        merged, ancestors = self._schema_at(commit_ids[0]), log.ancestors(commit_ids[0])
        for commit_id in commit_ids[1:]:
            commit_ancestors, commit_schema = log.ancestors(commit_id), self._schema_at(commit_id)
            if not _same_meaning(merged, commit_schema):
                base = self.merged_schema(merge_bases(ancestors, commit_ancestors))
                combined = merge_schemas(base, merged, commit_schema, self._decide)
                if combined.conflicts or combined.their_numbers:
                    raise _contradiction_error(self.merge_inputs, combined.conflicts)
                merged = SchemaVersion(combined.source, combined.ir)
            ancestors = {**ancestors, **commit_ancestors}
        return merged

    def _decide(self, contradiction: SchemaConflict) -> str:
        return self.winners.setdefault(contradiction, "base")

    def _schema_at(self, commit_id: str) -> SourcedSchema:
        target = self.merge_inputs.target_snapshot
        return snapshot_at(target, target.log, commit_id).schema


def _same_meaning(first: SourcedSchema, second: SourcedSchema) -> bool:
    return (first.ir.catalog, first.ir.type_identities) == (second.ir.catalog, second.ir.type_identities)


def _contradiction_error(merge_inputs: MergeInputs, conflicts: tuple[SchemaConflict, ...]) -> SchemaMismatch:
    source, target = merge_inputs.source_snapshot.branch, merge_inputs.target_snapshot.branch
    details = "".join(f"; {conflict}" for conflict in conflicts)
    copy_hint = COPY_DATA_HINT.format(source=source, target=target)
    return SchemaMismatch(
        f"branches '{source}' and '{target}' have several merge bases whose schemas cannot be merged, so no strategy"
        f" applies{details}",
        source=source,
        target=target,
        hint="give both branches the same schema with `omnigraph schema apply`, then merge again; if that is not"
        f" possible, {copy_hint}",
    )
