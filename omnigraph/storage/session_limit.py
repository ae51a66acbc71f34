"""Move a branch manifest to a new, small Lance session once its own session has grown too large.

Lance creates a dataset in a session of unlimited size, and a session never drops the metadata that it has cached for a
version.
"""

from contextlib import suppress
from typing import Any

from .dataset_cache import move_to_session
from .store import Store

_MAX_SESSION_BYTES = 1 << 20


def limit_session(store: Store, dataset: Any) -> Any:
    """Reopen the dataset in a small session if its own has grown too large; otherwise return the dataset itself.

    On an object store, the move takes one request, but it happens only once in hundreds of swaps. If the request fails,
    the old session is kept.
    """
    if dataset.session().size_bytes() > _MAX_SESSION_BYTES:
        with suppress(OSError, ValueError):
            return move_to_session(dataset, store.new_manifest_session(), store.options)
    return dataset
