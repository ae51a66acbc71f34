"""The lock that serializes writes to a baseline file.

The command line also uses the lock for graphs on a server, so this module must load quickly.
"""

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from omnigraph.api.output_files import is_written_directly
from omnigraph.errors import InputError


@contextmanager
def hold_capture_lock(baseline_path: Path) -> Iterator[None]:
    """Hold the lock that serializes writes to a baseline file. The lock file stays next to the baseline.

    Pipes and devices are not locked, because no lock file should be created next to them.
    """
    if is_written_directly(baseline_path):
        yield
        return
    lock_path = baseline_path.with_name(f"{baseline_path.name}.lock")
    try:
        lock_file = lock_path.open("ab")
    except OSError as error:
        raise InputError(f"cannot write {lock_path}: {error.strerror}", reason="unwritable") from error
    with lock_file:
        fcntl.flock(lock_file, fcntl.LOCK_EX)
        yield
