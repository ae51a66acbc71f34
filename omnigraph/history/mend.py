"""A manifest whose newest version was torn by a power loss: put right by who opens for writing.

Only what was never acknowledged is set aside, it is kept, and a record of it is left.
"""

from omnigraph.storage import layout, torn
from omnigraph.storage.store import Store

from .audit import record_set_aside


def set_torn_aside(store: Store, branch: str, ulid: str) -> None:
    """Set the newest version of a manifest aside, if it is torn."""
    location = layout.manifest_directory(ulid)
    version = torn.torn_version(store, location)
    if version is not None:
        torn.set_aside(store, location, version, lambda one: record_set_aside(store, one, branch))
