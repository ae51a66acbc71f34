"""Schema changes as a server sends them: each step as a description and as JSON."""

from typing import Any, ClassVar, Literal

from omnigraph.records.frozen import record

from .answers import Document


@record
class ServedSchemaChange:
    """The schema changes in a commit, a diff or a merge, as sent by a server.

    >>> change = ServedSchemaChange("01J", {"steps": [{"kind": "rename_type", "description": "rename Lamp to Light"}]})
    >>> change.op, change.descriptions
    ('schema', ('rename Lamp to Light',))
    """

    op: ClassVar[Literal["schema"]] = "schema"
    commit_id: str
    document: Document

    @property
    def steps(self) -> tuple[Document, ...]:
        """The steps, as JSON."""
        return tuple(self.document["steps"])

    @property
    def descriptions(self) -> tuple[str, ...]:
        """A description of each step, one line per step."""
        return tuple(step["description"] for step in self.steps)

    def __str__(self) -> str:
        return "\n".join(self.descriptions)

    def to_json(self) -> Any:
        """Return the change as JSON."""
        return self.document


def read_schema_change(document: Document, commit_id: str) -> ServedSchemaChange | None:
    """Parse the schema change in a response; return None if there is none."""
    return ServedSchemaChange(commit_id, document["schema_change"]) if document.get("schema_change") else None
