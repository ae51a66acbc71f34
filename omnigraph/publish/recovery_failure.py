"""Decide whether a failed recovery of one operation is worth retrying.

The decision depends on the error type and `errno`, never on the message text. A failure that may go away, such as an
outage, a full disk or a missing permission, must never be classified as permanent.
"""

import errno
from typing import Literal

from omnigraph.errors import OmnigraphError, StorageError

from .intent_record import NewerReleaseError

Prospect = Literal["for_good", "later", "unclear"]
# Errors that recur for the same name or file on every attempt and in every process.
_PERMANENT_ERRNOS = frozenset(
    {errno.ENAMETOOLONG, errno.EISDIR, errno.ENOTDIR, errno.ELOOP, errno.EILSEQ, errno.EINVAL}
)
# Errors that mean that the machine has run out of a resource or that a mount is temporarily unavailable.
_TEMPORARY_ERRNOS = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.ESTALE, errno.EIO})


def judge_failure(error: Exception) -> Prospect:
    """Classify a failure by whether another attempt can succeed.

    An "unclear" failure is permanent only if a second attempt also fails while the store responds.

    >>> judge_failure(StorageError(kind="transient")), judge_failure(StorageError(kind="unknown"))
    ('later', 'unclear')
    >>> judge_failure(StorageError(kind="permanent")), judge_failure(KeyError("name"))
    ('for_good', 'for_good')
    """
    if isinstance(error, NewerReleaseError):  # this release can never settle the operation
        return "for_good"
    if isinstance(error, StorageError):
        return _judge_storage_error(error)
    if isinstance(error, OmnigraphError):
        return "for_good" if error.retryable == "no" else "later"
    return "later" if isinstance(error, MemoryError | OSError) else "for_good"


def _judge_storage_error(error: StorageError) -> Prospect:
    cause = error.__cause__
    if isinstance(cause, OSError) and cause.errno in _PERMANENT_ERRNOS:
        return "for_good"
    if error.kind == "permanent":
        return "for_good"
    if error.kind in ("transient", "configuration"):
        return "later"
    if isinstance(cause, OSError) and cause.errno in _TEMPORARY_ERRNOS:
        return "later"
    # A file may be missing because it was replaced after the state that references it was read.
    return "unclear"
