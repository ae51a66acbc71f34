"""Set aside torn manifest versions when a manifest is opened for writing.

A power loss can tear the newest versions. Only versions that were never acknowledged are set aside. Their files are
kept, and each repair is recorded.
"""

import logging

from omnigraph.storage import layout, torn_versions
from omnigraph.storage.store import Store

from .recovery_records import record_torn_version

_log = logging.getLogger("omnigraph")


def set_aside_torn_versions(store: Store, branch_name: str, branch_ulid: str) -> None:
    """Set aside any torn versions that are newer than the newest readable version.

    The newest version is set aside first, so a crash during the repair leaves only the older torn versions behind.
    """
    location = layout.manifest_directory(branch_ulid)
    for version in torn_versions.find_torn_versions(store, location):
        kept_location = torn_versions.set_aside_version(
            store, location, version, lambda event_id: record_torn_version(store, event_id, branch_name)
        )
        if kept_location is not None:
            _log.warning(
                "version %d of branch %s was not completely written and was moved to %s",
                version,
                branch_name,
                kept_location,
            )
