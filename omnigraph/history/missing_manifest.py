"""Errors for a manifest without versions: either there is no graph, or the graph is damaged.

This module is used only if a manifest was not found. It distinguishes a root without a graph from a root that has
lost the manifest of the main branch.
"""

from omnigraph.errors import GraphNotInitialized, OmnigraphError
from omnigraph.storage import layout
from omnigraph.storage.failures import DamagedError
from omnigraph.storage.store import Store

_RESTORE_HINT = "run `omnigraph repair` to see what can be restored, or restore the files from a backup"


def absent_manifest_error(store: Store, ulid: str) -> OmnigraphError:
    """Return the error for a manifest without versions. The error reports damage if a graph existed before."""
    if ulid == layout.MAIN and (evidence := find_graph_evidence(store)) is not None:
        return lost_versions_error(store, ulid, f"; {evidence} proves that a graph existed")
    return GraphNotInitialized(f"no graph at {store.root.uri}")


def lost_versions_error(store: Store, ulid: str, detail: str = "", branch_label: str = "") -> DamagedError:
    """Return the error for a branch or tag whose manifest has no versions left."""
    manifest_directory = layout.manifest_directory(ulid)
    subject = f"{branch_label} at {store.root.uri}" if branch_label else f"the graph at {store.root.uri}"
    message = f"{subject} is damaged: {manifest_directory}/_versions is missing or empty{detail}"
    return DamagedError(message, hint=_RESTORE_HINT)


def find_graph_evidence(store: Store) -> str | None:
    """Return the name of an object that proves that the main branch was once published, or None if there is none.

    Some leftovers prove nothing: a crashed init leaves the first table versions and a schema behind, and a crashed
    copy leaves its claim. A writer that was still running when the root was removed leaves files but no schema.
    """
    if store.objects.read(layout.CLAIM) is not None or not store.objects.list(layout.SCHEMAS):
        return None
    for directory in (layout.MANIFEST, "_refs", layout.BRANCHES, layout.COMMITS):
        for listed_file in store.objects.list(directory):
            if directory != layout.MANIFEST or _is_swap_record(listed_file.name):
                return listed_file.name
    table_files = (listed_file.name for kind in ("nodes", "edges") for listed_file in store.objects.list(kind))
    return next((file_name for file_name in table_files if "/_versions/d" in file_name), None)


def _is_swap_record(file_name: str) -> bool:
    """Return whether a manifest file records a swap, which proves that a published base version existed."""
    directory, _, base_name = file_name.rpartition("/")
    base_version = base_name.partition("-")[0]
    return directory.endswith("_transactions") and base_version.isdecimal() and int(base_version) > 0
