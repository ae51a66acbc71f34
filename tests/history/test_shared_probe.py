"""Concurrent reads share freshness probes, and never use a probe that began before they asked."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from omnigraph.history.shared_probe import SharedProbe
from tests.rig.timeouts import PATIENCE


class SlowProbe:
    """A probe that returns its number, and ends when the test releases it."""

    def __init__(self) -> None:
        self.started = threading.Semaphore(0)
        self.released = threading.Semaphore(0)
        self.count = 0
        self._lock = threading.Lock()

    def __call__(self) -> int:
        with self._lock:
            self.count += 1
            number = self.count
        self.started.release()
        assert self.released.acquire(timeout=PATIENCE)
        return number


def test_reads_that_arrive_during_a_probe_share_the_next_one() -> None:
    probe = SlowProbe()
    shared = SharedProbe[int](window_seconds=PATIENCE)
    with ThreadPoolExecutor(9) as pool:
        first = pool.submit(shared.run, probe)
        assert probe.started.acquire(timeout=PATIENCE)
        later = [pool.submit(shared.run, probe) for _ in range(8)]
        while shared._pending is None:  # until the second probe has a leader
            threading.Event().wait(0.001)
        assert not any(read.done() for read in later)
        probe.released.release(9)
        assert first.result(PATIENCE) == 1
        numbers = [read.result(PATIENCE) for read in later]
    assert min(numbers) >= 2  # the running probe was never used
    assert probe.count == max(numbers)


def test_a_slow_probe_does_not_hold_up_the_next_one() -> None:
    probe = SlowProbe()
    shared = SharedProbe[int](window_seconds=0.001)
    with ThreadPoolExecutor(2) as pool:
        reads = [pool.submit(shared.run, probe)]
        assert probe.started.acquire(timeout=PATIENCE)
        reads.append(pool.submit(shared.run, probe))
        assert probe.started.acquire(timeout=PATIENCE)  # the second starts although the first is still running
        probe.released.release(2)
        assert sorted(read.result(PATIENCE) for read in reads) == [1, 2]


def test_a_failed_probe_is_repeated_by_each_waiting_read() -> None:
    probe = SlowProbe()

    def fail_first() -> int:
        number = probe()
        if number <= 2:
            raise OSError(f"probe {number}")
        return number

    shared = SharedProbe[int](window_seconds=PATIENCE)
    with ThreadPoolExecutor(4) as pool:
        first = pool.submit(shared.run, fail_first)
        assert probe.started.acquire(timeout=PATIENCE)
        later = [pool.submit(shared.run, fail_first) for _ in range(3)]
        probe.released.release(9)
        with pytest.raises(OSError, match="probe 1"):
            first.result(PATIENCE)
        errors = [read.exception(PATIENCE) for read in later]
    assert sum(error is not None for error in errors) == 1
    assert shared._running_count == 0
    assert shared._pending is None
