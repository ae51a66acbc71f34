"""Tasks of worker processes that update nodes through the public interface."""

import logging
import os
import time
from collections import Counter
from contextlib import ExitStack, nullcontext
from dataclasses import dataclass

import pytest

import omnigraph
from omnigraph.errors import Conflict
from omnigraph.history import machine_queue
from omnigraph.history.machine_queue import MachineQueue
from tests.processes.write_tasks import meet


@dataclass(frozen=True, slots=True)
class UpdateReport:
    """What one updating process saw: landed updates, conflicts by error code, internal retries, seconds."""

    landed: int
    conflicts: dict[str, int]
    retries: int
    most_retries: int
    seconds: float


class _RetryCounter(logging.Handler):
    """Collects the internal retries of each mutation from the log events."""

    def __init__(self) -> None:
        super().__init__()
        self.counts = [0]

    def emit(self, record: logging.LogRecord) -> None:
        """Keep the number of retries of a mutation."""
        event = getattr(record, "event", {})
        if event.get("operation") == "mutate":
            self.counts.append(event["retries"])


def race_for_own_keys(root: str, writer: int, keys: int, updates: int, gate: str) -> UpdateReport:
    """Update own keys without taking turns, so that the processes race for every swap."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(MachineQueue, "turn", lambda _: nullcontext(False))
        return update_own_keys(root, writer, keys, updates, gate)


def update_own_keys(root: str, writer: int, keys: int, updates: int, gate: str) -> UpdateReport:
    """Update only keys that no other writer touches, and never read or refresh."""
    graph = omnigraph.open(root, durability="os", actor=f"writer-{writer}")
    logger, retry_counter = logging.getLogger("omnigraph"), _RetryCounter()
    logger.addHandler(retry_counter)
    logger.setLevel(logging.INFO)
    landed, conflicts = 0, Counter[str]()
    meet(gate)
    start = time.perf_counter()
    for number in range(updates):
        try:
            graph.update("Person", where="name = $k", set={"age": number}, k=f"w{writer}-{number % keys}")
            landed += 1
        except Conflict as error:
            conflicts[error.code] += 1
    seconds = time.perf_counter() - start
    logger.removeHandler(retry_counter)
    return UpdateReport(landed, dict(conflicts), sum(retry_counter.counts), max(retry_counter.counts), seconds)


_open_turns: list[ExitStack] = []


def hold_turn(root: str, branch: str) -> None:
    """Take a turn and do not end it."""
    _open_turns.append(ExitStack())
    _open_turns[-1].enter_context(MachineQueue(root, branch).turn())


def stay_first_in_line(root: str, branch: str) -> None:
    """Become first in line, like a process that is stopped while it waits for its turn."""
    queue = MachineQueue(root, branch)
    file_descriptor = machine_queue._open_lock_file()
    assert file_descriptor is not None
    assert machine_queue._wait_for_lock(file_descriptor, queue._next_offset, 0)[0]


def leave_turn() -> None:
    """End the turn that was taken last."""
    _open_turns.pop().close()


def die_during_turn(root: str, branch: str) -> None:
    """End the process during its turn, without any cleanup."""
    hold_turn(root, branch)
    os._exit(1)
