"""Decide whether a failed recovery of one operation is worth another attempt.

Decides by error type and `errno`, never by message text. It must never call a failure permanent
that can pass by itself: the store is down, the disk is full, a permission is missing.
"""

import errno
from typing import Literal

from omnigraph.errors import OmnigraphError, StorageError

from .intent_record import NewerReleaseError

Prospect = Literal["for_good", "later", "unclear"]
# Errors that this name or file causes at every attempt, in any process.
_PERMANENT_ERRNOS = frozenset(
    {errno.ENAMETOOLONG, errno.EISDIR, errno.ENOTDIR, errno.ELOOP, errno.EILSEQ, errno.EINVAL}
)
# Errors of a machine that is short of a resource, or of a mount that is gone for now.
_TEMPORARY_ERRNOS = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.ESTALE, errno.EIO})


def judge_failure(error: Exception) -> Prospect:
    """Predict what another attempt would bring.

    "unclear" is permanent only if a second attempt fails as well while the store responds.

    >>> judge_failure(StorageError(kind="transient")), judge_failure(StorageError(kind="unknown"))
    ('later', 'unclear')
    >>> judge_failure(StorageError(kind="permanent")), judge_failure(KeyError("name"))
    ('for_good', 'for_good')
    """
    if isinstance(error, NewerReleaseError):  # this release will never understand it
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
    # A missing file may have been replaced since the state that references it was read.
    return "unclear"
