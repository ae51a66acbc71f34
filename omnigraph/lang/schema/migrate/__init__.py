"""Plan migrations: compare two schemas and return ordered steps, without reading or changing data."""

from .describe_steps import describe_step
from .plan import MigrationPlan, plan_migration
from .steps import MigrationStep, UnsupportedChange

__all__ = ["MigrationPlan", "MigrationStep", "UnsupportedChange", "describe_step", "plan_migration"]
