"""Verify that a store provides the guarantees that the write protocol relies on, before anything else is written.

If several writers try to create an object with the same name, exactly one must succeed, and a listing must include new
objects immediately. A store that violates these guarantees would lose acknowledged writes, so it is rejected.
"""

import errno
from contextlib import suppress

from omnigraph.errors import StorageError
from omnigraph.values import clock_and_ids

from .layout import PROBE
from .store import Store

_NO_HARD_LINK_ERRORS = {errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK, errno.EXDEV}


def probe_create_if_absent(store: Store) -> None:
    """Raise an error if a store lets a second writer overwrite an object, or omits the object from a listing.

    The error is a `StorageError` with kind `configuration`. The probe object is always removed.
    """
    probe_name = f"{PROBE}{clock_and_ids.new_nonce()}"
    try:
        defect = _find_defect(store, probe_name)
    except BaseException:
        with suppress(StorageError):
            store.objects.remove(probe_name)
        raise
    store.objects.remove(probe_name)
    if defect:
        raise _unsupported_store_error(store, defect)


def _find_defect(store: Store, probe_name: str) -> str | None:
    """Test the guarantees and return a description of the first one that is violated, or None if all of them hold."""
    first_nonce = clock_and_ids.new_nonce()
    if not _create_probe(store, probe_name, first_nonce):
        return "creating a new object failed as if it already existed"
    if _create_probe(store, probe_name, clock_and_ids.new_nonce()):
        return "a second create request can overwrite an existing object (If-None-Match is ignored)"
    probe_members = store.objects.read_json(probe_name)
    if probe_members is None or probe_members.get("nonce") != first_nonce:
        return "an object changed although the second create request was rejected"
    if all(listed_object.name != probe_name for listed_object in store.objects.backend.list("")):
        return "a listing does not include an object that was just written"
    return None


def _create_probe(store: Store, probe_name: str, nonce: str) -> bool:
    try:
        return store.objects.create_json(probe_name, {"nonce": nonce})
    except StorageError as error:
        cause = error.__cause__
        if isinstance(cause, OSError) and cause.errno in _NO_HARD_LINK_ERRORS:
            raise _unsupported_store_error(store, "the file system does not support hard links") from cause
        raise


def _unsupported_store_error(store: Store, defect: str) -> StorageError:
    return StorageError(
        f"this store cannot be used for a graph: {defect}",
        kind="configuration",
        reason=defect,
        uri=store.root.uri,
        effect="none",
        hint="use a file system that supports hard links, or an object store that supports conditional writes",
    )
