"""Plan the migration from an accepted schema to a desired one, without reading or changing data."""

from omnigraph.errors import SchemaUnsupported
from omnigraph.errors.diagnostics import Diagnostic
from omnigraph.lang.schema.assign_identity import new_identity, resolve_identity
from omnigraph.lang.schema.canonical_shape import JsonObject
from omnigraph.lang.schema.catalog import Catalog
from omnigraph.lang.schema.ir import SchemaIR, hash_ir
from omnigraph.records.frozen import record

from .describe_steps import describe_step
from .plan_table import plan_table
from .steps import DropMode, MigrationStep, UnsupportedChange, make_unsupported_change
from .types import all_steps

PLACEHOLDER_DOMAIN = "0" * 26  # placeholder for comparing two schemas that do not belong to a graph


@record
class MigrationPlan:
    """The steps that lead to the new schema, `ir`, in execution order. Remaining types and properties keep their ids.

    `supported` is false if any step is an `unsupported_change`. An unsupported plan cannot be applied. A plan is truthy
    if it has any steps, and `str(plan)` describes one step per line.
    """

    supported: bool
    steps: tuple[MigrationStep, ...]
    warnings: tuple[Diagnostic, ...]
    ir: SchemaIR

    def __bool__(self) -> bool:
        return bool(self.steps)

    def __str__(self) -> str:
        return "\n".join(map(describe_step, self.steps)) or "nothing to change"

    def __repr__(self) -> str:
        support_note = "" if self.supported else ", not supported"
        step_count = f"{len(self.steps)} step{'s'[: len(self.steps) != 1]}"
        return f"<{type(self).__name__}: {step_count}{support_note}>\n{self}"

    def _repr_html_(self) -> str:
        return plan_table(self.steps)

    def to_json(self) -> JsonObject:
        """Return the plan as a JSON object with the members `supported`, `step_count`, `steps` and `warnings`."""
        return {
            "supported": self.supported,
            "step_count": len(self.steps),
            "steps": [step.to_json() for step in self.steps],
            "warnings": [diagnostic.to_json() for diagnostic in self.warnings],
        }

    def refusal(self) -> SchemaUnsupported | None:
        """Return the error for the first unsupported step, or None if the plan is supported."""
        refused_steps = [step for step in self.steps if isinstance(step, UnsupportedChange)]
        if not refused_steps:
            return None
        first_step = refused_steps[0]
        remaining_note = f" (and {len(refused_steps) - 1} more)" if len(refused_steps) > 1 else ""
        message = f"[{first_step.code}] {first_step.entity}: {first_step.reason}{remaining_note}"
        return SchemaUnsupported(message, steps=refused_steps)


def plan_migration(
    accepted: SchemaIR | Catalog,
    desired: Catalog,
    *,
    allow_data_loss: bool = False,
    source_name: str = "schema.pg",
    retired_ids: frozenset[int] = frozenset(),
) -> MigrationPlan:
    """Plan the migration from an accepted schema to a desired one.

    If `allow_data_loss` is true, every drop also removes history. `retired_ids` are the ids of dropped types and
    properties, which are never assigned again. Raise `IdentityError` if a rename hint cannot be applied. An unsupported
    change becomes a step in the plan rather than an error.

    >>> from ..catalog import NodeType
    >>> plan = plan_migration(Catalog(), Catalog(nodes=(NodeType("Lamp", ()),)))
    >>> [step.to_json() for step in plan.steps]
    [{'kind': 'add_type', 'type_kind': 'node', 'name': 'Lamp', 'tier': 'safe'}]
    """
    accepted_ir = new_identity(accepted, PLACEHOLDER_DOMAIN) if isinstance(accepted, Catalog) else accepted
    resolved_identity = resolve_identity(accepted_ir, desired, source_name, retired_ids)
    drop_mode: DropMode = "hard" if allow_data_loss else "soft"
    steps = tuple(all_steps(accepted_ir, resolved_identity.ir, drop_mode)) or _refuse_unexplained_difference(
        accepted_ir, resolved_identity.ir
    )
    supported = not any(isinstance(step, UnsupportedChange) for step in steps)
    return MigrationPlan(supported, steps, resolved_identity.warnings, resolved_identity.ir)


def _refuse_unexplained_difference(old_ir: SchemaIR, new_ir: SchemaIR) -> tuple[MigrationStep, ...]:
    """Return an unsupported step if the schemas differ although no comparison found a change."""
    if hash_ir(old_ir) == hash_ir(new_ir):
        return ()
    reason = "no migration step covers this difference between the schemas"
    return (make_unsupported_change("OG-BC-106", "schema", reason),)
