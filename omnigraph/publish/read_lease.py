"""Read leases, which protect data from cleanup during a long read.

A read lease is an intent of kind `read`, which never publishes anything. Its lease is renewed while the read runs. If
the reader dies, any process that finds the intent discards it. A short read needs no lease, because a cleanup has a
grace period.
"""

from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from typing import TypeVar

from omnigraph.errors import NotFound, StorageError
from omnigraph.history.branch_state import BranchState
from omnigraph.history.delete_queue import check_versions_retained
from omnigraph.history.snapshot import Snapshot
from omnigraph.storage import layout
from omnigraph.storage.failures import as_storage_errors
from omnigraph.storage.store import Store
from omnigraph.values import clock_and_ids

from . import intent as intents
from .intent import Intent
from .lease import READ_OPERATION, keep_lease_alive

ReadItem = TypeVar("ReadItem")
LONG_READ_ROWS = 100_000  # reading this many entities may take long
LONG_READ_SECONDS = 60.0  # any read may take long, because its values are large or because its consumer is slow


def build_read_intent(branch_state: BranchState, snapshot: Snapshot, actor: str | None = None) -> Intent:
    """Build, but do not write, the intent for reading a branch's snapshot."""
    return Intent(
        id=clock_and_ids.new_ulid(),
        operation=READ_OPERATION,
        branch=branch_state.name,
        branch_ulid=branch_state.ulid,
        base_commit=snapshot.commit_id,
        created_at=clock_and_ids.now_micros(),
        actor=actor,
    )


@contextmanager
def protect_snapshot(
    store: Store, branch_state: BranchState, snapshot: Snapshot, actor: str | None = None
) -> Iterator[None]:
    """Protect a branch's snapshot from cleanup while the block runs.

    Raises `HistoryReclaimed` if the snapshot has already been removed, and `ConcurrentCommit` if a cleanup
    is about to remove it.
    """
    intent = begin_read_lease(store, branch_state, snapshot, actor)
    try:
        with keep_lease_alive(store, intent):
            yield
    finally:
        _retire_lease(store, intent)


def begin_read_lease(store: Store, branch_state: BranchState, snapshot: Snapshot, actor: str | None = None) -> Intent:
    """Protect a branch's snapshot from cleanup until the lease ends or is no longer renewed."""
    intent = build_read_intent(branch_state, snapshot, actor)
    intents.arm(store, intent)
    try:
        with as_storage_errors("none"):
            check_versions_retained(store, snapshot.tables.values(), snapshot.commit_id, snapshot.schema_row.location)
    except BaseException:
        _retire_lease(store, intent)
        raise
    return intent


def renew_read_lease(store: Store, lease_id: str) -> None:
    """Renew a lease, even if another process began it; raise `NotFound` if the lease has ended."""
    intents.renew(store, _find_lease(store, lease_id))


def end_read_lease(store: Store, lease_id: str) -> None:
    """End a lease, even if another process began it; raise `NotFound` if the lease has already ended."""
    _retire_lease(store, _find_lease(store, lease_id))


def _find_lease(store: Store, lease_id: str) -> Intent:
    stored = store.objects.read_json(layout.intent_name(lease_id)) if clock_and_ids.is_ulid(lease_id) else None
    if stored is None or stored.get("operation") != READ_OPERATION:
        hint = "a hold ends by itself if it is not renewed in time; begin a new one"
        raise NotFound(f"no hold '{lease_id}'", what=f"hold '{lease_id}'", hint=hint)
    return Intent.from_json(stored)


def _retire_lease(store: Store, intent: Intent) -> None:
    intents.retire(store, intent, ("json", "lease"))


def protect_while_reading(
    branch_state: BranchState, snapshot: Snapshot, items: Iterable[ReadItem]
) -> Iterator[ReadItem]:
    """Yield the items. If the snapshot is large or the read takes a long time, protect the snapshot from cleanup.

    If the lease cannot be written, for example because the process has no write access to the store, the read continues
    without protection.
    """
    is_long_read = sum(entry.row_count for entry in snapshot.tables.values()) >= LONG_READ_ROWS
    with _try_protect(branch_state, snapshot) if is_long_read else nullcontext():
        yield from items if is_long_read else protect_slow_read(branch_state, snapshot, items)


def protect_slow_read(branch_state: BranchState, snapshot: Snapshot, items: Iterable[ReadItem]) -> Iterator[ReadItem]:
    """Yield the items.

    Once the read has been running for a while, protect the snapshot from cleanup in the same way as a large snapshot.
    """
    started, is_protected = clock_and_ids.monotonic(), False
    with ExitStack() as stack:
        close = getattr(items, "close", None)
        if close is not None:
            stack.callback(close)
        for item in items:
            yield item
            if not is_protected and clock_and_ids.monotonic() - started >= LONG_READ_SECONDS:
                stack.enter_context(_try_protect(branch_state, snapshot))
                is_protected = True


@contextmanager
def _try_protect(branch_state: BranchState, snapshot: Snapshot) -> Iterator[None]:
    """Protect a snapshot from cleanup while the block runs, if the lease can be written."""
    store = branch_state.store
    with ExitStack() as stack:
        if not store.effects.read_only:
            with suppress(StorageError):
                stack.enter_context(protect_snapshot(store, branch_state, snapshot))
        yield
