"""Processes on one machine take turns, and no process waits long for another one."""

from pathlib import Path

import pytest

from omnigraph.history import machine_queue
from omnigraph.history.machine_queue import MachineQueue
from tests.processes.conftest import Crew
from tests.processes.update_tasks import die_during_turn, hold_turn, leave_turn, stay_first_in_line
from tests.processes.worker_processes import Hand


def _wait(queue: MachineQueue) -> bool:
    with queue.turn() as waited:
        return waited


def test_a_process_that_does_not_end_its_turn_delays_others_once(
    crew: Crew, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(machine_queue, "MAX_TURN_SECONDS", 0.05)
    (hand,) = crew(1)
    hand.do(hold_turn, str(tmp_path), "main")
    queue = MachineQueue(str(tmp_path), "main")
    assert _wait(queue)
    assert not _wait(queue)  # the holder is known to be slow
    assert not _wait(MachineQueue(str(tmp_path), "other"))  # another branch has its own turns
    hand.do(leave_turn)
    assert not _wait(MachineQueue(str(tmp_path), "main"))


def test_a_stopped_process_that_is_first_in_line_delays_others_once(
    crew: Crew, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(machine_queue, "MAX_LINE_SECONDS", 0.05)
    (hand,) = crew(1)
    hand.do(stay_first_in_line, str(tmp_path), "main")
    queue = MachineQueue(str(tmp_path), "main")
    assert _wait(queue)
    assert not _wait(queue)


def test_the_turn_of_a_killed_process_ends(tmp_path: Path) -> None:
    hand = Hand()
    hand.begin(die_during_turn, str(tmp_path), "main")
    with pytest.raises(EOFError):
        hand.result()
    assert not _wait(MachineQueue(str(tmp_path), "main"))


def test_turns_are_optional(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine_queue, "_lock_file", None)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "missing"))
    assert not _wait(MachineQueue("root", "main"))
