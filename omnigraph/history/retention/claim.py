"""The claim that keeps collectors apart: a courtesy, since two of them do no harm.

Owns the lease on `__gc/claim`: taking it, renewing it beside the work, taking over one that was not
renewed for a minute of store time, and noticing that it was lost. Correctness never rests on it.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import datetime, timedelta

from omnigraph import ids
from omnigraph.errors import ConcurrentCommit, StorageError
from omnigraph.history.lease import heartbeat
from omnigraph.storage import layout
from omnigraph.storage.store import Store

NAME = f"{layout.GC}/claim"
LEASE = timedelta(seconds=60)  # of store time
RENEWAL = 20.0  # seconds
TRUSTED = 30.0  # seconds since the last renewal, after which the owner reads its claim again


class Claim:
    """A claim that this collector took, and may have lost while its process was suspended."""

    def __init__(self, store: Store, run: str) -> None:
        self.store, self.run = store, run
        self.at_work = False
        self._lost = False
        self._renewed = ids.monotonic()
        self._lock = threading.Lock()

    def check(self) -> None:
        """Raise `ConcurrentCommit` when another collector took the claim over.

        Called before each removal. It sends requests only when no renewal succeeded for a while:
        the process may have been suspended, and nothing else would say so.
        """
        self.at_work = True
        if ids.monotonic() - self._renewed > TRUSTED:
            self.renew()
        if self._lost:
            raise ConcurrentCommit(
                "another cleanup took over from this one, which was suspended for too long",
                effect="unknown",
                hint="let the other one end; it also finishes what this one began",
            )

    def renew(self) -> None:
        """Extend the lease, unless another collector holds it by now."""
        with self._lock:
            asked = ids.monotonic()
            self._lost = self._lost or _owner(self.store) != self.run
            if not self._lost:
                self.store.objects.renew(NAME, {"run": self.run})
                self._renewed = asked


@contextmanager
def claimed(store: Store, run: str, now: datetime) -> Iterator[Claim]:
    """Hold the claim while the block runs; a collector that is at work is a `ConcurrentCommit`."""
    if not store.objects.create_json(NAME, {"run": run}):
        _take_over(store, run, now)
    claim = Claim(store, run)
    try:
        with heartbeat(claim.renew, run, RENEWAL):
            yield claim
    except StorageError as error:
        if claim.at_work:  # a read that failed has no effect, but the run had
            error.effect = "unknown"
        raise
    finally:
        with suppress(StorageError, OSError):  # the next collector takes it over
            _release(store, run)


def _take_over(store: Store, run: str, now: datetime) -> None:
    found = [one.modified for one in store.objects.list(layout.GC) if one.name == NAME]
    if found and now - found[0] <= LEASE:
        raise ConcurrentCommit(
            f"another cleanup is at work; its last sign of life was at"
            f" {found[0]:%Y-%m-%d %H:%M:%S} UTC",
            hint=f"let it end; if it was killed, run this again in {LEASE.seconds} seconds",
        )
    store.objects.renew(NAME, {"run": run})


def _release(store: Store, run: str) -> None:
    if _owner(store) == run:
        store.objects.remove(NAME)


def _owner(store: Store) -> str | None:
    """The run that holds the claim now."""
    facts = store.objects.read_json(NAME)
    return None if facts is None else facts.get("run")
