"""Build the objects of the public API from the JSON that a server returns.

The classes are the same as for an embedded graph, so that callers can treat both kinds of graph the same way. This
module sends no requests.
"""

from datetime import UTC, datetime

from omnigraph.api.results.receipt import Receipt
from omnigraph.history.branch_info import BranchInfo
from omnigraph.history.commit import Commit
from omnigraph.history.tags import Tag

from .commit_documents import Document, read_commit

__all__ = [
    "Document",
    "read_branch",
    "read_commit",
    "read_load_receipt",
    "read_optional_commit",
    "read_receipt",
    "read_tag",
]


def read_optional_commit(document: Document | None) -> Commit | None:
    """Parse the commit in a response; return None if nothing changed."""
    return None if document is None else read_commit(document)


def read_receipt(document: Document, *, elapsed: float, replayed: bool = False) -> Receipt:
    """Parse the receipt for a mutation, a record write or a transaction."""
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
    """Parse the receipt for a load."""
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
