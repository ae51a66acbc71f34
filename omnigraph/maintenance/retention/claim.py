"""The collector's claim, which only prevents duplicate work. Concurrent collectors are harmless.

This module manages the lease on `__gc/claim`: it acquires the lease, renews it in the background, detects its loss, and
takes over a lease that has not been renewed for a minute of store time. Correctness never depends on the claim.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import datetime, timedelta

from omnigraph.errors import ConcurrentCommit, StorageError
from omnigraph.publish.lease import renew_periodically
from omnigraph.storage import layout
from omnigraph.storage.store import Store
from omnigraph.values import clock_and_ids

CLAIM_NAME = f"{layout.GC}/claim"
CLAIM_LEASE = timedelta(seconds=60)  # measured by the store's clock
CLAIM_RENEWAL_SECONDS = 20.0  # seconds between renewals
TRUSTED_SECONDS = 30.0  # seconds after a renewal during which the owner may assume that it still holds the claim


class CollectorClaim:
    """The claim that this collector holds. The collector can lose it while the process is suspended."""

    def __init__(self, store: Store, run_id: str) -> None:
        self.store, self.run_id = store, run_id
        self.has_started = False
        self._lost = False
        self._renewed_at = clock_and_ids.monotonic()
        self._lock = threading.Lock()

    def check(self) -> None:
        """Raise `ConcurrentCommit` if another collector has taken over the claim.

        Call this before each removal. This method sends requests only if no renewal has succeeded for a while, which
        may mean that the process was suspended.
        """
        self.has_started = True
        if clock_and_ids.monotonic() - self._renewed_at > TRUSTED_SECONDS:
            self.renew()
        if self._lost:
            raise ConcurrentCommit(
                "another cleanup took over because this cleanup was suspended for too long",
                effect="unknown",
                hint="wait for the other cleanup to finish; it also completes the work of this one",
            )

    def renew(self) -> None:
        """Extend the lease unless another collector has taken it over."""
        with self._lock:
            request_time = clock_and_ids.monotonic()
            self._lost = self._lost or _read_owner(self.store) != self.run_id
            if not self._lost:
                self.store.objects.write_lease(CLAIM_NAME, {"run": self.run_id})
                self._renewed_at = request_time


@contextmanager
def hold_claim(store: Store, run_id: str, store_time: datetime) -> Iterator[CollectorClaim]:
    """Hold the claim while the block runs; raise `ConcurrentCommit` if another collector is running."""
    if not store.objects.create_json(CLAIM_NAME, {"run": run_id}):
        _take_over_expired(store, run_id, store_time)
    claim = CollectorClaim(store, run_id)
    try:
        with renew_periodically(claim.renew, run_id, CLAIM_RENEWAL_SECONDS):
            yield claim
    except StorageError as error:
        if claim.has_started:  # the failed read itself had no effect, but the run may have had one
            error.effect = "unknown"
        raise
    finally:
        with suppress(StorageError, OSError):  # harmless, because the next collector takes over the claim
            _release_claim(store, run_id)


def _take_over_expired(store: Store, run_id: str, store_time: datetime) -> None:
    renewal_times = [
        listed_file.modified for listed_file in store.objects.list(layout.GC) if listed_file.name == CLAIM_NAME
    ]
    if renewal_times and store_time - renewal_times[0] <= CLAIM_LEASE:
        raise ConcurrentCommit(
            f"another cleanup is running; its lease was last renewed at {renewal_times[0]:%Y-%m-%d %H:%M:%S} UTC",
            hint=f"wait for the other cleanup to finish; if it was killed, try again in {CLAIM_LEASE.seconds} seconds",
        )
    store.objects.write_lease(CLAIM_NAME, {"run": run_id})


def _release_claim(store: Store, run_id: str) -> None:
    if _read_owner(store) == run_id:
        store.objects.remove(CLAIM_NAME)


def _read_owner(store: Store) -> str | None:
    """Return the run that currently holds the claim, or None if no run holds it."""
    members = store.objects.read_json(CLAIM_NAME)
    return None if members is None else members.get("run")
