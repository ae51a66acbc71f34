"""Fair turns for processes on one machine that write to the same branch.

Without turns, the process that published last has the newest state in memory, so it keeps winning the race while the
other processes starve. Turns are byte-range locks on one file in the temporary directory: the operating system releases
them when a process exits, and nothing in the root changes. Turns affect only speed, never correctness, so a process
that has waited too long writes without a turn.
"""

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from omnigraph.records.cached_property import cached_property
from omnigraph.values import clock_and_ids

try:
    import fcntl

    _HAS_LOCKS = True
except ImportError:  # not available on this platform, so processes race for the swap
    _HAS_LOCKS = False

MAX_TURN_SECONDS = 5.0  # seconds that the first process in line waits for the current turn to end
MAX_LINE_SECONDS = 8.0  # seconds that a process waits to become first in line
# Seconds for which a process skips the queue after it waited in vain, because another process may have been stopped.
_SKIP_SECONDS = 30.0
_SHORTEST_POLL, _LONGEST_POLL = 0.001, 0.008  # seconds between two attempts to get a lock

_lock_file: tuple[int, int] | None = None  # the process id and file descriptor of an open lock file
_open_guard = threading.Lock()


class MachineQueue:
    """The queue for one branch, shared by all of a user's processes on this machine.

    Two locks form a turnstile. The next process in line holds the first lock while it waits for the
    second, so the process that releases the second lock cannot immediately reacquire it.
    """

    def __init__(self, root_identity: str, branch_ulid: str) -> None:
        self._queue_name = f"{root_identity}\0{branch_ulid}"
        self._skip_until = 0.0

    @cached_property
    def _next_offset(self) -> int:
        """The offset of the byte that a process locks to be next in line."""
        from hashlib import sha256  # imported lazily, because it loads OpenSSL

        return int.from_bytes(sha256(self._queue_name.encode()).digest()[:6], "big") * 2

    @property
    def _turn_offset(self) -> int:
        """The offset of the byte that a process locks to hold a turn."""
        return self._next_offset + 1

    @contextmanager
    def turn(self) -> Iterator[bool]:
        """Hold a turn for the duration of the block.

        Yields True if the process had to wait for its turn. Other processes may have written in the meantime.
        """
        file_descriptor = _open_lock_file() if clock_and_ids.monotonic() >= self._skip_until else None
        if file_descriptor is None:
            yield False
            return
        is_first, waited = _wait_for_lock(file_descriptor, self._next_offset, MAX_LINE_SECONDS)
        has_turn, waited_for_turn = False, False
        if is_first:
            has_turn, waited_for_turn = _wait_for_lock(file_descriptor, self._turn_offset, MAX_TURN_SECONDS)
            _unlock(file_descriptor, self._next_offset)
        if not has_turn:
            self._skip_until = clock_and_ids.monotonic() + _SKIP_SECONDS
        try:
            yield waited or waited_for_turn
        finally:
            if has_turn:
                _unlock(file_descriptor, self._turn_offset)


def _open_lock_file() -> int | None:
    """Return the lock file's descriptor, which stays open to keep its locks, or None if the file cannot be locked."""
    global _lock_file  # noqa: PLW0603
    if not _HAS_LOCKS:
        return None
    with _open_guard, suppress(OSError):
        if _lock_file is None or _lock_file[0] != os.getpid():
            import tempfile

            path = Path(tempfile.gettempdir(), f"omnigraph-{os.getuid()}.lock")
            flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
            _lock_file = (os.getpid(), os.open(path, flags, 0o600))
        return _lock_file[1]
    return None


def _wait_for_lock(file_descriptor: int, offset: int, max_seconds: float) -> tuple[bool, bool]:
    """Try to lock one byte until a timeout; return whether the byte was locked and whether the call had to wait."""
    deadline = clock_and_ids.monotonic() + max_seconds
    poll_seconds, waited = _SHORTEST_POLL, False
    while not _try_lock(file_descriptor, offset):
        waited = True
        if clock_and_ids.monotonic() > deadline:
            return False, waited
        threading.Event().wait(poll_seconds)
        poll_seconds = min(_LONGEST_POLL, poll_seconds * 2)
    return True, waited


def _try_lock(file_descriptor: int, offset: int) -> bool:
    try:
        fcntl.lockf(file_descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, offset)
    except (BlockingIOError, PermissionError):
        return False
    except OSError:  # the file system does not support locks
        return True
    return True


def _unlock(file_descriptor: int, offset: int) -> None:
    with suppress(OSError):
        fcntl.lockf(file_descriptor, fcntl.LOCK_UN, 1, offset)
