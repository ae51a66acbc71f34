"""The result of a call in a lane: when a task that waits for it is canceled, and which calls are counted."""

import asyncio
import threading
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from unittest.mock import Mock

import pytest

from omnigraph.server.lanes import Lane, LaneContext, LaneFuture


class _BlockingCall:
    """A call that ends when the test allows it."""

    def __init__(self) -> None:
        self.has_started, self.may_end = threading.Event(), threading.Event()

    def __call__(self) -> str:
        self.has_started.set()
        assert self.may_end.wait(10)
        return "result"


def run_with_lane(test: Callable[[Lane, list[int]], Awaitable[None]]) -> list[int]:
    """Run a test with a lane that has one thread, and return the numbers of calls that the lane reported."""
    counts: list[int] = []

    async def run_test() -> None:
        lane = Lane("read", 1, 8, lambda _, call_count: counts.append(call_count))
        await test(lane, counts)
        lane.close()

    asyncio.run(run_test())
    return counts


async def start_waiting(lane: Lane, call: _BlockingCall, lane_context: LaneContext) -> "asyncio.Task[str]":
    """Start a task that waits for a call, and return when the call has begun."""
    task = asyncio.create_task(lane.run(call, lane_context))
    await asyncio.sleep(0)
    assert await asyncio.to_thread(call.has_started.wait, 10)
    return task


def test_a_canceled_task_ends_after_its_call() -> None:
    async def cancel_once(lane: Lane, counts: list[int]) -> None:
        call, lane_context = _BlockingCall(), LaneContext()
        task = await start_waiting(lane, call, lane_context)
        task.cancel()
        await asyncio.sleep(0.05)
        assert lane_context.stop_event.is_set()
        assert not task.done()
        assert counts[-1] == 1
        call.may_end.set()
        with pytest.raises(asyncio.CancelledError):
            await task

    assert run_with_lane(cancel_once) == [0, 1, 0]


def test_a_second_cancellation_ends_the_wait_for_a_running_call() -> None:
    async def cancel_twice(lane: Lane, counts: list[int]) -> None:
        call = _BlockingCall()
        task = await start_waiting(lane, call, LaneContext())
        for _ in range(2):
            task.cancel()
            await asyncio.sleep(0)
        with pytest.raises(asyncio.CancelledError):
            await task
        assert counts[-1] == 1  # the thread is still occupied
        call.may_end.set()
        assert await lane.run(lambda: "next", LaneContext()) == "next"

    assert run_with_lane(cancel_twice)[-1] == 0


def test_a_queued_call_never_runs_after_its_task_is_canceled() -> None:
    async def cancel_queued(lane: Lane, counts: list[int]) -> None:
        running, queued = _BlockingCall(), _BlockingCall()
        first = await start_waiting(lane, running, LaneContext())
        second = asyncio.create_task(lane.run(queued, LaneContext()))
        await asyncio.sleep(0)
        second.cancel()
        with pytest.raises(asyncio.CancelledError):
            await second
        assert counts[-1] == 1
        running.may_end.set()
        assert await first == "result"
        assert not queued.has_started.is_set()

    assert run_with_lane(cancel_queued) == [0, 1, 2, 1, 0]


def test_the_error_of_a_call_reaches_its_task() -> None:
    async def fail(lane: Lane, _: list[int]) -> None:
        with pytest.raises(ZeroDivisionError):
            await lane.run(lambda: 1 // 0, LaneContext())

    assert run_with_lane(fail) == [0, 1, 0]


def test_a_call_that_raises_stop_iteration_ends() -> None:
    async def fail(lane: Lane, _: list[int]) -> None:
        call = lane.start(lambda: next(iter(())), LaneContext())
        await asyncio.wait([call], timeout=5)
        assert call.done()
        with pytest.raises(RuntimeError, match="StopIteration"):
            await call

    assert run_with_lane(fail) == [0, 1, 0]


def test_a_call_ends_even_if_it_cannot_be_counted() -> None:
    async def fail_to_count() -> int:
        asyncio.get_running_loop().set_exception_handler(lambda *_: None)
        pool, future = ThreadPoolExecutor(1), LaneFuture[int](LaneContext(), Mock(side_effect=ValueError))
        future.start(pool, lambda: 7)
        await asyncio.wait([future], timeout=5)
        return future.result()

    assert asyncio.run(fail_to_count()) == 7
