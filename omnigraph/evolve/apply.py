"""Apply a schema plan to a branch: check it, stage it, and publish it atomically in one commit.

The schema row and every affected table change in the same commit. A concurrent schema change causes a conflict. If the
plan rewrites no rows, the commit is retried after a concurrent write. Otherwise, the plan is applied as a long
operation, which fails if another writer publishes first. If the process that applies the plan dies, another process
completes or discards the operation.
"""

from collections.abc import Sequence

from omnigraph.errors import ReadSetConflict
from omnigraph.history.branch_state import BranchState
from omnigraph.history.commit import Commit, SchemaRow
from omnigraph.history.schemas import write_schema
from omnigraph.publish.long_operations import publish_long_operation
from omnigraph.publish.publish import publish
from omnigraph.publish.requirements import Requirement, SameContent, SameSchema, check_requirements
from omnigraph.publish.write_plan import CommitMetadata, PublishPlan
from omnigraph.publish.write_txn import WriteTxn
from omnigraph.values.table_key import TableKey

from .data_check import check_data, checked_table_keys
from .proposal import SchemaPlan
from .tables import StagedTables, rewrites_data, stage_schema_tables

SCHEMA_APPLY_OPERATION = "schema_apply"


def check_plan(branch: BranchState, schema_plan: SchemaPlan) -> None:
    """Raise an error if the plan cannot be applied to the branch's current state. Nothing is written."""
    refusal = schema_plan.migration.refusal()
    if refusal is not None:
        raise refusal
    base_txn = WriteTxn(branch.store, branch.name, branch.refresh(), "", 0)
    _CachedDataCheck(schema_plan)(base_txn)


def apply_plan(
    branch: BranchState, schema_plan: SchemaPlan, metadata: CommitMetadata, conditions: Sequence[Requirement] = ()
) -> Commit | None:
    """Publish a plan and return the commit, or None if there is nothing to change.

    Raises `SchemaUnsupported` if the plan cannot be applied, `SchemaViolation` if existing data violates the new
    schema, and `ReadSetConflict` if the branch's schema has changed since the plan was created.
    """
    refusal = schema_plan.migration.refusal()
    if refusal is not None:
        raise refusal
    if not schema_plan.steps:
        return None
    base_txn = WriteTxn(branch.store, branch.name, branch.refresh(), "", 0)
    data_check = _CachedDataCheck(schema_plan)
    check_requirements(conditions, base_txn)
    data_check(base_txn)  # runs before the writer slot is taken, so that a long scan does not block writers
    if rewrites_data(schema_plan, base_txn):
        return _apply_long_running(branch, schema_plan, metadata, conditions, data_check)
    schema_writer = _SchemaWriter(schema_plan)

    def plan_publish(txn: WriteTxn) -> PublishPlan:
        return _stage_apply(schema_plan, txn, data_check, schema_writer)

    return publish(branch, plan_publish, metadata, conditions)


def _apply_long_running(
    branch: BranchState,
    schema_plan: SchemaPlan,
    metadata: CommitMetadata,
    conditions: Sequence[Requirement],
    data_check: "_CachedDataCheck",
) -> Commit | None:
    schema_writer = _SchemaWriter(schema_plan)

    def stage_publish(txn: WriteTxn) -> PublishPlan:
        check_requirements(conditions, txn)
        return _stage_apply(schema_plan, txn, data_check, schema_writer, conditions)

    stored_types = (
        stored_type for stored_type in schema_plan.before.ir.type_identities if stored_type.kind != "interface"
    )
    table_keys = tuple(TableKey.of(stored_type.kind, stored_type.name) for stored_type in stored_types)
    return publish_long_operation(branch, SCHEMA_APPLY_OPERATION, stage_publish, metadata, table_keys)


class _CachedDataCheck:
    """Checks existing data against a plan, and checks it again only if one of the checked tables has changed."""

    def __init__(self, schema_plan: SchemaPlan) -> None:
        self.schema_plan = schema_plan
        self.checked_keys = checked_table_keys(schema_plan)
        self.passed_contents: dict[TableKey, str] | None = None

    def __call__(self, txn: WriteTxn) -> list[Requirement]:
        """Check the existing data, and require the checked tables to stay unchanged until the commit."""
        _require_planned_schema(self.schema_plan, txn)
        entries = {table_key: txn.base.state.tables[table_key] for table_key in sorted(self.checked_keys)}
        content_ids = {table_key: entry.content_id for table_key, entry in entries.items()}
        if self.passed_contents != content_ids:
            check_data(self.schema_plan, txn)
            self.passed_contents = content_ids
        return [SameContent(table_key, entry.content_id, entry.version) for table_key, entry in entries.items()]


class _SchemaWriter:
    """Writes the schema object once and reuses it when the commit is retried."""

    def __init__(self, schema_plan: SchemaPlan) -> None:
        self.schema_plan = schema_plan
        self.written_row: tuple[int, SchemaRow] | None = None

    def __call__(self, txn: WriteTxn, staged_tables: StagedTables) -> SchemaRow:
        gc_epoch = txn.base.state.head.gc_epoch
        # Garbage collection may have deleted the object since it was written.
        if self.written_row is None or self.written_row[0] != gc_epoch:
            contract = self.schema_plan.before.replaced_by(
                self.schema_plan.source, self.schema_plan.after, staged_tables.erased_locations
            )
            self.written_row = gc_epoch, write_schema(txn.store, contract)
        return self.written_row[1]


def _stage_apply(
    schema_plan: SchemaPlan,
    txn: WriteTxn,
    data_check: _CachedDataCheck,
    schema_writer: _SchemaWriter,
    conditions: Sequence[Requirement] = (),
) -> PublishPlan:
    data_requirements = data_check(txn)
    staged_tables = stage_schema_tables(schema_plan, txn)
    return PublishPlan(
        SCHEMA_APPLY_OPERATION,
        requirements=(*conditions, SameSchema(schema_plan.base.hash), *data_requirements, *staged_tables.requirements),
        new_tables=staged_tables.registered,
        dropped_tables=frozenset(staged_tables.dropped_keys),
        adopted_tables=staged_tables.adopted,
        schema=schema_writer(txn, staged_tables),
        file_checksums=staged_tables.files,
    )


def _require_planned_schema(schema_plan: SchemaPlan, txn: WriteTxn) -> None:
    """Raise `ReadSetConflict` if the branch's schema has changed since the plan was created."""
    current_schema = txn.base.state.schema
    if current_schema != schema_plan.base:
        raise ReadSetConflict(
            "the branch's schema has changed since the plan was created",
            member="schema",
            expected=schema_plan.base.hash,
            actual=current_schema.hash,
            hint="plan the change again, and review the new plan",
        )
