"""A planned schema change, and the report of an applied one.

Owns the plan that a caller reviews before applying it, bound to the schema it was made for, and
the report afterwards. Reads no data and changes nothing.
"""

from dataclasses import dataclass
from html import escape
from typing import Any

from omnigraph.diagnostics import Diagnostic
from omnigraph.history.commit import Commit, SchemaRow
from omnigraph.history.schemas import Contract
from omnigraph.lang.schema import compile_schema
from omnigraph.lang.schema.ir import SchemaIR
from omnigraph.lang.schema.migrate import MigrationPlan, Step, describe_step, plan_migration


@dataclass(frozen=True, slots=True)
class SchemaPlan:
    """The steps from the schema of a branch to another one.

    It can be applied as long as the branch has the schema it was made for.
    """

    source: str
    name: str
    base: SchemaRow
    before: Contract
    migration: MigrationPlan
    allow_data_loss: bool = False

    @property
    def supported(self) -> bool:
        """Whether the plan can be applied at all."""
        return self.migration.supported

    @property
    def steps(self) -> tuple[Step, ...]:
        """The steps in order."""
        return self.migration.steps

    @property
    def warnings(self) -> tuple[Diagnostic, ...]:
        """Hints in the source text that have no effect."""
        return self.migration.warnings

    @property
    def after(self) -> SchemaIR:
        """The new schema, in which everything retained keeps its number."""
        return self.migration.ir

    def __bool__(self) -> bool:
        return bool(self.steps)

    def __str__(self) -> str:
        return "\n".join(map(describe_step, self.steps)) or "nothing to change"

    def __repr__(self) -> str:
        state = "" if self.supported else ", not supported"
        return f"<SchemaPlan: {len(self.steps)} step{'s'[: len(self.steps) != 1]}{state}>\n{self}"

    def _repr_html_(self) -> str:
        lines = "".join(f"<li>{escape(describe_step(one))}</li>" for one in self.steps)
        return f"<ol>{lines}</ol>" if lines else "<p>nothing to change</p>"

    def to_json(self) -> dict[str, Any]:
        """Return the plan as JSON: `supported`, `step_count`, `steps`, `warnings`."""
        return self.migration.to_json()

    def losing(self, allow: bool) -> "SchemaPlan":
        """Return the same change with or without erasing the history of dropped data."""
        if allow == self.allow_data_loss:
            return self
        return propose(self.base, self.before, self.source, self.name, allow_data_loss=allow)


@dataclass(frozen=True, slots=True)
class SchemaApplied:
    """The outcome of a schema change. True when it made a commit."""

    plan: SchemaPlan
    commit: Commit | None
    branch: str
    elapsed: float = 0.0
    dry_run: bool = False

    def __bool__(self) -> bool:
        return self.commit is not None

    @property
    def applied(self) -> bool:
        """Whether the schema of the branch was changed."""
        return self.commit is not None

    @property
    def steps(self) -> tuple[Step, ...]:
        """The applied steps in order."""
        return self.plan.steps

    @property
    def commit_id(self) -> str | None:
        """Id of the commit, or None when nothing changed."""
        return self.commit.id if self.commit is not None else None

    def __repr__(self) -> str:
        count = f"{len(self.steps)} step{'s'[: len(self.steps) != 1]}"
        if self.commit is None:
            why = f"{count} would succeed" if self.dry_run and self.steps else "nothing to change"
            return f"<SchemaApplied: {why} on {self.branch}>"
        return f"<SchemaApplied: {count} on {self.branch}, commit {self.commit_id}>"

    def to_json(self) -> dict[str, Any]:
        """Return the report as JSON; `graph_manifest_version` is null if nothing was written."""
        version = self.commit.manifest_version if self.commit is not None else None
        facts = self.plan.to_json()
        return {
            "supported": facts.pop("supported"),
            "applied": self.applied,
            "graph_manifest_version": version,
            "commit_id": self.commit_id,
            **facts,
        }


def propose(
    base: SchemaRow,
    before: Contract,
    source: str,
    name: str = "schema.pg",
    *,
    allow_data_loss: bool = False,
) -> SchemaPlan:
    """Plan the change from the schema of a branch to a source text; raises language errors."""
    desired = compile_schema(source, name, existing=_names(before.ir))
    plan = plan_migration(before.ir, desired, allow_data_loss=allow_data_loss, name=name)
    return SchemaPlan(source, name, base, before, plan, allow_data_loss)


def _names(accepted: SchemaIR) -> set[str]:
    """Return all type and property names of a schema."""
    properties = {name for declared in accepted.types for name, _ in declared.properties}
    return properties | {declared.name for declared in accepted.types}
