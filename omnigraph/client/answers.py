"""Build the objects of the public API from the JSON that a server returns.

The classes are those of an embedded graph, so that callers can treat both kinds of graphs the same way. This module
sends no requests.
"""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from omnigraph.api.results.receipt import Receipt
from omnigraph.history.branch_info import BranchInfo
from omnigraph.history.commit import Commit, TableEntry
from omnigraph.history.tags import Tag
from omnigraph.values.table_key import TableKey

Document = Mapping[str, Any]


def read_commit(document: Document) -> Commit:
    """Parse a commit from its JSON; `types` is optional."""
    parents = (document["parent_commit_id"], document["merged_parent_commit_id"])
    return Commit(
        id=document["graph_commit_id"],
        parents=tuple(parent for parent in parents if parent is not None),
        operation=document["operation"],
        branch=document["graph_branch"],
        manifest_version=document["graph_manifest_version"],
        created_at=document["created_at"],
        published_at=document["published_at"],
        actor=document["actor_id"],
        message=document.get("message"),
        tables=dict(_read_table(table) for table in document.get("types", ())),
        note=document.get("note"),
        details=document.get("details", {}),
    )


def read_optional_commit(document: Document | None) -> Commit | None:
    """Parse the commit in a response; return None if nothing changed."""
    return None if document is None else read_commit(document)


def _read_table(document: Document) -> tuple[TableKey, TableEntry | None]:
    key = TableKey.of(document["entity_kind"], document["type_name"])
    version, row_count = document["published_dataset_version"], document["entity_count"]
    return key, None if version is None else TableEntry(key, "", version, 0, "", row_count)


def read_receipt(document: Document, *, elapsed: float, replayed: bool = False) -> Receipt:
    """Parse the receipt of a mutation, of written records or of a transaction."""
    return Receipt(
        read_optional_commit(document["commit"]),
        document.get("nodes", {}),
        document.get("edges", {}),
        branch=document["branch"],
        elapsed=elapsed,
        ids=document.get("ids", {}),
        query_name=document.get("query_name"),
        replayed=replayed,
    )


def read_load_receipt(document: Document, *, elapsed: float, replayed: bool = False) -> Receipt:
    """Parse the receipt of a load."""
    return Receipt(
        read_optional_commit(document["commit"]),
        {entry["name"]: entry["entities_loaded"] for entry in document["nodes"]},
        {entry["name"]: entry["entities_loaded"] for entry in document["edges"]},
        branch=document["branch"],
        branch_created=document["branch_created"],
        elapsed=elapsed,
        replayed=replayed,
        missing=document.get("missing", {}),
        nulled=document.get("nulled", {}),
    )


def read_branch(document: Document) -> BranchInfo:
    """Parse a branch from its JSON. The server does not send the branch's internal id or its creator."""
    created_at = document["created_at"]
    return BranchInfo(
        name=document["name"],
        ulid="",
        head=read_commit(document["head"]),
        parent=document["parent"],
        fork_commit=document["fork_commit_id"],
        created=None if created_at is None else datetime.fromtimestamp(created_at / 1_000_000, UTC),
        ahead=document["ahead"],
        behind=document["behind"],
    )


def read_tag(document: Document) -> Tag:
    """Parse a tag from its JSON. The server does not send the tag's internal id."""
    return Tag(
        name=document["name"],
        commit_id=document["graph_commit_id"],
        branch=document["graph_branch"],
        ulid="",
        created_at=document["created_at"],
        actor=document["actor_id"],
        message=document.get("message"),
    )
