"""A read lease: what somebody reads for long stays, whatever a cleanup would take.

An intent of the kind `read`, with a lease that is renewed beside the work. Owns its life; it never
publishes anything, and whoever finds it after its owner is gone discards it.
"""

from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import TypeVar

from omnigraph import ids
from omnigraph.errors import StorageError
from omnigraph.storage.failures import reported
from omnigraph.storage.store import Store

from . import intent as intents
from .intent import Intent
from .lease import READ, kept_alive
from .line import Line
from .retention.condemned import check_named
from .snapshot import Snapshot

Given = TypeVar("Given")
LONG = 100_000  # entities; reading fewer ends long before the grace of a cleanup does


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


def while_held(line: Line, shown: Snapshot, pieces: Iterable[Given]) -> Iterator[Given]:
    """What is read piece by piece, held from the first to the last if there is much of it.

    Who may only read the store goes on without a lease, as long as no cleanup takes anything.
    """
    store = line.store
    much = sum(one.rows for one in shown.tables.values()) >= LONG
    with ExitStack() as stack:
        if much and not store.effects.read_only:
            with suppress(StorageError):
                stack.enter_context(held(store, line, shown))
        yield from pieces
