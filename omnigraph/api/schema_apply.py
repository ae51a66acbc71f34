"""Plan and apply schema changes. Applying a change makes one commit or has no effect.

With an idempotency key, a repeated change is recognized by its text, its branch and whether it may lose data. Its
outcome describes the commit of the first request, even if the branch's schema has changed again since then.
"""

from dataclasses import replace
from typing import TYPE_CHECKING

from omnigraph.api.handle import Handle, report_missing_branch
from omnigraph.api.log_events import log_operation
from omnigraph.api.schema import SchemaText, read_schema_text
from omnigraph.api.write_options import AttemptCounter, WriteOptions
from omnigraph.errors import ReadSetConflict
from omnigraph.evolve.apply import SCHEMA_APPLY_OPERATION, apply_plan, check_plan
from omnigraph.evolve.proposal import SchemaApplied, SchemaPlan, propose_schema
from omnigraph.history.commit import Commit
from omnigraph.history.schemas import read_schema
from omnigraph.publish.repeated_requests import publish_once
from omnigraph.records.frozen import record

if TYPE_CHECKING:
    from omnigraph.publish.write_plan import CommitMetadata


@record
class SchemaRequest:
    """A requested schema change: the new schema or a plan, and whether the history of dropped data may be deleted."""

    new: "SchemaText | SchemaPlan"
    allow_data_loss: bool

    def read(self) -> tuple[str, str, bool]:
        """Return the text of the new schema, its name, and whether the history of dropped data may be deleted."""
        if isinstance(self.new, SchemaPlan):
            return self.new.source, self.new.name, self.allow_data_loss or self.new.allow_data_loss
        return *read_schema_text(self.new), self.allow_data_loss

    def plan(self, handle: Handle) -> SchemaPlan:
        """Return the caller's plan, or plan the change from the newest schema of the branch."""
        if isinstance(self.new, SchemaPlan):
            return self.new.with_data_loss(self.allow_data_loss or self.new.allow_data_loss)
        return plan_schema_change(handle, self.new, allow_data_loss=self.allow_data_loss)


def plan_schema_change(handle: Handle, new: SchemaText, *, allow_data_loss: bool) -> SchemaPlan:
    """Plan the steps from the newest schema of the handle's branch to a new schema."""
    snapshot = handle.latest_snapshot()
    text, name = read_schema_text(new)
    row, contract = snapshot.schema_row, snapshot.schema
    return propose_schema(row, contract, text, name, allow_data_loss=allow_data_loss)


def check_schema_change(handle: Handle, request: SchemaRequest) -> SchemaApplied:
    """Run the checks of a schema change without changing anything."""
    branch, plan = handle.branch_name, request.plan(handle)
    with log_operation("apply_schema", branch) as event, report_missing_branch(handle.branch_state):
        check_plan(handle.branch_state, plan)
    return SchemaApplied(plan, None, branch, event.elapsed_seconds(), dry_run=True)


def apply_schema(handle: Handle, request: SchemaRequest, options: WriteOptions) -> SchemaApplied:
    """Change the schema of the handle's branch, or return the outcome of the same request if it has already run."""
    branch = handle.branch_name
    text, _, loses_data = request.read()
    metadata = options.commit_metadata((SCHEMA_APPLY_OPERATION, branch, text, loses_data))
    with log_operation("apply_schema", branch) as event, report_missing_branch(handle.branch_state):
        applied = publish_once(
            handle.branch_state,
            metadata,
            lambda: _apply_plan(handle, request.plan(handle), options, metadata),
            lambda commit: _recover_outcome(handle, request, commit),
        )
    return replace(applied, elapsed=event.elapsed_seconds())


def _apply_plan(handle: Handle, plan: SchemaPlan, options: WriteOptions, metadata: "CommitMetadata") -> SchemaApplied:
    requirement = handle.require_unchanged(())
    commit = apply_plan(handle.branch_state, plan, metadata, options.requirements(requirement, AttemptCounter()))
    if commit is not None and not requirement.was_checked_for(commit):  # another process has published this request
        raise ReadSetConflict(member="schema", expected=plan.base.hash)
    return SchemaApplied(plan, handle.record_write(commit, requirement), handle.branch_name)


def _recover_outcome(handle: Handle, request: SchemaRequest, commit: Commit) -> SchemaApplied:
    """Return the outcome of the request that published a commit, with a plan from the schema before the commit."""
    handle.refresh()
    text, name, loses_data = request.read()
    row = handle.snapshot.log.tables_and_schema_at(commit.parents[0])[1]
    plan = propose_schema(row, read_schema(handle.store, row), text, name, allow_data_loss=loses_data)
    return SchemaApplied(plan, commit, handle.branch_name, replayed=True)
