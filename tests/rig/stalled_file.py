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


_HOOK = '''
import os
import sys

_PIPE = {pipe!r}


def wait_at_edge_files(event, arguments):
    """Wait for the release of a pipe before a data file of the edges is opened."""
    if event == "open" and isinstance(arguments[0], (str, os.PathLike)) and os.path.exists(_PIPE):
        path = os.fspath(arguments[0])
        if isinstance(path, str) and "/edges/" in path and path.endswith(".lance"):
            try:
                open(_PIPE, "rb").close()
            except FileNotFoundError:
                pass  # the test has just released the readers


sys.addaudithook(wait_at_edge_files)
'''


class StalledReads:
    """Makes Python programs wait when they open a data file of the edges, until the test releases them.

    A check never opens a pipe among the files of a graph, so the pipe lies outside. An audit hook in the program opens
    it before the data file. Reads by native code do not wait.
    """

    def __init__(self, folder: Path) -> None:
        self._pipe = folder / "stall" / "pipe"
        self._pipe.parent.mkdir()
        (self._pipe.parent / "sitecustomize.py").write_text(_HOOK.format(pipe=str(self._pipe)))

    @property
    def variables(self) -> dict[str, str]:
        """The environment variables that install the hook in a program."""
        paths = (str(self._pipe.parent), os.environ.get("PYTHONPATH", ""))
        return {"PYTHONPATH": os.pathsep.join(path for path in paths if path)}

    @contextmanager
    def stalled(self) -> Iterator["StalledReads"]:
        """Stall reads until they are released, at the latest at the end of the block."""
        os.mkfifo(self._pipe)
        try:
            yield self
        finally:
            self.release()

    def release(self) -> None:
        """Wake all readers that wait."""
        if self._pipe.exists():
            # The name goes first, so that no later reader waits. A pipe that is open for both directions wakes readers.
            unnamed_pipe = os.open(self._pipe, os.O_RDWR)
            self._pipe.unlink()
            os.close(unnamed_pipe)
