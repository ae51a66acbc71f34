"""Read leases: protect data from cleanup while it is read for a long time.

A read lease is an intent of the kind `read` whose lease is renewed beside the work. It never
publishes anything; if its owner dies, whoever finds the intent discards it.
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
LONG = 100_000  # entities; reading fewer takes far less time than the grace period of a cleanup


def reading(line: Line, shown: Snapshot, actor: str | None = None) -> Intent:
    """Build the intent of reading a snapshot of a branch; writes nothing."""
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

    Raises `HistoryReclaimed` if it was already removed, `ConcurrentCommit` if a cleanup is about
    to remove it.
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
    """Yield items, protecting the snapshot from the first to the last if it is large.

    A reader that may not write to the store goes on without a lease and relies on no cleanup
    removing its data.
    """
    store = line.store
    much = sum(one.rows for one in shown.tables.values()) >= LONG
    with ExitStack() as stack:
        if much and not store.effects.read_only:
            with suppress(StorageError):
                stack.enter_context(held(store, line, shown))
        yield from pieces
