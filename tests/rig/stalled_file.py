"""A file whose readers wait until the test lets them continue.

The file is a named pipe without a writer, so whatever opens it for reading waits in the kernel, without a clock. After
the release, those readers read an empty file, and later ones the original content.
"""

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


class StalledFile:
    """A file that cannot be read until it is released."""

    def __init__(self, path: Path) -> None:
        self._path, self._original = path, path.with_name(f"{path.name}.original")
        path.rename(self._original)
        os.mkfifo(path)
        self._pipe = path.with_name(f"{path.name}.pipe")
        os.link(path, self._pipe)
        self._is_released = threading.Event()

    def release(self) -> None:
        """Put the original file back, and wake all readers that wait; they read an empty file."""
        if self._is_released.is_set():
            return
        self._is_released.set()
        self._original.replace(self._path)
        # A pipe that is open for both directions wakes its readers; closing it is the end of their file.
        os.close(os.open(self._pipe, os.O_RDWR))
        self._pipe.unlink()


@contextmanager
def stalled(path: Path) -> Iterator[StalledFile]:
    """Stall the readers of a file until it is released, at the latest at the end of the block."""
    file = StalledFile(path)
    try:
        yield file
    finally:
        file.release()


def edge_file(uri: str) -> Path:
    """The only data file of the edges of a graph. Opening the graph does not read it."""
    (path,) = Path(uri).glob("edges/*/data/*.lance")
    return path
