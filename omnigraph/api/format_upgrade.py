"""`omnigraph.upgrade`: convert a graph to this release's storage format, in place.

A graph in an older format cannot be opened, so `upgrade` is a function rather than a graph method.
"""

import os
from collections.abc import Mapping
from os import PathLike
from typing import TYPE_CHECKING

from omnigraph.api.error_boundary import guarded
from omnigraph.api.log_events import log_operation
from omnigraph.storage.effects import Effects
from omnigraph.storage.layout import MAIN
from omnigraph.storage.store import Durability, open_store

if TYPE_CHECKING:
    from omnigraph.maintenance.upgrade import UpgradeReport


@guarded
def upgrade(
    uri: str | PathLike[str],
    *,
    dry_run: bool = False,
    durability: Durability = "fsync",
    storage_options: Mapping[str, object] | None = None,
) -> "UpgradeReport":
    """Upgrade a graph to this release's storage format, with all of its data, branches and history.

    If the format is current, this function does nothing. A dry run only reports what would be upgraded. To resume an
    interrupted upgrade, call the function again. Before upgrading, stop all writers that use the older release, because
    they cannot use the graph afterward.

    >>> import omnigraph
    >>> from omnigraph import testing
    >>> with testing.graph("node Person { name: String @key }") as graph:
    ...     report = omnigraph.upgrade(graph.uri)
    ...     report.outcome, report.storage_format
    ('current', 100)

    Raises `InputError` if this release cannot upgrade the format, `Conflict` if operations are
    unfinished, and `StorageError` if the store fails.
    """
    from omnigraph.maintenance.upgrade import upgrade_graph

    effects = Effects(read_only=dry_run)
    store = open_store(os.fspath(uri), effects=effects, durability=durability, storage_options=storage_options)
    if dry_run:
        return upgrade_graph(store, dry_run=True)
    with log_operation("upgrade", MAIN):
        return upgrade_graph(store)
