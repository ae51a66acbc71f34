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
    """An assignment of a value to a property, or to `from` or `to`.

    The value is a constant, a parameter or an expression over constants and parameters. In a `MatchedUpdate`, the value
    may also depend on the matched row.
    """

    name: str
    value: "Value"


@record
class InsertRow:
    """Insert one entity; a node with a key replaces an existing row with the same id."""

    kind: OneOf["node", "edge"]
    type_name: str
    assignments: tuple[Assign, ...]


@record
class UpdateRows:
    """Assign constants to properties of all matching nodes."""

    type_name: str
    assignments: tuple[Assign, ...]
    where: "Predicate"


@record
class DeleteRows:
    """Delete matching entities; deleting nodes also deletes their edges, whose types are in `cascades`."""

    kind: OneOf["node", "edge"]
    type_name: str
    where: "Predicate"
    cascades: tuple[str, ...] = ()


@record
class MatchedUpdate:
    """Update the nodes that a read returns.

    The first column of the read is the id, and the other columns are the values to assign. The rows are distinct, so
    two rows with the same id assign different values.
    """

    type_name: str
    assignments: tuple[Assign, ...]
    matched: "ReadPlan"


@record
class MatchedDelete:
    """Delete the entities whose ids the read returns in its only column; see `DeleteRows` for `cascades`."""

    kind: OneOf["node", "edge"]
    type_name: str
    matched: "ReadPlan"
    cascades: tuple[str, ...] = ()


WriteStatement = InsertRow | UpdateRows | DeleteRows | MatchedUpdate | MatchedDelete


@record
class WritePlan:
    """The statements of a mutation in execution order; each one sees the changes of earlier ones."""

    statements: tuple[WriteStatement, ...]
