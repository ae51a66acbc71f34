"""Migration planning: two schemas in, ordered steps out. Reads no data, changes nothing."""

from .describe import describe_step
from .plan import MigrationPlan, plan_migration
from .steps import Step, UnsupportedChange

__all__ = ["MigrationPlan", "Step", "UnsupportedChange", "describe_step", "plan_migration"]
