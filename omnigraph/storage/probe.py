"""Verify, before anything else is written, the store guarantee that the write protocol relies on.

Of several creators of one name exactly one may win, and a listing must show at once what was
written. A store that violates this loses acknowledged writes, so it is refused.
"""

import errno
from contextlib import suppress

from omnigraph import ids
from omnigraph.errors import StorageError

from .layout import PROBE
from .store import Store

_NO_LINKS = {errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK, errno.EXDEV}


def probe_create_if_absent(store: Store) -> None:
    """Refuse a store on which creation does not fail when the name is taken.

    Raises a `StorageError` of kind `configuration`. The probe object is always removed.
    """
    name = f"{PROBE}{ids.nonce()}"
    try:
        defect = _defect(store, name)
    except BaseException:
        with suppress(StorageError):
            store.objects.remove(name)
        raise
    store.objects.remove(name)
    if defect:
        raise _refusal(store, defect)


def _defect(store: Store, name: str) -> str | None:
    """Return what is wrong with the store, or None."""
    first = ids.nonce()
    if not _create(store, name, first):
        return "a new name was reported as taken"
    if _create(store, name, ids.nonce()):
        return "it lets a second creator overwrite the first (it ignores If-None-Match)"
    found = store.objects.read_json(name)
    if found is None or found.get("nonce") != first:
        return "an object changed although its second creator was refused"
    if all(one.name != name for one in store.objects.backend.list("")):
        return "a listing does not show an object that was just written"
    return None


def _create(store: Store, name: str, nonce: str) -> bool:
    try:
        return store.objects.create_json(name, {"nonce": nonce})
    except StorageError as error:
        cause = error.__cause__
        if isinstance(cause, OSError) and cause.errno in _NO_LINKS:
            raise _refusal(store, "the file system has no hard links") from cause
        raise


def _refusal(store: Store, defect: str) -> StorageError:
    return StorageError(
        f"this store cannot hold a graph: {defect}",
        kind="configuration",
        reason=defect,
        uri=store.root.uri,
        effect="none",
        hint="use a file system with hard links, or an object store with conditional writes",
    )
