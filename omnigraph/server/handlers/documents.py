"""The JSON for commits and receipts, which several handlers return."""

from msgspec import UNSET

from omnigraph.api.results.receipt import Receipt
from omnigraph.history.commit import Commit
from omnigraph.server.call import ServerCall
from omnigraph.server.models.history import CommitOutput


def commit_output(commit: Commit, call: ServerCall | None = None, *, with_types: bool = False) -> CommitOutput:
    """Return the JSON for a commit. `with_types` adds the types that the commit changed."""
    output = CommitOutput(
        graph_commit_id=commit.id,
        graph_branch=commit.branch,
        graph_manifest_version=commit.manifest_version,
        parent_commit_id=commit.parent,
        merged_parent_commit_id=commit.merged_parent,
        actor_id=commit.actor,
        created_at=commit.created_at,
        published_at=commit.published_at,
        operation=commit.operation,
        message=commit.message,
        note=commit.note or UNSET,
        details=dict(commit.details) or UNSET,
    )
    if with_types:
        output.types = [
            {
                "entity_kind": key.kind,
                "type_name": key.type_name,
                "published_dataset_version": entry and entry.version,
                "entity_count": entry and entry.row_count,
            }
            for key, entry in sorted(commit.tables.items())
        ]
    if call is not None and call.uses_old_names:
        output.manifest_branch, output.manifest_version = commit.branch, commit.manifest_version
    return output


def receipt_commit(receipt: Receipt, call: ServerCall) -> CommitOutput | None:
    """Return the commit of a write, or None if nothing changed."""
    return None if receipt.commit is None else commit_output(receipt.commit, call)
