"""The lease of a long operation: a sign of life that a thread renews beside the work.

A lease that cannot be renewed ends nothing by itself: the owner finds out when it requests the
verdict, and keeps trying until then.
"""

import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

from omnigraph.errors import StorageError
from omnigraph.storage.store import Store

from . import intent as intents
from .intent import Intent

READ = "read"  # the operation of an intent that protects data being read
_log = logging.getLogger("omnigraph")


def kept_alive(store: Store, intent: Intent) -> AbstractContextManager[None]:
    """Renew the lease of an intent while the block runs."""
    return heartbeat(lambda: intents.renew(store, intent), intent.id, intents.RENEWAL)


@contextmanager
def heartbeat(renew: Callable[[], None], name: str, interval: float) -> Iterator[None]:
    """Call `renew` every `interval` seconds while the block runs; a failure is only logged."""
    over = threading.Event()

    def beat() -> None:
        while not over.wait(interval):
            try:
                renew()
            except (StorageError, OSError) as error:
                _log.warning("the lease of %s could not be renewed: %s", name, error)

    keeper = threading.Thread(target=beat, name=f"lease-{name}", daemon=True)
    keeper.start()
    try:
        yield
    finally:
        over.set()
        keeper.join()
