"""Mutations: run statements in order as one commit.

This module executes write plans. All statements run on an overlay over one branch state, so each statement sees the
writes of earlier statements. If another writer commits first, the statements run again on the newer state, with the
same timestamp and generated ids.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import TYPE_CHECKING, Any

from omnigraph.errors import InputError, ReadSetConflict
from omnigraph.history.branch_state import BranchState
from omnigraph.history.commit import Commit
from omnigraph.history.schemas import read_schema
from omnigraph.ingest.stage import stage
from omnigraph.lang.query import plan
from omnigraph.lang.query.compile import CompiledQuery
from omnigraph.lang.query.parameters import bind_parameters
from omnigraph.lang.schema.ir import SchemaIR
from omnigraph.lang.schema.type_names import type_for_key
from omnigraph.publish.publish import publish
from omnigraph.publish.read_set import ReadSet
from omnigraph.publish.requirements import Requirement, SameSchema
from omnigraph.publish.unread_changes import RowFilter
from omnigraph.publish.write_plan import CommitMetadata, PublishPlan
from omnigraph.publish.write_txn import WriteTxn
from omnigraph.rules.check_delta import check_delta
from omnigraph.rules.delta import NEW_ROW
from omnigraph.rules.existing_rows import repeated_ids
from omnigraph.rules.unique import repeated_records
from omnigraph.values import clock_and_ids
from omnigraph.values.coerce import ParameterMode
from omnigraph.values.table_key import TableKey

from .generated_ids import IdGenerator
from .overlay import Overlay, ParamValues
from .recorded_outcome import read_recorded_changes
from .row_dependencies import RowDependencies
from .statements import WriteStats, run_statement
from .touched_rows import TouchedRows

if TYPE_CHECKING:
    from omnigraph.ingest.load import ParsedLoad


@dataclass(frozen=True, slots=True)
class WriteOutcome:
    """The result of a write; `replayed` is true if a commit with the same idempotency key already existed."""

    commit: Commit | None
    nodes: Mapping[str, int] = field(default_factory=dict)
    edges: Mapping[str, int] = field(default_factory=dict)
    ids: Mapping[str, Sequence[str]] = field(default_factory=dict)
    replayed: bool = False


WriteOperation = Callable[[Overlay, WriteStats, IdGenerator], None]
"""One operation in a write. It adds its changes to an overlay. A retry runs it again on a newer branch state."""


@dataclass(frozen=True, slots=True)
class BoundMutation:
    """The statements of a mutation, with bound parameters. The time of binding is the mutation's timestamp."""

    statements: Sequence[plan.WriteStatement]
    params: ParamValues

    def run(self, overlay: Overlay, write_stats: WriteStats, id_generator: IdGenerator) -> None:
        """Run the statements in order. This method is a `WriteOperation`."""
        touched_rows = TouchedRows(self.statements)
        for statement_number, statement in enumerate(self.statements, 1):
            affected = run_statement(overlay, statement, self.params, write_stats, id_generator)
            for affected_rows in affected if touched_rows.may_conflict else ():
                touched_rows.record(statement_number, affected_rows)
        overlay.apply_pending()

    def row_filters(self, ir: SchemaIR) -> dict[TableKey, RowFilter | None]:
        """Return row filters, by table, for the rows that the statements depend on. Inserts depend on no rows."""
        dependencies = RowDependencies()
        dependencies.add_mutation(self.statements, self.params, ir)
        return dependencies.row_filters()


def bind_mutation(query: CompiledQuery, params: Mapping[str, Any], mode: ParameterMode = "standard") -> BoundMutation:
    """Bind the parameters of a mutation query."""
    write_plan = query.plan
    if not isinstance(write_plan, plan.WritePlan):
        raise InputError(reason=f"`{query.name}` is a read query, not a mutation")
    bound_params = bind_parameters(query.parameters, params, mode, clock_and_ids.now_millis())
    return BoundMutation(write_plan.statements, bound_params)


def load_operation(parsed_load: "ParsedLoad") -> WriteOperation:
    """Return a write operation for an append or merge load that is part of a larger write."""
    if parsed_load.mode == "overwrite":
        raise InputError(reason="a transaction cannot overwrite whole types")
    if parsed_load.mode not in ("append", "merge"):
        hint = "use `update` and `delete`, or load outside the transaction"
        raise InputError(reason=f"a transaction cannot load in mode '{parsed_load.mode}'", hint=hint)

    def write_tables(overlay: Overlay, write_stats: WriteStats, id_generator: IdGenerator) -> None:
        for table_key, table_delta in parsed_load.delta.tables.items():
            declared_type = type_for_key(overlay.catalog, table_key)
            violation = next(chain(repeated_records(declared_type, table_delta), repeated_ids(table_delta)), None)
            if violation is not None:
                raise violation.to_error()
            row_origin = int(table_delta.row_ids[0]) if len(table_delta.row_ids) else NEW_ROW
            overlay.write(table_key, table_delta.rows, row_origin, reject_existing=table_delta.rejects_existing)
            kind, type_name = table_key.kind, table_key.type_name
            write_stats.add(kind, type_name, parsed_load.record_counts[table_key])
            write_stats.inserted_ids.setdefault(type_name, []).extend(table_delta.ids.to_pylist())

    return write_tables


def run_mutation(  # noqa: PLR0913 - all but three are keyword-only
    branch_state: BranchState,
    query: CompiledQuery,
    params: Mapping[str, Any],
    *,
    metadata: CommitMetadata | None = None,
    conditions: Sequence[Requirement] | None = None,
    schema_hash: str | None = None,
    mode: ParameterMode = "standard",
) -> WriteOutcome:
    """Run a mutation query as one commit, or create no commit if nothing matched.

    `conditions` are the caller's requirements. They are checked on every attempt, and the write is not retried if one
    of them fails. Without conditions, an update or delete fails if the rows that it depends on have changed since the
    last branch state that this process knows. `schema_hash` identifies the schema that the query was compiled with.
    """
    mutation = bind_mutation(query, params, mode)
    if conditions is None:
        state = branch_state.last_known().state
        row_filters = mutation.row_filters(read_schema(branch_state.store, state.schema).ir)
        conditions = (ReadSet(state.tables).require_unchanged(row_filters),) if row_filters else ()
    return run_operations(
        branch_state, [mutation.run], "mutate", metadata=metadata, conditions=conditions, schema_hash=schema_hash
    )


def run_operations(  # noqa: PLR0913 - all but three are keyword-only
    branch_state: BranchState,
    operations: Iterable[WriteOperation],
    operation_name: str,
    *,
    metadata: CommitMetadata | None = None,
    conditions: Sequence[Requirement] = (),
    schema_hash: str | None = None,
    id_generator: IdGenerator | None = None,
) -> WriteOutcome:
    """Run operations in order as one commit. A transaction runs several operations in this way.

    To reuse the ids that an earlier run of the operations generated, pass the `id_generator` of that run.
    """
    operations, id_generator = list(operations), id_generator or IdGenerator()
    expected_schema = schema_hash or branch_state.last_known().state.schema.hash
    stats_by_commit: dict[str, WriteStats] = {}

    def prepare(txn: WriteTxn) -> PublishPlan | None:
        overlay = open_overlay(txn, expected_schema)
        id_generator.restart()
        attempt_stats = stats_by_commit[txn.commit_id] = WriteStats()
        for operation in operations:
            operation(overlay, attempt_stats, id_generator)
        return _stage_overlay(overlay, operation_name)

    commit = publish(branch_state, prepare, metadata, conditions, takes_turns=True)
    if commit is not None and commit.id not in stats_by_commit:
        return _recorded_outcome(branch_state, commit)
    if commit is None:  # the operations had no net effect
        return WriteOutcome(None)
    write_stats = stats_by_commit[commit.id]
    return WriteOutcome(commit, write_stats.node_counts, write_stats.edge_counts, write_stats.inserted_ids)


def _recorded_outcome(branch_state: BranchState, commit: Commit) -> WriteOutcome:
    """Return the outcome of an earlier write with the same idempotency key."""
    changes = read_recorded_changes(branch_state, commit)
    if changes is None:
        return WriteOutcome(commit, replayed=True)
    return WriteOutcome(commit, changes.nodes, changes.edges, changes.ids, replayed=True)


def open_overlay(txn: WriteTxn, expected_hash: str | None = None) -> Overlay:
    """Return an empty overlay; raise ReadSetConflict if the base version does not have the expected schema."""
    schema_row = txn.base.state.schema
    if expected_hash is not None and schema_row.hash != expected_hash:
        raise ReadSetConflict(member="schema", expected=expected_hash, actual=schema_row.hash)
    return Overlay(txn, read_schema(txn.store, schema_row).ir)


def _stage_overlay(overlay: Overlay, operation_name: str) -> PublishPlan | None:
    delta = overlay.delta()
    if not delta.tables:
        return None
    delta, violations = check_delta(overlay.catalog, delta, overlay.lookup)
    if violations:
        raise violations[0].to_error()
    same_schema = SameSchema(overlay.txn.base.state.schema.hash)
    return stage(overlay.txn, delta, operation_name, (same_schema, *overlay.lookup.requirements))
