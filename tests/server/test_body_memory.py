"""The limit for the request bodies that a worker holds in memory."""

import asyncio
from contextlib import nullcontext

import pytest

from omnigraph.errors import ServerBusy
from omnigraph.server.wire.body import BodyReader, Message
from omnigraph.server.wire.body_memory import BodyMemory


def body_reader(chunks: list[bytes]) -> BodyReader:
    messages = [{"type": "http.request", "body": chunk, "more_body": True} for chunk in chunks]
    messages.append({"type": "http.request", "body": b"", "more_body": False})

    async def receive() -> Message:
        return messages.pop(0)

    return BodyReader(receive, None, 100, "request_bytes", nullcontext())


def test_bodies_share_a_limit_and_release_it() -> None:
    memory = BodyMemory(10)

    async def read_bodies() -> None:
        with memory.open_account() as first:
            assert await body_reader([b"1234", b"56"]).read_bytes(first) == b"123456"
            with memory.open_account() as second, pytest.raises(ServerBusy):
                await body_reader([b"123", b"45"]).read_bytes(second)
            assert memory.used_bytes == 6, "a rejected body is released"
        assert memory.used_bytes == 0

    asyncio.run(read_bodies())


def test_a_limit_of_zero_is_none() -> None:
    with BodyMemory(0).open_account() as account:
        account.add(1 << 40)
