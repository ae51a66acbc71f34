"""Convert storage failures to `StorageError` exceptions that state only what is known about the failure.

Failures are classified by exception type and `errno`, never by message, because messages can change and may contain
paths and keys. If it is uncertain whether a failed call changed anything, its effect is `unknown`.
"""

import errno
import logging
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TypeVar

from omnigraph.errors import Effect, InternalError, OmnigraphError, StorageError, StorageKind, redact_text

ExceptionKinds = Mapping[type[BaseException], StorageKind]
MaintenanceResult = TypeVar("MaintenanceResult")
_log = logging.getLogger("omnigraph")


class AbsentError(StorageError, FileNotFoundError):
    """A table or a version does not exist.

    >>> isinstance(AbsentError("no table"), FileNotFoundError), AbsentError("no table").kind
    (True, 'not_found')
    """

    code = "StorageError"
    kind = "not_found"
    effect = "none"
    hint = "check that the location is spelled correctly and that a cleanup has not removed the object"


class DamagedError(StorageError, OSError):
    """Stored files are missing, or their content differs from what was written.

    >>> isinstance(DamagedError("a file is missing"), OSError), DamagedError("a file").effect
    (True, 'none')
    """

    code = "StorageError"
    kind = "permanent"
    effect = "none"
    hint = "run `omnigraph check` to list the files, then restore them from a backup"


_KINDS_BY_EXCEPTION: ExceptionKinds = {
    FileExistsError: "precondition",
    FileNotFoundError: "not_found",
    NotADirectoryError: "configuration",
    IsADirectoryError: "configuration",
    PermissionError: "configuration",
    ConnectionError: "transient",
    TimeoutError: "transient",
    NotImplementedError: "configuration",
}
_KINDS_BY_ERRNO: Mapping[int, StorageKind] = {
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
_MAX_REASON_LENGTH = 300


def to_storage_error(
    error: BaseException, *, effect: Effect = "unknown", extra_kinds: ExceptionKinds | None = None
) -> StorageError:
    """Convert an exception from Lance or the operating system, or one listed in `extra_kinds`, to a typed error.

    `effect` specifies what the failed call may have done. Pass `none` for a read.

    >>> to_storage_error(TimeoutError(), effect="none").kind
    'transient'
    >>> to_storage_error(OSError(errno.ENOSPC, "No space left on device")).kind
    'configuration'
    >>> to_storage_error(OSError("timeout, permission denied, not found")).kind
    'unknown'
    """
    if isinstance(error, StorageError):
        return error
    kind = _classify_error(error, extra_kinds or {})
    return StorageError(kind=kind, reason=failure_reason(error), effect=effect)


@contextmanager
def as_storage_errors(effect: Effect, extra_kinds: ExceptionKinds | None = None) -> Iterator[None]:
    """Convert failures inside the block to typed errors.

    >>> with as_storage_errors("none"):
    ...     raise TimeoutError
    Traceback (most recent call last):
    omnigraph.errors.failure.TransientStorageError: the store failed (transient): TimeoutError
    hint: wait, then try again
    """
    caught_types = (OSError, *(extra_kinds or ()))
    try:
        with panics_as_errors(effect):
            yield
    except caught_types as error:
        # Suppress the cause of an object store error: the original exception contains a dump of the request, which must
        # never reach a log.
        cause = error if isinstance(error, OSError) and error.errno is not None else None
        raise to_storage_error(error, effect=effect, extra_kinds=extra_kinds) from cause


@contextmanager
def panics_as_errors(effect: Effect = "none") -> Iterator[None]:
    """Convert a Lance panic inside the block to `DamagedError`, and a wrapped Ctrl-C to `KeyboardInterrupt`.

    Lance panics on some damaged files. A panic is not an `Exception`, so callers would not catch it. Other exceptions
    propagate.
    """
    try:
        yield
    except BaseException as error:
        if _is_wrapped_interrupt(error):
            raise KeyboardInterrupt from None
        if type(error).__name__ != "PanicException":  # defined in Rust and cannot be imported
            raise
        reason = f"stored data cannot be decoded: {failure_reason(error)}"
        raise DamagedError(reason, effect=effect) from error


def _is_wrapped_interrupt(error: BaseException) -> bool:
    """Return whether Arrow has wrapped the exception that Ctrl-C raised while a reader was running Python code."""
    return isinstance(error, OSError | ValueError) and str(error).endswith("External error: KeyboardInterrupt")


@contextmanager
def failures_with_effect(effect: Effect) -> Iterator[None]:
    """Convert failures inside the block to errors with the given effect, even if a failure specifies another effect.

    Use `unknown` for reads that determine whether an earlier write happened. Use `none` for writes of files that no
    version references yet, because readers never see such files.

    >>> with failures_with_effect("unknown"):
    ...     raise StorageError("no answer", effect="none", hint="ask again")
    Traceback (most recent call last):
    omnigraph.errors.failure.StorageError: no answer
    hint: ask again
    """
    try:
        with as_storage_errors(effect):
            yield
    except StorageError as error:
        error.effect = effect
        raise


def attempt_maintenance(location: str, maintain: Callable[[], MaintenanceResult]) -> MaintenanceResult | None:
    """Run table maintenance as part of a write; if it fails, log a warning and return None.

    The write then continues without the maintenance. No published version references the files that the maintenance has
    already written, so a cleanup removes them. Conflicts, timeouts and cancellations concern the write itself and are
    therefore raised.
    """
    try:
        with panics_as_errors():
            return maintain()
    except Exception as error:
        if isinstance(error, OmnigraphError) and not isinstance(error, StorageError | InternalError):
            raise
        _log.warning(
            "the maintenance of %s failed, and the write continued without it: %s", location, failure_reason(error)
        )
        return None


def _classify_error(error: BaseException, extra_kinds: ExceptionKinds) -> StorageKind:
    if _is_commit_conflict(error):
        return "precondition"
    for exception_type in type(error).__mro__:
        storage_kind = extra_kinds.get(exception_type) or _KINDS_BY_EXCEPTION.get(exception_type)
        if storage_kind is not None:
            return storage_kind
    error_number = error.errno if isinstance(error, OSError) else None
    return _KINDS_BY_ERRNO.get(error_number, "unknown") if error_number is not None else "unknown"


def _is_commit_conflict(error: BaseException) -> bool:
    # Do not import Lance here. The import is slow, and if Lance has not been imported yet, it cannot have raised the
    # exception.
    lance_commit_module = sys.modules.get("lance.commit")
    return lance_commit_module is not None and isinstance(error, lance_commit_module.CommitConflictError)


def failure_reason(error: BaseException) -> str:
    """Return the message of an exception on one line, without secrets."""
    # Later lines contain request dumps, and a store's XML response may repeat a key id.
    first_line = str(error).partition("\n")[0].partition("<")[0].strip(" :")
    reason = redact_text(first_line) or type(error).__name__
    return reason if len(reason) <= _MAX_REASON_LENGTH else reason[: _MAX_REASON_LENGTH - 1] + "…"
