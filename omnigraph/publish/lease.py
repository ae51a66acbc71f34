"""Keep a long operation's lease alive from a background thread while the work runs.

If a renewal fails, the operation continues. The owner keeps trying until it requests the verdict, which shows whether
the operation was discarded in the meantime.
"""

import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

from omnigraph.errors import StorageError
from omnigraph.storage.store import Store

from . import intent as intents
from .intent import Intent

READ_OPERATION = "read"  # the kind of intent that protects data while it is being read
_log = logging.getLogger("omnigraph")


def keep_lease_alive(store: Store, intent: Intent) -> AbstractContextManager[None]:
    """Renew an intent's lease while the block runs."""
    return renew_periodically(lambda: intents.renew(store, intent), intent.id, intents.RENEWAL_SECONDS)


@contextmanager
def renew_periodically(renew: Callable[[], None], lease_name: str, interval: float) -> Iterator[None]:
    """Call `renew` every `interval` seconds while the block runs. Failures are only logged."""
    stopped = threading.Event()

    def renew_until_stopped() -> None:
        while not stopped.wait(interval):
            try:
                renew()
            except (StorageError, OSError) as error:
                _log.warning("the lease for %s could not be renewed: %s", lease_name, error)

    renewal_thread = threading.Thread(target=renew_until_stopped, name=f"lease-{lease_name}", daemon=True)
    renewal_thread.start()
    try:
        yield
    finally:
        stopped.set()
        renewal_thread.join()
