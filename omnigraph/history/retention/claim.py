"""The claim that keeps collectors apart. It saves work; two collectors at once do no harm.

Owns the lease on `__gc/claim`: acquire it, renew it in the background, take over one that was not
renewed for a minute of store time, and detect its loss. Correctness never depends on it.
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
TRUSTED = 30.0  # seconds after a renewal for which the owner may assume that it has the claim


class Claim:
    """The claim of this collector, which it may lose while its process is suspended."""

    def __init__(self, store: Store, run: str) -> None:
        self.store, self.run = store, run
        self.at_work = False
        self._lost = False
        self._renewed = ids.monotonic()
        self._lock = threading.Lock()

    def check(self) -> None:
        """Raise `ConcurrentCommit` if another collector has taken the claim over.

        Called before each removal. It sends requests only if no renewal succeeded for a while: the
        process may have been suspended, and nothing else would tell.
        """
        self.at_work = True
        if ids.monotonic() - self._renewed > TRUSTED:
            self.renew()
        if self._lost:
            raise ConcurrentCommit(
                "another cleanup took over from this one, which was suspended for too long",
                effect="unknown",
                hint="let the other one finish; it also completes what this one began",
            )

    def renew(self) -> None:
        """Extend the lease, unless another collector owns it by now."""
        with self._lock:
            asked = ids.monotonic()
            self._lost = self._lost or _owner(self.store) != self.run
            if not self._lost:
                self.store.objects.renew(NAME, {"run": self.run})
                self._renewed = asked


@contextmanager
def claimed(store: Store, run: str, now: datetime) -> Iterator[Claim]:
    """Own the claim while the block runs; raise `ConcurrentCommit` if a collector is running."""
    if not store.objects.create_json(NAME, {"run": run}):
        _take_over(store, run, now)
    claim = Claim(store, run)
    try:
        with heartbeat(claim.renew, run, RENEWAL):
            yield claim
    except StorageError as error:
        if claim.at_work:  # the failed read itself had no effect, but the run may have had
            error.effect = "unknown"
        raise
    finally:
        with suppress(StorageError, OSError):  # the next collector takes it over anyway
            _release(store, run)


def _take_over(store: Store, run: str, now: datetime) -> None:
    found = [one.modified for one in store.objects.list(layout.GC) if one.name == NAME]
    if found and now - found[0] <= LEASE:
        raise ConcurrentCommit(
            f"another cleanup is running; its last sign of life was at"
            f" {found[0]:%Y-%m-%d %H:%M:%S} UTC",
            hint=f"let it finish; if it was killed, run this again in {LEASE.seconds} seconds",
        )
    store.objects.renew(NAME, {"run": run})


def _release(store: Store, run: str) -> None:
    if _owner(store) == run:
        store.objects.remove(NAME)


def _owner(store: Store) -> str | None:
    """Return the run that owns the claim now."""
    facts = store.objects.read_json(NAME)
    return None if facts is None else facts.get("run")
