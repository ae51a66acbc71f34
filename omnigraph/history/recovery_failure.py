"""Whether a failed recovery of one operation is worth another attempt.

Decides by the type of an error and by `errno`, never by its text. It must never call a failure
lasting that may pass by itself: the store is away, the disk is full, a permission is missing.
"""

import errno
from typing import Literal

from omnigraph.errors import OmnigraphError, StorageError

from .intent_record import NewerReleaseError

Prospect = Literal["for_good", "later", "unclear"]
# What this name or this file meets at every attempt, whoever makes it.
_LASTING = frozenset(
    {errno.ENAMETOOLONG, errno.EISDIR, errno.ENOTDIR, errno.ELOOP, errno.EILSEQ, errno.EINVAL}
)
# What a machine meets while it is out of something, or a mount is away.
_PASSING = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.ESTALE, errno.EIO})


def judge_failure(error: Exception) -> Prospect:
    """What another attempt would bring.

    An unclear failure is one of this operation only if a second attempt ends the same while the
    store answers.

    >>> judge_failure(StorageError(kind="transient")), judge_failure(StorageError(kind="unknown"))
    ('later', 'unclear')
    >>> judge_failure(StorageError(kind="permanent")), judge_failure(KeyError("name"))
    ('for_good', 'for_good')
    """
    if isinstance(error, NewerReleaseError):  # this release will never know better
        return "for_good"
    if isinstance(error, StorageError):
        return _judge_storage(error)
    if isinstance(error, OmnigraphError):
        return "for_good" if error.retryable == "no" else "later"
    return "later" if isinstance(error, MemoryError | OSError) else "for_good"


def _judge_storage(error: StorageError) -> Prospect:
    cause = error.__cause__
    if isinstance(cause, OSError) and cause.errno in _LASTING:
        return "for_good"
    if error.kind == "permanent":
        return "for_good"
    if error.kind in ("transient", "configuration"):
        return "later"
    if isinstance(cause, OSError) and cause.errno in _PASSING:
        return "later"
    # A file that is not there may have been replaced since the state that names it was read.
    return "unclear"
