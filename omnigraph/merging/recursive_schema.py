"""The recursive merge base's schema in a criss-cross history: several schemas, merged in memory.

The bases' schemas are merged in the same way as their rows: pairwise, in order of commit id, with each pair using its
own merge base. If the bases' schema changes contradict each other, there is no common schema and the merge fails.
"""

from omnigraph.errors import SchemaMismatch
from omnigraph.history.diff import snapshot_at
from omnigraph.history.merge_bases import merge_bases
from omnigraph.history.merge_inputs import MergeInputs
from omnigraph.history.schemas import COPY_DATA_HINT
from omnigraph.lang.schema.merge import SchemaConflict, SchemaVersion, SourcedSchema, merge_schemas


def recursive_base_schema(merge_inputs: MergeInputs) -> SourcedSchema:
    """Merge all bases' schemas; raise `SchemaMismatch` if they contradict each other."""
    return _merged_schema(merge_inputs, tuple(snapshot.commit_id for snapshot in merge_inputs.base_snapshots))


def _merged_schema(merge_inputs: MergeInputs, commit_ids: tuple[str, ...]) -> SourcedSchema:
    log = merge_inputs.target_snapshot.log
    merged, ancestors = _schema_at(merge_inputs, commit_ids[0]), log.ancestors(commit_ids[0])
    for commit_id in commit_ids[1:]:
        commit_ancestors, commit_schema = log.ancestors(commit_id), _schema_at(merge_inputs, commit_id)
        if not _same_meaning(merged, commit_schema):
            base = _merged_schema(merge_inputs, merge_bases(ancestors, commit_ancestors))
            combined = merge_schemas(base, merged, commit_schema)
            if combined.conflicts or combined.their_numbers:
                raise _contradiction_error(merge_inputs, combined.conflicts)
            merged = SchemaVersion(combined.source, combined.ir)
        ancestors = {**ancestors, **commit_ancestors}
    return merged


def _schema_at(merge_inputs: MergeInputs, commit_id: str) -> SourcedSchema:
    target = merge_inputs.target_snapshot
    return snapshot_at(target, target.log, commit_id).schema


def _same_meaning(first: SourcedSchema, second: SourcedSchema) -> bool:
    return (first.ir.catalog, first.ir.type_identities) == (second.ir.catalog, second.ir.type_identities)


def _contradiction_error(merge_inputs: MergeInputs, conflicts: tuple[SchemaConflict, ...]) -> SchemaMismatch:
    source, target = merge_inputs.source_snapshot.branch, merge_inputs.target_snapshot.branch
    details = "".join(f"; {conflict}" for conflict in conflicts)
    copy_hint = COPY_DATA_HINT.format(source=source, target=target)
    return SchemaMismatch(
        f"branches '{source}' and '{target}' have several merge bases with contradictory schemas, so no strategy"
        f" applies{details}",
        source=source,
        target=target,
        hint="give both branches the same schema with `omnigraph schema apply`, then merge again; if that is not"
        f" possible, {copy_hint}",
    )
