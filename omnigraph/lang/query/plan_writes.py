"""The plan of a mutation: its statements in execution order, with every name resolved.

These records are part of the plan that `plan` defines and are imported from there.
"""

from typing import TYPE_CHECKING
from typing import Literal as OneOf

from omnigraph.records.frozen import record

if TYPE_CHECKING:
    from .plan import Predicate, ReadPlan, Value


@record
class Assign:
    """An assignment of a value to a property, or to `from`, `to` or `id`.

    The value is a constant, a parameter or an expression over constants and parameters. In an update, the value may
    also depend on the row.
    """

    name: str
    value: "Value"


@record
class InsertRow:
    """Insert one entity; it is a conflict if the key already exists."""

    kind: OneOf["node", "edge"]
    type_name: str
    assignments: tuple[Assign, ...]


@record
class UpsertRow:
    """Insert one entity, or change the entity with the same key or `id`; unassigned properties keep their values."""

    kind: OneOf["node", "edge"]
    type_name: str
    assignments: tuple[Assign, ...]


@record
class PatchRow:
    """Assign values to the existing entity with this key or `id`; it is an error if there is none."""

    kind: OneOf["node", "edge"]
    type_name: str
    assignments: tuple[Assign, ...]


@record
class UpdateRows:
    """Assign values to properties of all matching entities; a value may depend on the row before the update."""

    type_name: str
    assignments: tuple[Assign, ...]
    where: "Predicate"
    kind: OneOf["node", "edge"] = "node"


@record
class DeleteRows:
    """Delete matching entities.

    Deleting a node also deletes its edges; `cascades` lists the edge types that may be affected.
    """

    kind: OneOf["node", "edge"]
    type_name: str
    where: "Predicate"
    cascades: tuple[str, ...] = ()


@record
class MatchedUpdate:
    """Update the entities that a read returns.

    The first column of the read is the id, and the other columns are the values to assign. The rows are distinct, so
    two rows with the same id assign different values.
    """

    type_name: str
    assignments: tuple[Assign, ...]
    matched: "ReadPlan"
    kind: OneOf["node", "edge"] = "node"


@record
class MatchedDelete:
    """Delete the entities with the ids that the read returns in its only column; see `DeleteRows` for `cascades`."""

    kind: OneOf["node", "edge"]
    type_name: str
    matched: "ReadPlan"
    cascades: tuple[str, ...] = ()


WriteStatement = InsertRow | UpsertRow | PatchRow | UpdateRows | DeleteRows | MatchedUpdate | MatchedDelete


@record
class WritePlan:
    """The statements of a mutation in execution order; each statement sees the changes made by earlier statements."""

    statements: tuple[WriteStatement, ...]
