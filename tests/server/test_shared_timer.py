"""Time limits that share one timer."""

import asyncio
from contextlib import suppress
from unittest.mock import Mock

import pytest

from omnigraph.server.wire.shared_timer import SharedTimer, TaskLimit


def test_a_limit_expires_unless_it_ends_in_time() -> None:
    async def start_limits() -> list[str]:
        timer, expired = SharedTimer(), list[str]()
        timer.start(0.01, lambda: expired.append("short"))
        timer.end(timer.start(0.01, lambda: expired.append("ended")))
        timer.start(60, lambda: expired.append("long"))
        async with asyncio.timeout(10):
            while not expired:
                await asyncio.sleep(0.01)
        timer.start(0.01, lambda: expired.append("second"))
        async with asyncio.timeout(10):
            while len(expired) < 2:
                await asyncio.sleep(0.01)
        return expired

    assert asyncio.run(start_limits()) == ["short", "second"]


def test_an_error_in_one_limit_does_not_stop_the_others() -> None:
    async def start_limits() -> list[str]:
        timer, expired, errors = SharedTimer(), list[str](), list[object]()
        asyncio.get_running_loop().set_exception_handler(lambda _, context: errors.append(context.get("exception")))
        error = ValueError()
        timer.start(0.01, Mock(side_effect=error))
        timer.start(0.01, lambda: expired.append("other"))
        with suppress(TimeoutError):
            async with asyncio.timeout(5):
                while not expired:
                    await asyncio.sleep(0.01)
        assert errors == [error]
        return expired

    assert asyncio.run(start_limits()) == ["other"]


def test_a_slow_block_raises_a_timeout_error() -> None:
    async def wait_too_long() -> int:
        task = asyncio.current_task()
        assert task is not None
        with pytest.raises(TimeoutError), TaskLimit(SharedTimer(), 0.01):
            await asyncio.Event().wait()
        return task.cancelling()

    assert asyncio.run(wait_too_long()) == 0


def test_a_canceled_block_stays_canceled() -> None:
    async def wait_for_cancellation() -> None:
        timer = SharedTimer()

        async def wait_long() -> None:
            with TaskLimit(timer, 60):
                await asyncio.Event().wait()

        task = asyncio.create_task(wait_long())
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(wait_for_cancellation())
