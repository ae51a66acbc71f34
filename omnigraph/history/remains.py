"""Errors for a manifest without versions: no graph at all, or a damaged one.

Runs only after a manifest was not found. It distinguishes a root that never held a graph, or whose
graph was removed, from one that lost the manifest of main.
"""

from omnigraph.errors import GraphNotInitialized, OmnigraphError
from omnigraph.storage import layout
from omnigraph.storage.failures import DamagedError
from omnigraph.storage.store import Store

_HELP = "run `omnigraph repair` to see what can be restored, or restore the files from a backup"


def absent_manifest(store: Store, ulid: str) -> OmnigraphError:
    """Return the error for a manifest without versions: no graph, or damage if there was one."""
    if ulid == layout.MAIN and (trace := graph_trace(store)) is not None:
        return lost_versions(store, ulid, f"; {trace} proves that a graph existed")
    return GraphNotInitialized(f"no graph at {store.root.uri}")


def lost_versions(store: Store, ulid: str, detail: str = "", branch: str = "") -> DamagedError:
    """Return the error for a branch or tag whose manifest has no version left."""
    place = layout.manifest_directory(ulid)
    subject = f"{branch} at {store.root.uri}" if branch else f"the graph at {store.root.uri}"
    message = f"{subject} is damaged: {place}/_versions is missing or empty{detail}"
    return DamagedError(message, hint=_HELP)


def graph_trace(store: Store) -> str | None:
    """Return the name of an object that only a graph with a published main leaves, or None.

    A crashed init leaves first table versions and a schema; a crashed copy leaves its claim. A
    writer that was still running when the root was removed leaves files, but no schema.
    """
    if store.objects.read(layout.CLAIM) is not None or not store.objects.list(layout.SCHEMAS):
        return None
    for place in (layout.MANIFEST, "_refs", layout.BRANCHES, layout.COMMITS):
        for one in store.objects.list(place):
            if place != layout.MANIFEST or _replaced_a_version(one.name):
                return one.name
    tables = (one.name for kind in ("nodes", "edges") for one in store.objects.list(kind))
    return next((name for name in tables if "/_versions/d" in name), None)


def _replaced_a_version(name: str) -> bool:
    """Whether a manifest file records a swap: then its base, a published version, existed."""
    place, _, last = name.rpartition("/")
    base = last.partition("-")[0]
    return place.endswith("_transactions") and base.isdecimal() and int(base) > 0
