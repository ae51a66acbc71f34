"""A read lease: what somebody reads for long stays, whatever a cleanup would take.

An intent of the kind `read`, with a lease that is renewed beside the work. Owns its life; it never
publishes anything, and whoever finds it after its owner is gone discards it.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from omnigraph import ids
from omnigraph.storage.failures import reported
from omnigraph.storage.store import Store

from . import intent as intents
from .intent import Intent
from .lease import READ, kept_alive
from .line import Line
from .retention.condemned import check_named
from .snapshot import Snapshot


def reading(line: Line, shown: Snapshot, actor: str | None = None) -> Intent:
    """What says that somebody reads a snapshot of a branch; nothing is written here."""
    return Intent(
        id=ids.new_ulid(),
        operation=READ,
        branch=line.name,
        branch_ulid=line.ulid,
        base_commit=shown.commit_id,
        created_at=ids.now_micros(),
        actor=actor,
    )


@contextmanager
def held(store: Store, line: Line, shown: Snapshot, actor: str | None = None) -> Iterator[None]:
    """Protect a snapshot of a branch while the block runs.

    `HistoryReclaimed` when it is gone already, `ConcurrentCommit` when a cleanup is just about to
    take it.
    """
    intent = reading(line, shown, actor)
    intents.arm(store, intent)
    try:
        with reported("none"):
            check_named(store, shown.tables.values(), shown.commit_id, shown.schema_row.location)
        with kept_alive(store, intent):
            yield
    finally:
        intents.retire(store, intent, ("json", "lease"))
