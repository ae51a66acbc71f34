"""Turns of the processes on one machine that update the same branch.

Without turns, the process that has just published has the newest state in memory and wins again and
again, and the others starve. Turns are byte-range locks on one file in the temporary directory: the
system releases them when a process ends, and nothing in the root changes. Only speed depends on
turns, never correctness, so a process that has waited long enough writes without one.
"""

import hashlib
import os
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from omnigraph.values import clock_and_ids

try:
    import fcntl

    _HAS_LOCKS = True
except ImportError:  # not on this platform: processes race for the swap
    _HAS_LOCKS = False

MAX_WAIT_SECONDS = 5.0  # a process that has waited this long writes without a turn
_SKIP_SECONDS = 30.0  # after such a wait, the holder is slow, and nobody waits for it again for this long
_SHORTEST_POLL, _LONGEST_POLL = 0.001, 0.008  # seconds between two attempts to get a lock

_lock_file: tuple[int, int] | None = None  # process id and file descriptor
_open_guard = threading.Lock()


class MachineQueue:
    """The queue of one branch, shared by all processes of a user on this machine.

    Two locks form a turnstile. The next process in line holds the first one while it waits for the
    second one, so the process that gives up the second one cannot take it again at once.
    """

    def __init__(self, root_identity: str, branch_ulid: str) -> None:
        digest = hashlib.sha256(f"{root_identity}\0{branch_ulid}".encode()).digest()
        self._next_offset = int.from_bytes(digest[:6], "big") * 2
        self._turn_offset = self._next_offset + 1
        self._skip_until = 0.0

    @contextmanager
    def turn(self) -> Iterator[bool]:
        """Wait for a turn, and end it afterwards; yields whether there was a wait, so others may have written."""
        start = clock_and_ids.monotonic()
        file_descriptor = _open_lock_file() if start >= self._skip_until else None
        if file_descriptor is None:
            yield False
            return
        deadline = start + MAX_WAIT_SECONDS
        waited = _lock_until(file_descriptor, self._next_offset, deadline)
        waited |= _lock_until(file_descriptor, self._turn_offset, deadline)
        _unlock(file_descriptor, self._next_offset)
        if clock_and_ids.monotonic() > deadline:
            self._skip_until = deadline + _SKIP_SECONDS
        try:
            yield waited
        finally:
            _unlock(file_descriptor, self._turn_offset)


def _open_lock_file() -> int | None:
    """Return the descriptor of the lock file, which stays open, because closing it would release all locks."""
    global _lock_file  # noqa: PLW0603
    if not _HAS_LOCKS:
        return None
    with _open_guard, suppress(OSError):
        if _lock_file is None or _lock_file[0] != os.getpid():
            path = Path(tempfile.gettempdir(), f"omnigraph-{os.getuid()}.lock")
            flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
            _lock_file = (os.getpid(), os.open(path, flags, 0o600))
        return _lock_file[1]
    return None


def _lock_until(file_descriptor: int, offset: int, deadline: float) -> bool:
    """Lock one byte, or give up at the deadline; return whether another process held the lock."""
    poll_seconds, waited = _SHORTEST_POLL, False
    while not _try_lock(file_descriptor, offset):
        waited = True
        if clock_and_ids.monotonic() > deadline:
            break
        threading.Event().wait(poll_seconds)
        poll_seconds = min(_LONGEST_POLL, poll_seconds * 2)
    return waited


def _try_lock(file_descriptor: int, offset: int) -> bool:
    try:
        fcntl.lockf(file_descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, offset)
    except (BlockingIOError, PermissionError):
        return False
    except OSError:  # a file system without locks
        return True
    return True


def _unlock(file_descriptor: int, offset: int) -> None:
    with suppress(OSError):
        fcntl.lockf(file_descriptor, fcntl.LOCK_UN, 1, offset)
