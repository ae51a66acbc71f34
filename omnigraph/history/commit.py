"""A graph commit: who changed which tables, on top of what.

Owns the record and its JSON form. A commit carries what it changed, so the state at any commit
follows from the log alone, without old manifests and without the branch that made it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from datetime import UTC, datetime
from typing import Any

from omnigraph.errors import UsageError


@dataclass(frozen=True, slots=True)
class TableEntry:
    """A table as recorded in a state.

    `version` is a counter for display. Equality of content is decided by `content_id`, the commit
    that last changed the table logically; `lance_version` is the exact detached version.
    """

    key: str
    location: str
    version: int
    lance_version: int
    content_id: str
    rows: int
    branch: str | None = None
    max_field_id: int = 0

    def to_json(self) -> list[Any]:
        """Return the compact form; Lance versions exceed 2^63, so they are stored as text."""
        return [
            self.location,
            self.version,
            str(self.lance_version),
            self.content_id,
            self.rows,
            self.branch,
            self.max_field_id,
        ]

    @classmethod
    def from_json(cls, key: str, facts: list[Any]) -> "TableEntry":
        """Parse the compact form of a table entry."""
        location, version, lance_version, content_id, rows, branch, max_field_id = facts
        number = int(lance_version)
        return cls(key, location, version, number, content_id, rows, branch, max_field_id)


TableMap = Mapping[str, TableEntry]


@dataclass(frozen=True, slots=True)
class SchemaRow:
    """The schema that a state is read with."""

    hash: str
    location: str


@dataclass(frozen=True, slots=True)
class Commit:
    """One publish. `tables` holds what changed; None marks a dropped table.

    `streams` are the tokens of the batches it loaded, `note` is what the engine learned about the
    store, `details` how a merge was decided, `files` the checksums of the files it adds, as packed
    by `file_checksums`, `graph` the handle that returned it. Times are microseconds since 1970:
    `created_at` was taken before the first effect and survives retries; `published_at` belongs to
    the attempt that succeeded. No decision depends on them.
    """

    id: str
    parents: tuple[str, ...]
    operation: str
    branch: str | None
    manifest_version: int
    created_at: int
    published_at: int
    actor: str | None = None
    message: str | None = None
    schema: SchemaRow | None = None
    tables: Mapping[str, TableEntry | None] = field(default_factory=dict)
    key: str | None = None
    request: str | None = None
    streams: Mapping[str, str] = field(default_factory=dict)
    note: str | None = None
    details: Mapping[str, Any] = field(default_factory=dict)
    files: Mapping[str, Any] = field(default_factory=dict)
    graph: Any = field(default=None, compare=False, repr=False)

    def __repr__(self) -> str:
        told = {"by": self.actor, "on": self.branch, "message": self.message}
        facts = [f"{name} {value!r}" for name, value in told.items() if value is not None]
        what = ", ".join([f"{self.published:%Y-%m-%d %H:%M:%S} UTC", *facts])
        return f"<Commit {self.id}: {self.operation}, {what}>"

    @property
    def parent(self) -> str | None:
        """The first parent; None for the first commit of the graph."""
        return self.parents[0] if self.parents else None

    @property
    def created(self) -> datetime:
        """When the write began, in UTC."""
        return datetime.fromtimestamp(self.created_at / 1_000_000, UTC)

    @property
    def published(self) -> datetime:
        """When it became visible, in UTC."""
        return datetime.fromtimestamp(self.published_at / 1_000_000, UTC)

    @property
    def merged_parent(self) -> str | None:
        """The commit that a merge brought in."""
        return self.parents[1] if len(self.parents) > 1 else None

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle a commit without the handle that returned it."""
        return Commit, tuple(getattr(self, one.name) for one in fields(self) if one.compare)

    def changes(self, **filters: Any) -> Any:
        """Return what it changed against its first parent; filter by `types`, `kinds`, `ops`."""
        if self.graph is None:
            raise UsageError(reason=f"commit {self.id} was not returned by a graph handle")
        return self.graph.changes_of_commit(self.id, **filters)

    def to_json(self) -> dict[str, Any]:
        """Return the metadata of the commit's row; absent members are omitted."""
        facts = {
            "parents": list(self.parents),
            "operation": self.operation,
            "created_at": self.created_at,
            "published_at": self.published_at,
            "actor_id": self.actor,
            "message": self.message,
            "schema": [self.schema.hash, self.schema.location] if self.schema else None,
            "idempotency_key": self.key,
            "request_hash": self.request,
            "streams": dict(self.streams) or None,
            "note": self.note,
            "details": dict(self.details) or None,
            "files": dict(self.files) or None,
        }
        tables = {key: one and one.to_json() for key, one in self.tables.items()}
        return {name: value for name, value in facts.items() if value is not None} | {
            "tables": tables
        }

    @classmethod
    def from_json(
        cls, id: str, branch: str | None, manifest_version: int, facts: Mapping[str, Any]
    ) -> "Commit":
        """Parse the commit of a row; unknown members are ignored."""
        schema = facts.get("schema")
        entries = facts.get("tables", {})
        return cls(
            id=id,
            parents=tuple(facts["parents"]),
            operation=facts["operation"],
            branch=branch,
            manifest_version=manifest_version,
            created_at=facts["created_at"],
            published_at=facts["published_at"],
            actor=facts.get("actor_id"),
            message=facts.get("message"),
            schema=SchemaRow(*schema) if schema else None,
            tables={k: v and TableEntry.from_json(k, v) for k, v in entries.items()},
            key=facts.get("idempotency_key"),
            request=facts.get("request_hash"),
            streams=facts.get("streams", {}),
            note=facts.get("note"),
            details=facts.get("details", {}),
            files=facts.get("files", {}),
        )
