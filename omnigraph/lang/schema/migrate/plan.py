"""Plans the migration from an accepted schema to a desired one. Reads and changes no data."""

from omnigraph.diagnostics import Diagnostic
from omnigraph.errors import SchemaUnsupported
from omnigraph.lang.schema.catalog import Catalog
from omnigraph.lang.schema.identity import new_identity, resolve_identity
from omnigraph.lang.schema.ir import SchemaIR, ir_hash
from omnigraph.lang.schema.shape import Json
from omnigraph.record import record

from .steps import Mode, Step, UnsupportedChange, unsupported
from .types import all_steps

NO_DOMAIN = "0" * 26  # for comparing two texts outside any graph


@record
class MigrationPlan:
    """Ordered steps to a new schema, `ir`, in which everything that remains keeps its identity.

    `supported` is false if any step is an `unsupported_change`; then nothing may be applied.
    """

    supported: bool
    steps: tuple[Step, ...]
    warnings: tuple[Diagnostic, ...]
    ir: SchemaIR

    def to_json(self) -> Json:
        """Return the plan for programs: `supported`, `step_count`, `steps`, `warnings`."""
        return {
            "supported": self.supported,
            "step_count": len(self.steps),
            "steps": [step.to_json() for step in self.steps],
            "warnings": [one.to_json() for one in self.warnings],
        }

    def refusal(self) -> SchemaUnsupported | None:
        """Return the error of an unsupported plan, with the first refused step, or None."""
        refused = [step for step in self.steps if isinstance(step, UnsupportedChange)]
        if not refused:
            return None
        first = refused[0]
        more = f" (and {len(refused) - 1} more)" if len(refused) > 1 else ""
        message = f"[{first.code}] {first.entity}: {first.reason}{more}"
        return SchemaUnsupported(message, steps=refused)


def plan_migration(
    accepted: SchemaIR | Catalog,
    desired: Catalog,
    *,
    allow_data_loss: bool = False,
    name: str = "schema.pg",
) -> MigrationPlan:
    """Plan the migration from an accepted schema to a desired one.

    `allow_data_loss` makes every drop also remove history. Raise `IdentityError` if a rename hint
    cannot be followed; an unsupported change is a step, not an error.

    >>> from ..catalog import Node
    >>> plan = plan_migration(Catalog(), Catalog(nodes=(Node("Lamp", ()),)))
    >>> [step.to_json() for step in plan.steps]
    [{'kind': 'add_type', 'type_kind': 'node', 'name': 'Lamp', 'tier': 'safe'}]
    """
    before = new_identity(accepted, NO_DOMAIN) if isinstance(accepted, Catalog) else accepted
    resolved = resolve_identity(before, desired, name)
    mode: Mode = "hard" if allow_data_loss else "soft"
    steps = tuple(all_steps(before, resolved.ir, mode)) or _unexplained(before, resolved.ir)
    supported = not any(isinstance(step, UnsupportedChange) for step in steps)
    return MigrationPlan(supported, steps, resolved.warnings, resolved.ir)


def _unexplained(before: SchemaIR, after: SchemaIR) -> tuple[Step, ...]:
    """Refuse a difference that no comparison detected: it must never count as "nothing to do"."""
    if ir_hash(before) == ir_hash(after):
        return ()
    return (unsupported("OG-BC-106", "schema", "the schemas differ, but no step expresses how"),)
