"""A manifest whose newest versions were torn by a power loss: put right by who opens for writing.

Only what was never acknowledged is set aside, it is kept, and a record of it is left.
"""

import logging

from omnigraph.storage import layout, torn
from omnigraph.storage.store import Store

from .audit import record_set_aside

_log = logging.getLogger("omnigraph")


def set_torn_aside(store: Store, branch: str, ulid: str) -> None:
    """Set the torn versions above the newest readable one aside, if there are any.

    The newest goes first: whoever goes on after a cut finds a shorter run of the same kind.
    """
    location = layout.manifest_directory(ulid)
    for version in torn.torn_run(store, location):
        place = torn.set_aside(
            store, location, version, lambda one: record_set_aside(store, one, branch)
        )
        if place is not None:
            _log.warning(
                "version %d of branch %s was not written to its end, and was moved to %s",
                version,
                branch,
                place,
            )
