"""A graph commit: its author, the tables that it changed, and its parents.

This module defines the commit record and its JSON form. A commit records what it changed. The state at any commit can
therefore be derived from the log alone: neither an old manifest nor the commit's branch is needed.
"""

from collections.abc import Mapping
from dataclasses import field
from datetime import UTC, datetime
from typing import Any

from omnigraph.records.frozen import record
from omnigraph.values.table_key import TableKey

MAINTENANCE_OPERATIONS = frozenset({"optimize", "ensure_indices"})  # these operations change no entities


@record
class TableEntry:
    """A table's entry in a branch state.

    `version` is a counter for display only. `content_id` is the last commit that changed the table's content. Entries
    with equal content ids have the same content. `lance_version` is the number of the exact Lance version that the
    entry refers to.
    """

    key: TableKey
    location: str
    version: int
    lance_version: int
    content_id: str
    row_count: int
    branch: str | None = None
    max_field_id: int = 0

    def to_json(self) -> list[Any]:
        """Return the compact form. Lance versions are stored as strings, because they can exceed 2^63."""
        return [
            self.location,
            self.version,
            str(self.lance_version),
            self.content_id,
            self.row_count,
            self.branch,
            self.max_field_id,
        ]

    @classmethod
    def from_json(cls, table_key: TableKey, compact_form: list[Any]) -> "TableEntry":
        """Parse the compact form of a table entry."""
        location, version, lance_version, content_id, row_count, branch, max_field_id = compact_form
        detached_version = int(lance_version)
        return cls(table_key, location, version, detached_version, content_id, row_count, branch, max_field_id)


TableMap = Mapping[TableKey, TableEntry]


@record
class SchemaRow:
    """The schema used to read a state."""

    hash: str
    location: str


@record
class Commit:
    """The record of one published change. `tables` holds the changed tables, with None for a dropped table.

    `streams` holds the tokens of the stream batches that the commit loaded, and `note` records the result of the store
    probe that ran when the graph was created. `details` records how a merge resolved conflicts, or which commits
    a revert, cherry-pick or reset refers to. `files` holds the checksums of the files that the commit adds, as packed
    by `file_checksums`. Times are in microseconds since 1970. `created_at` is set before the write changes anything and
    stays the same across retries, whereas `published_at` is the time of the attempt that succeeded. No decision depends
    on these times.
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
    tables: Mapping[TableKey, TableEntry | None] = field(default_factory=dict)
    key: str | None = None
    request: str | None = None
    streams: Mapping[str, str] = field(default_factory=dict)
    note: str | None = None
    details: Mapping[str, Any] = field(default_factory=dict)
    files: Mapping[str, Any] = field(default_factory=dict)

    def __repr__(self) -> str:
        labels = {"by": self.actor, "on": self.branch, "message": self.message}
        labeled_values = [f"{label} {value!r}" for label, value in labels.items() if value is not None]
        description = ", ".join([f"{self.published:%Y-%m-%d %H:%M:%S} UTC", *labeled_values])
        return f"<Commit {self.id}: {self.operation}, {description}>"

    def _repr_html_(self) -> str:
        from .commit_card import commit_card

        return commit_card(self)

    @property
    def parent(self) -> str | None:
        """The first parent, or None for the graph's first commit."""
        return self.parents[0] if self.parents else None

    @property
    def created(self) -> datetime:
        """The time at which the write began, in UTC."""
        return datetime.fromtimestamp(self.created_at / 1_000_000, UTC)

    @property
    def published(self) -> datetime:
        """The time at which the commit became visible, in UTC."""
        return datetime.fromtimestamp(self.published_at / 1_000_000, UTC)

    @property
    def merged_parent(self) -> str | None:
        """The source commit of a merge, or None if this commit is not a merge."""
        return self.parents[1] if len(self.parents) > 1 else None

    def to_json(self) -> dict[str, Any]:
        """Return the metadata for the commit's row, omitting members without a value."""
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
        tables = {table_key: entry and entry.to_json() for table_key, entry in self.tables.items()}
        return {member_name: value for member_name, value in facts.items() if value is not None} | {"tables": tables}

    @classmethod
    def from_json(
        cls, commit_id: str, branch_name: str | None, manifest_version: int, stored_facts: Mapping[str, Any]
    ) -> "Commit":
        """Parse a commit from its row, ignoring unknown members."""
        schema = stored_facts.get("schema")
        packed_tables = stored_facts.get("tables", {})
        return cls(
            id=commit_id,
            parents=tuple(stored_facts["parents"]),
            operation=stored_facts["operation"],
            branch=branch_name,
            manifest_version=manifest_version,
            created_at=stored_facts["created_at"],
            published_at=stored_facts["published_at"],
            actor=stored_facts.get("actor_id"),
            message=stored_facts.get("message"),
            schema=SchemaRow(*schema) if schema else None,
            tables={
                (table_key := TableKey(key_text)): packed_entry and TableEntry.from_json(table_key, packed_entry)
                for key_text, packed_entry in packed_tables.items()
            },
            key=stored_facts.get("idempotency_key"),
            request=stored_facts.get("request_hash"),
            streams=stored_facts.get("streams", {}),
            note=stored_facts.get("note"),
            details=stored_facts.get("details", {}),
            files=stored_facts.get("files", {}),
        )
