"""Worker processes that run one task at a time.

Starting a process that knows Lance takes a second, so a crew is kept for all tests. What it runs
are functions of `deeds`; a failure there is raised here.
"""

import multiprocessing
import traceback
from collections.abc import Callable, Sequence
from multiprocessing.connection import Connection
from typing import Any

from tests.rig.timeouts import PATIENCE


class Hand:
    """One other process."""

    def __init__(self) -> None:
        spawn = multiprocessing.get_context("spawn")
        self._pipe, theirs = spawn.Pipe()
        self._process = spawn.Process(target=_serve, args=(theirs,), daemon=True)
        self._process.start()
        theirs.close()

    def begin(self, deed: Callable[..., Any], *args: Any) -> None:
        """Let it begin; `result` waits for the end."""
        self._pipe.send((deed, args))

    def result(self, patience: float = PATIENCE) -> Any:
        """What the deed gave; what it raised is raised here."""
        if not self._pipe.poll(patience):
            raise TimeoutError("the other process does not answer")
        done, value, trace = self._pipe.recv()
        if done:
            return value
        value.add_note(trace)
        raise value

    def do(self, deed: Callable[..., Any], *args: Any) -> Any:
        """Do it and wait."""
        self.begin(deed, *args)
        return self.result()

    def dismiss(self) -> None:
        """End the process."""
        self._pipe.close()
        self._process.join(PATIENCE)


def all_at_once(
    hands: Sequence[Hand], deed: Callable[..., Any], args: Sequence[Any], patience: float = PATIENCE
) -> list[Any]:
    """The same deed on each hand, each with its own arguments; the results in that order."""
    for hand, own in zip(hands, args, strict=True):
        hand.begin(deed, *own)
    return [hand.result(patience) for hand in hands]


def _serve(pipe: Connection) -> None:
    while True:
        try:
            deed, args = pipe.recv()
        except EOFError:
            return
        try:
            pipe.send((True, deed(*args), ""))
        except Exception as error:
            pipe.send((False, error, traceback.format_exc()))
