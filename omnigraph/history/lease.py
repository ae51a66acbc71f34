"""The lease of a long operation: a sign of life, renewed beside the work.

A lease that cannot be renewed ends nothing by itself: the owner finds out when it asks for the
verdict, and until then it keeps trying.
"""

import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from omnigraph.errors import StorageError
from omnigraph.storage.store import Store

from . import intent as intents
from .intent import Intent

READ = "read"  # the operation of an intent that protects what somebody reads
_log = logging.getLogger("omnigraph")


@contextmanager
def kept_alive(store: Store, intent: Intent) -> Iterator[None]:
    """Renew the lease while the block runs."""
    over = threading.Event()

    def renew() -> None:
        while not over.wait(intents.RENEWAL):
            try:
                intents.renew(store, intent)
            except (StorageError, OSError) as error:
                _log.warning("the lease of %s could not be renewed: %s", intent.id, error)

    keeper = threading.Thread(target=renew, name=f"lease-{intent.id}", daemon=True)
    keeper.start()
    try:
        yield
    finally:
        over.set()
        keeper.join()
