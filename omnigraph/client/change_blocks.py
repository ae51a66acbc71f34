"""Blocks and pages of changes that a server sends. They have the same members as in an embedded graph.

A block's commit, and the schema that determines the types of values, are requested on first use.
"""

import json
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from omnigraph.history.commit import Commit
from omnigraph.history.entities import EntityChange
from omnigraph.lang.schema.catalog import EdgeType, NodeType
from omnigraph.records.cached_property import cached_property

from .answers import Document, read_commit
from .handle import RemoteHandle
from .schema_changes import ServedSchemaChange, read_schema_change
from .wire_values import decode_properties

if TYPE_CHECKING:
    import pyarrow as pa

_TEXT_COLUMNS = ("commit_id", "kind", "type", "id", "op", "before", "after")


class RemoteBlockChanges:
    """A commit's changes, in order. They can be iterated over more than once."""

    def __init__(self, handle: RemoteHandle, document: Document) -> None:
        self._handle, self._document = handle, document
        self._commit_id = document["cause"]["graph_commit_id"]

    def __iter__(self) -> Iterator[EntityChange]:
        return map(self._read_change, self._document["changes"])

    def __len__(self) -> int:
        return len(self._document["changes"])

    def __repr__(self) -> str:
        return f"<{len(self)} change{'s'[: len(self) != 1]}>"

    @property
    def schema_change(self) -> ServedSchemaChange | None:
        """How the commit changed the schema, or None."""
        return read_schema_change(self._document, self._commit_id)

    def _read_change(self, change: Document) -> EntityChange:
        entity_type = self._find_type(change["kind"], change["type"]["name"])
        before, after = change.get("before"), change.get("after")
        ends_before, ends_after = _read_endpoints(before), _read_endpoints(after)
        values_before, values_after = (
            None if image is None else decode_properties(entity_type, image["properties"]) for image in (before, after)
        )
        changed = () if before is None or after is None else _compare_images(before, after)
        return EntityChange(
            change["kind"],
            change["type"]["name"],
            change["id"],
            change["op"],
            values_before,
            values_after,
            changed,
            ends_before,
            ends_after,
        )

    def _find_type(self, kind: str, type_name: str) -> NodeType | EdgeType | None:
        """Return a type from the commit's schema or, if the commit dropped the type, from its parent's schema."""
        parent_id = self._document["cause"].get("parent_commit_id")
        for commit_id in (self._commit_id, parent_id):
            if commit_id is None:
                continue
            catalog = self._handle.pin(commit_id).schema_ir().catalog
            entity_type = catalog.edge(type_name) if kind == "edge" else catalog.node(type_name)
            if entity_type is not None:
                return entity_type
        return None


def _read_endpoints(image: Document | None) -> dict[str, str] | None:
    endpoints = None if image is None else image.get("endpoints")
    return None if endpoints is None else {"src": endpoints["from"], "dst": endpoints["to"]}


def _compare_images(before: Document, after: Document) -> tuple[str, ...]:
    """Return the names of the properties that differ, preceded by `src` and `dst` if the endpoints differ."""
    old, new = before["properties"], after["properties"]
    old_ends, new_ends = _read_endpoints(before) or {}, _read_endpoints(after) or {}
    ends = tuple(name for name in ("src", "dst") if old_ends.get(name) != new_ends.get(name))
    names = list(dict.fromkeys([*new, *old]))
    return ends + tuple(name for name in names if old.get(name) != new.get(name))


class RemoteBlock:
    """All or part of a commit's changes relative to its first parent. `cursor` points past the whole commit."""

    def __init__(self, handle: RemoteHandle, document: Document, cursor: str | None = None) -> None:
        self._handle, self._document, self.cursor = handle, document, cursor

    def __repr__(self) -> str:
        schema_note = "" if self.schema_change is None else ", schema change"
        return f"<ChangeBlock {self._document['cause']['graph_commit_id']}: {self.changes!r}{schema_note}>"

    @cached_property
    def commit(self) -> Commit:
        """The commit that made the changes."""
        return read_commit(self._handle.exchange.get("commits", self._document["cause"]["graph_commit_id"]))

    @cached_property
    def changes(self) -> RemoteBlockChanges:
        """The changes, ordered by kind (nodes first), type and id."""
        return RemoteBlockChanges(self._handle, self._document)

    @property
    def documents(self) -> tuple[Document, ...]:
        """The changes as JSON."""
        return tuple(self._document["changes"])

    @property
    def schema_change(self) -> ServedSchemaChange | None:
        """How the commit changed the schema, or None."""
        return self.changes.schema_change

    def to_json(self) -> Document:
        """Return the block as one JSON document."""
        return self._document

    def to_arrow(self) -> "pa.RecordBatch":
        """Return the changes as rows. The states of an entity before and after its change are JSON strings."""
        import pyarrow as pa

        commit_id = self._document["cause"]["graph_commit_id"]
        rows = [
            {
                "commit_id": commit_id,
                "type": change["type"]["name"],
                **{name: change[name] for name in ("kind", "id", "op")},
                **{name: _write_json(change[name]) for name in ("before", "after") if name in change},
            }
            for change in self.documents
        ]
        schema = pa.schema([(name, pa.string()) for name in _TEXT_COLUMNS])
        if "schema_change" in self._document:
            schema = schema.with_metadata({"schema_change": _write_json(self._document["schema_change"])})
        return pa.RecordBatch.from_pylist(rows, schema=schema)


def _write_json(document: Any) -> str:
    return json.dumps(document, ensure_ascii=False, separators=(",", ":"))


class RemoteChangePage:
    """A page of the feed. It has a page token if it ends inside a commit, and a cursor otherwise."""

    def __init__(self, handle: RemoteHandle, document: Mapping[str, Any]) -> None:
        self._document = document
        self.next_page_token: str | None = document.get("next_page_token")
        self.cursor: str | None = document.get("cursor")
        self.caught_up: bool | None = document.get("caught_up")
        self.blocks = tuple(RemoteBlock(handle, block, self.cursor) for block in document["blocks"])

    def __repr__(self) -> str:
        facts = {"next_page_token": self.next_page_token, "cursor": self.cursor, "caught_up": self.caught_up}
        shown = "".join(f", {name}={value!r}" for name, value in facts.items() if value is not None)
        return f"RemoteChangePage(blocks={len(self.blocks)}{shown})"

    def to_json(self) -> Mapping[str, Any]:
        """Return the page as one JSON document."""
        return self._document


class RemoteCommitPage:
    """A page of one commit's changes. The last page has no `next_page_token`."""

    def __init__(self, handle: RemoteHandle, document: Mapping[str, Any]) -> None:
        self._document = document
        self.part = RemoteBlock(handle, document)
        self.next_page_token: str | None = document.get("next_page_token")

    def __repr__(self) -> str:
        token = "" if self.next_page_token is None else f", next_page_token={self.next_page_token!r}"
        return f"RemoteCommitPage({self.part!r}{token})"

    @property
    def commit(self) -> Commit:
        """The commit that made the changes."""
        return self.part.commit

    @property
    def changes(self) -> tuple[EntityChange, ...]:
        """The changes on this page."""
        return tuple(self.part.changes)

    @property
    def schema_change(self) -> ServedSchemaChange | None:
        """The commit's schema changes. Set only on the first page."""
        return self.part.schema_change

    def to_json(self) -> Mapping[str, Any]:
        """Return the page as one JSON document."""
        return self._document
