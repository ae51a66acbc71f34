"""The report on the traces of an entity. A report without traces proves that the entity was erased.

This module only defines the report. It must load quickly, because commands on a server import it.
"""

from dataclasses import dataclass
from typing import Any

from omnigraph.values.table_key import TableKey


@dataclass(frozen=True, slots=True)
class ResidualTrace:
    """A trace of an entity: the file where it was found, and its kind (`row`, `index`, `log` or `bytes`)."""

    name: str
    kind: str
    type_key: TableKey | None = None

    def to_json(self) -> dict[str, Any]:
        """Return the trace as JSON-compatible data."""
        return {"name": self.name, "kind": self.kind, "type_key": self.type_key}


@dataclass(frozen=True, slots=True, repr=False)
class Absence:
    """The traces that a search found, and the amount of data searched. The result is truthy if there are no traces."""

    type_name: str
    entity_id: str
    traces: tuple[ResidualTrace, ...]
    files: int
    bytes: int

    def __bool__(self) -> bool:
        return not self.traces

    def __repr__(self) -> str:
        trace_count = len(self.traces) or "no"
        entity_label = f"{self.type_name} {self.entity_id!r}"
        return f"<Absence: {trace_count} traces of {entity_label} in {self.files:,} files>"

    def to_json(self) -> dict[str, Any]:
        """Return the result as JSON-compatible data."""
        return {
            "type": self.type_name,
            "id": self.entity_id,
            "absent": bool(self),
            "traces": [trace.to_json() for trace in self.traces],
            "files": self.files,
            "bytes": self.bytes,
        }
