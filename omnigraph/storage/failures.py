"""Turn a failed storage call into a `StorageError` that states what is proved about it.

Decides by exception type and `errno`, never by the text: texts change, and they contain paths and
keys. What proves nothing is classified as `unknown`.
"""

import errno
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from omnigraph.errors import Effect, StorageError, StorageKind, redact_text

Kinds = Mapping[type[BaseException], StorageKind]


class AbsentError(StorageError, FileNotFoundError):
    """A table or version that is proved not to exist.

    >>> isinstance(AbsentError("no table"), FileNotFoundError), AbsentError("no table").kind
    (True, 'not_found')
    """

    code = "StorageError"
    kind = "not_found"
    effect = "none"
    hint = "check the spelling of the location, and whether cleanup removed it"


class DamagedError(StorageError, OSError):
    """Files of a table that are missing or differ from what was written.

    >>> isinstance(DamagedError("a file is missing"), OSError), DamagedError("a file").effect
    (True, 'none')
    """

    code = "StorageError"
    kind = "permanent"
    effect = "none"
    hint = "run `omnigraph check` to list the files, then restore them from a copy"


_KINDS: Kinds = {
    FileExistsError: "precondition",
    FileNotFoundError: "not_found",
    NotADirectoryError: "configuration",
    IsADirectoryError: "configuration",
    PermissionError: "configuration",
    ConnectionError: "transient",
    TimeoutError: "transient",
    NotImplementedError: "configuration",
}
_NUMBERS: Mapping[int, StorageKind] = {
    errno.ENOSPC: "configuration",
    errno.EDQUOT: "configuration",
    errno.EROFS: "configuration",
    errno.EMLINK: "configuration",
    errno.EXDEV: "configuration",
    errno.ENOSYS: "configuration",
    errno.EOPNOTSUPP: "configuration",
    errno.ENAMETOOLONG: "configuration",
    errno.EAGAIN: "transient",
    errno.EBUSY: "transient",
    errno.ENETUNREACH: "transient",
    errno.EHOSTUNREACH: "transient",
}
_LONGEST = 300


def storage_failure(
    error: BaseException, *, effect: Effect = "unknown", kinds: Kinds | None = None
) -> StorageError:
    """Return the typed error for an exception of Lance, the system, or the types in `extra_kinds`.

    `effect` is what the failed call may have done: `none` for a read.

    >>> storage_failure(TimeoutError(), effect="none").kind
    'transient'
    >>> storage_failure(OSError(errno.ENOSPC, "No space left on device")).kind
    'configuration'
    >>> storage_failure(OSError("timeout, permission denied, not found")).kind
    'unknown'
    """
    if isinstance(error, StorageError):
        return error
    kind = _kind(error, kinds or {})
    return StorageError(kind=kind, reason=failure_reason(error), effect=effect)


@contextmanager
def reported(effect: Effect, kinds: Kinds | None = None) -> Iterator[None]:
    """Raise failures in the block as typed errors.

    >>> with reported("none"):
    ...     raise TimeoutError
    Traceback (most recent call last):
    omnigraph.errors.failure.TransientStorageError: the store failed (transient): TimeoutError
    hint: wait, then try again
    """
    caught = (OSError, *(kinds or ()))
    try:
        with unpanicked(effect):
            yield
    except caught as error:
        # Drop an object store's exception: it contains a dump of the request, unfit for any log.
        cause = error if isinstance(error, OSError) and error.errno is not None else None
        raise storage_failure(error, effect=effect, kinds=kinds) from cause


@contextmanager
def unpanicked(effect: Effect = "none") -> Iterator[None]:
    """Raise a panic of Lance in the block as `DamagedError`; other exceptions pass through.

    Lance panics on some damaged files. A panic is not an `Exception`, so callers would miss it.
    """
    try:
        yield
    except BaseException as error:
        if type(error).__name__ != "PanicException":  # defined in Rust; it cannot be imported
            raise
        reason = f"stored data cannot be decoded: {failure_reason(error)}"
        raise DamagedError(reason, effect=effect) from error


@contextmanager
def undecided() -> Iterator[None]:
    """Raise failures in the block, even failed reads, as errors whose effect is unknown.

    For reads that were meant to decide whether an earlier write happened.

    >>> with undecided():
    ...     raise StorageError("no answer", effect="none", hint="ask again")
    Traceback (most recent call last):
    omnigraph.errors.failure.StorageError: no answer
    hint: ask again
    """
    try:
        with reported("unknown"):
            yield
    except StorageError as error:
        error.effect = "unknown"
        raise


def _kind(error: BaseException, kinds: Kinds) -> StorageKind:
    if _lost_swap(error):
        return "precondition"
    for one in type(error).__mro__:
        found = kinds.get(one) or _KINDS.get(one)
        if found is not None:
            return found
    number = error.errno if isinstance(error, OSError) else None
    return _NUMBERS.get(number, "unknown") if number is not None else "unknown"


def _lost_swap(error: BaseException) -> bool:
    # Importing Lance is slow, and an exception of a module not imported cannot have been raised.
    lance = sys.modules.get("lance.commit")
    return lance is not None and isinstance(error, lance.CommitConflictError)


def failure_reason(error: BaseException) -> str:
    """Return what an exception says, on one line, without secrets."""
    # After the first line come dumps of requests; a store's reply (XML) may repeat a key id.
    line = str(error).partition("\n")[0].partition("<")[0].strip(" :")
    text = redact_text(line) or type(error).__name__
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"
