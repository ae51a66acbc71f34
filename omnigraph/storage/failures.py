"""Says what proof there is about a failed storage call, as a `StorageError`.

Decides by the type of the exception and by `errno`, never by its text: texts change, and they hold
places and keys. What proves nothing is `unknown`.
"""

import errno
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from omnigraph.errors import Effect, StorageError, StorageKind, redact_text

Kinds = Mapping[type[BaseException], StorageKind]


class AbsentError(StorageError, FileNotFoundError):
    """A table or a version that is proved not to be there.

    >>> isinstance(AbsentError("no table"), FileNotFoundError), AbsentError("no table").kind
    (True, 'not_found')
    """

    code = "StorageError"
    kind = "not_found"
    effect = "none"
    hint = "look whether the place is spelled right, or whether cleanup took it"


class DamagedError(StorageError, OSError):
    """Files of a table that are missing, or that are not what was written.

    >>> isinstance(DamagedError("a file is missing"), OSError), DamagedError("a file").effect
    (True, 'none')
    """

    code = "StorageError"
    kind = "permanent"
    effect = "none"
    hint = "`omnigraph check` names the files; restore them from a copy"


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
    """The typed failure for an exception of Lance, of the system, or of the types in `kinds`.

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
    """Raise what fails in the block as a typed failure.

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
        # An object store's exception holds a dump of the request, which no log should have.
        cause = error if isinstance(error, OSError) and error.errno is not None else None
        raise storage_failure(error, effect=effect, kinds=kinds) from cause


@contextmanager
def unpanicked(effect: Effect = "none") -> Iterator[None]:
    """Raise a panic of Lance in the block as `DamagedError`; all else passes.

    Lance panics on some damaged files. That is no `Exception`, so that nobody would catch it.
    """
    try:
        yield
    except BaseException as error:
        if type(error).__name__ != "PanicException":  # Rust's; it can be imported from nowhere
            raise
        reason = f"what is stored cannot be understood: {failure_reason(error)}"
        raise DamagedError(reason, effect=effect) from error


@contextmanager
def undecided() -> Iterator[None]:
    """Raise what fails in the block as a failure whose effect is not known, a failed read too.

    For looks that were to tell whether something happened.

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
    # Lance takes long to import, and what nobody imported cannot have been raised.
    lance = sys.modules.get("lance.commit")
    return lance is not None and isinstance(error, lance.CommitConflictError)


def failure_reason(error: BaseException) -> str:
    """What an exception says, on one line, without secrets."""
    # Behind the first line stand dumps of requests; a store's answer (XML) may repeat a key id.
    line = str(error).partition("\n")[0].partition("<")[0].strip(" :")
    text = redact_text(line) or type(error).__name__
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"
