"""The claim that keeps collectors apart: a courtesy, since two of them do no harm.

Owns taking it, renewing it, and taking over one that nobody renewed for a quarter of an hour of
store time. Correctness never rests on it.
"""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import datetime, timedelta

from omnigraph import ids
from omnigraph.errors import ConcurrentCommit, StorageError
from omnigraph.storage import layout
from omnigraph.storage.store import Store

NAME = f"{layout.GC}/claim"
ABANDONED = timedelta(minutes=15)  # of store time without renewal
_RENEWAL = 60.0  # seconds


class Claim:
    """A claim that is held; `keep` is called now and then, and renews it when that is due."""

    def __init__(self, store: Store, run: str) -> None:
        self.store, self.run = store, run
        self.at_work = False
        self._renewed = ids.monotonic()

    def keep(self) -> None:
        """Show that this collector lives: it removes something, or is about to."""
        self.at_work = True
        if ids.monotonic() - self._renewed > _RENEWAL:
            self._renewed = ids.monotonic()
            self.store.objects.renew(NAME, {"run": self.run})


@contextmanager
def claimed(store: Store, run: str, now: datetime) -> Iterator[Claim]:
    """Hold the claim while the block runs; a collector that is at work is a `ConcurrentCommit`."""
    if not store.objects.create_json(NAME, {"run": run}):
        _take_over(store, run, now)
    claim = Claim(store, run)
    try:
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
    if found and now - found[0] <= ABANDONED:
        raise ConcurrentCommit(
            f"another cleanup is at work since {found[0]:%Y-%m-%d %H:%M:%S} UTC or longer",
            hint="let it end; a claim that nobody renews for 15 minutes is taken over",
        )
    store.objects.renew(NAME, {"run": run})


def _release(store: Store, run: str) -> None:
    facts = store.objects.read_json(NAME)
    if facts is not None and facts.get("run") == run:
        store.objects.remove(NAME)
