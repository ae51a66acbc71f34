"""Build commits from the JSON that a server returns.

Both the Python client and the command line use this module, so it imports neither Arrow nor Lance.
"""

from collections.abc import Mapping
from typing import Any

from omnigraph.history.commit import Commit, TableEntry
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


def _read_table(document: Document) -> tuple[TableKey, TableEntry | None]:
    key = TableKey.of(document["entity_kind"], document["type_name"])
    version, row_count = document["published_dataset_version"], document["entity_count"]
    return key, None if version is None else TableEntry(key, "", version, 0, "", row_count)
