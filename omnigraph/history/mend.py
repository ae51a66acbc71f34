"""Manifests whose newest versions were torn by a power loss: repaired when opened for writing.

Only versions that were never acknowledged are set aside. They are kept, and a record is written.
"""

import logging

from omnigraph.storage import layout, torn
from omnigraph.storage.store import Store

from .audit import record_set_aside

_log = logging.getLogger("omnigraph")


def set_torn_aside(store: Store, branch: str, ulid: str) -> None:
    """Set aside the torn versions above the newest readable one, if there are any.

    The newest goes first, so a crash in between leaves a shorter run of the same kind.
    """
    location = layout.manifest_directory(ulid)
    for version in torn.torn_run(store, location):
        place = torn.set_aside(
            store, location, version, lambda one: record_set_aside(store, one, branch)
        )
        if place is not None:
            _log.warning(
                "version %d of branch %s was not completely written, and was moved to %s",
                version,
                branch,
                place,
            )
