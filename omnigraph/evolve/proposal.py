"""Plans for schema changes, and reports on changes that were applied.

Callers can review a plan before applying it, and they receive a report afterward. A plan is valid only for the schema
that it was made for. Planning reads no data and changes nothing.
"""

from dataclasses import dataclass
from typing import Any

from omnigraph.errors.diagnostics import Diagnostic
from omnigraph.history.commit import Commit, SchemaRow
from omnigraph.history.schemas import StoredSchema
from omnigraph.lang.schema import compile_schema
from omnigraph.lang.schema.ir import SchemaIR
from omnigraph.lang.schema.migrate import MigrationPlan, MigrationStep, plan_migration


@dataclass(frozen=True, slots=True)
class SchemaPlan:
    """The migration steps from a branch's current schema to a new schema.

    The plan can be applied only while the branch still has the schema that the plan was made for.
    """

    source: str
    name: str
    base: SchemaRow
    before: StoredSchema
    migration: MigrationPlan
    allow_data_loss: bool = False

    @property
    def supported(self) -> bool:
        """Whether all steps of the plan are supported, so that it can be applied."""
        return self.migration.supported

    @property
    def steps(self) -> tuple[MigrationStep, ...]:
        """The migration steps, in the order in which they run."""
        return self.migration.steps

    @property
    def warnings(self) -> tuple[Diagnostic, ...]:
        """Warnings about parts of the schema source that have no effect."""
        return self.migration.warnings

    @property
    def after(self) -> SchemaIR:
        """The new schema. Retained types and properties keep their identity ids."""
        return self.migration.ir

    def __bool__(self) -> bool:
        return bool(self.steps)

    def __str__(self) -> str:
        return str(self.migration)

    def __repr__(self) -> str:
        support_note = "" if self.supported else ", not supported"
        step_count = f"{len(self.steps)} step{'s'[: len(self.steps) != 1]}"
        return f"<SchemaPlan: {step_count}{support_note}>\n{self}"

    def _repr_html_(self) -> str:
        return self.migration._repr_html_()

    def to_json(self) -> dict[str, Any]:
        """Return the plan as JSON with `supported`, `step_count`, `steps` and `warnings`."""
        return self.migration.to_json()

    def with_data_loss(self, allow: bool) -> "SchemaPlan":
        """Return a copy of the plan that erases (`allow=True`) or keeps the history of dropped data."""
        if allow == self.allow_data_loss:
            return self
        return propose_schema(self.base, self.before, self.source, self.name, allow_data_loss=allow)


@dataclass(frozen=True, slots=True)
class SchemaApplied:
    """The outcome of a schema change. It is truthy if the change created a commit.

    `replayed` is true if an earlier request with the same idempotency key created the commit.
    """

    plan: SchemaPlan
    commit: Commit | None
    branch: str
    elapsed: float = 0.0
    dry_run: bool = False
    replayed: bool = False

    def __bool__(self) -> bool:
        return self.commit is not None

    @property
    def applied(self) -> bool:
        """Whether the branch's schema was changed."""
        return self.commit is not None

    @property
    def steps(self) -> tuple[MigrationStep, ...]:
        """The migration steps that were applied, in the order in which they ran."""
        return self.plan.steps

    @property
    def commit_id(self) -> str | None:
        """The id of the commit, or None if nothing changed."""
        return self.commit.id if self.commit is not None else None

    def __repr__(self) -> str:
        step_count = f"{len(self.steps)} step{'s'[: len(self.steps) != 1]}"
        if self.commit is None:
            outcome_text = f"{step_count} would succeed" if self.dry_run and self.steps else "nothing to change"
            return f"<SchemaApplied: {outcome_text} on {self.branch}>"
        return f"<SchemaApplied: {step_count} on {self.branch}, commit {self.commit_id}>"

    def to_json(self) -> dict[str, Any]:
        """Return the report as JSON. `graph_manifest_version` is null if nothing was written."""
        manifest_version = self.commit.manifest_version if self.commit is not None else None
        plan_members = self.plan.to_json()
        return {
            "supported": plan_members.pop("supported"),
            "applied": self.applied,
            "graph_manifest_version": manifest_version,
            "commit_id": self.commit_id,
            **plan_members,
        }


def propose_schema(
    base_row: SchemaRow,
    base_contract: StoredSchema,
    source: str,
    source_name: str = "schema.pg",
    *,
    allow_data_loss: bool = False,
) -> SchemaPlan:
    """Plan the change from a branch's schema to the schema in `source`.

    Raises a language error if `source` is invalid.
    """
    desired_ir = compile_schema(source, source_name, existing_names=_declared_names(base_contract.ir))
    migration = plan_migration(
        base_contract.ir,
        desired_ir,
        allow_data_loss=allow_data_loss,
        source_name=source_name,
        retired_ids=base_contract.retired_ids,
    )
    return SchemaPlan(source, source_name, base_row, base_contract, migration, allow_data_loss)


def _declared_names(base_ir: SchemaIR) -> set[str]:
    """Return all type and property names in a schema."""
    properties = {property_name for declared in base_ir.type_identities for property_name, _ in declared.property_ids}
    return properties | {declared.name for declared in base_ir.type_identities}
