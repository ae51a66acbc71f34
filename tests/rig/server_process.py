"""Starts server programs for tests and ends exactly those, with their children."""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.rig.timeouts import PATIENCE

# Linux ends the program when the test run ends (PR_SET_PDEATHSIG): one that is killed leaves no
# server behind. This is done in a step between, since Lance must not see this process fork.
_END_WITH_PARENT = "import ctypes, os, sys; ctypes.CDLL(None).prctl(1, 9); os.execv(sys.argv[1], sys.argv[1:])"


@dataclass(frozen=True, slots=True)
class Program:
    """A running server program, the head of its own process group."""

    process: subprocess.Popen[bytes]
    log: Path

    def stop(self) -> None:
        """End the whole group at once: its data is thrown away, so there is nothing to finish."""
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait(PATIENCE)

    def wait_until(self, ready: Callable[[], bool], patience: float = PATIENCE) -> None:
        """Wait for a sign of life; a program that ends or stays silent is an error with its log."""
        end = time.monotonic() + patience
        while not ready():
            if self.process.poll() is not None or time.monotonic() > end:
                raise RuntimeError(f"the server did not start:\n{self.log.read_text()[-4000:]}")
            time.sleep(0.05)


def start(command: Sequence[str], directory: Path) -> Program:
    """Start a program in a directory, its output in a log there."""
    log = directory / "log.txt"
    with log.open("wb") as out:
        process = subprocess.Popen(
            [sys.executable, "-c", _END_WITH_PARENT, *command],
            cwd=directory,
            stdout=out,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    return Program(process, log)


def installed(name: str) -> str:
    """A program that a Python package installed beside the interpreter."""
    path = Path(sys.executable).parent / name
    if not path.exists():
        raise RuntimeError(f"{name} is not installed: run `make setup`")
    return str(path)


def free_ports(count: int) -> list[int]:
    """Ports that nobody listened on a moment ago, all different."""
    sockets = [socket.socket() for _ in range(count)]
    try:
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]
    finally:
        for one in sockets:
            one.close()


def listens(port: int) -> bool:
    """Whether a local port accepts connections."""
    try:
        socket.create_connection(("127.0.0.1", port), 1).close()
    except OSError:
        return False
    return True
