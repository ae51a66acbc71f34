"""The plan for a mutation: its statements in execution order, with every name resolved.

These records belong to the plan that `plan` defines. Other modules import them from `plan`.
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
    """Insert one entity. If its key already exists, the insert is a conflict."""

    kind: OneOf["node", "edge"]
    type_name: str
    assignments: tuple[Assign, ...]


@record
class UpsertRow:
    """Insert one entity, or update the entity with the same key or `id`. Unassigned properties keep their values."""

    kind: OneOf["node", "edge"]
    type_name: str
    assignments: tuple[Assign, ...]


@record
class PatchRow:
    """Update the existing entity with this key or `id`. It is an error if there is no such entity."""

    kind: OneOf["node", "edge"]
    type_name: str
    assignments: tuple[Assign, ...]


@record
class UpdateRows:
    """Update all matching entities. A value may depend on the row as it was before the update."""

    type_name: str
    assignments: tuple[Assign, ...]
    where: "Predicate"
    kind: OneOf["node", "edge"] = "node"


@record
class DeleteRows:
    """Delete matching entities.

    Deleting a node also deletes its edges. `cascades` lists the edge types that may be affected.
    """

    kind: OneOf["node", "edge"]
    type_name: str
    where: "Predicate"
    cascades: tuple[str, ...] = ()


@record
class MatchedUpdate:
    """Update the entities that a read returns.

    The read's first column is the id, and its other columns are the values to assign. The rows are distinct, so two
    rows with the same id always assign different values.
    """

    type_name: str
    assignments: tuple[Assign, ...]
    matched: "ReadPlan"
    kind: OneOf["node", "edge"] = "node"


@record
class MatchedDelete:
    """Delete the entities whose ids the read returns in its only column. See `DeleteRows` for `cascades`."""

    kind: OneOf["node", "edge"]
    type_name: str
    matched: "ReadPlan"
    cascades: tuple[str, ...] = ()


WriteStatement = InsertRow | UpsertRow | PatchRow | UpdateRows | DeleteRows | MatchedUpdate | MatchedDelete


@record
class WritePlan:
    """A mutation's statements in execution order. Each statement sees the changes made by earlier statements."""

    statements: tuple[WriteStatement, ...]
