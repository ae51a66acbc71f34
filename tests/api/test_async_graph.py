"""The asynchronous facade: facets, sets, streams, sessions and transactions."""

import asyncio
import threading
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

import omnigraph
from omnigraph import AsyncGraph, Graph
from omnigraph.api.async_results import AsyncTransaction
from omnigraph.errors import BranchNotFound, EntityNotFound, InputError, NotFound, UsageError, VersionConflict

NAMES = "match { $p: Person } return { $p.name } order { $p.name }"


def run(graph: Graph, work: Callable[[AsyncGraph], Awaitable[Any]]) -> Any:
    async def session() -> Any:
        return await work(AsyncGraph(graph))

    return asyncio.run(session())


def test_branches_and_tags(graph: Graph) -> None:
    async def work(there: AsyncGraph) -> None:
        side = await there.branches.create("side")
        assert (side.branch_name, side.is_remote, side.read_only) == ("side", graph.is_remote, False)
        assert [name async for name in there.branches] == ["main", "side"]
        assert (await there.branches["side"]).parent == "main"
        assert await there.branches.get("nobody") is None
        assert (await there.branches.rename("side", "review")).branch_name == "review"
        await there.branches.delete("review", force=True)
        with pytest.raises(BranchNotFound):
            await there.checkout("review")
        await there.tag("v1", message="first")
        assert [name async for name in there.tags] == ["v1"]
        assert (await there.tags["v1"]).message == "first"
        await there.tags.delete("v1")
        with pytest.raises(NotFound):
            await there.tags["v1"]

    run(graph, work)


def test_sets_are_built_without_reading_and_awaited(graph: Graph) -> None:
    async def work(there: AsyncGraph) -> None:
        people = there.nodes("Person").order_by("name").select("name")
        expected = graph.query(NAMES).scalars()
        assert await people.scalars("name") == expected
        assert [row.name async for row in people.limit(2)] == expected[:2]
        assert await there.nodes("Person").count() == len(expected)
        assert await there.edges("Knows").count() == graph.edges("Knows").count()
        nobody = there.nodes("Nobody")
        with pytest.raises(InputError):
            await nobody.ids()
        assert (await there["Person", expected[0]]).id == expected[0]
        with pytest.raises(EntityNotFound):
            await there["Person", "nobody"]

    run(graph, work)


def test_streams_and_exports_are_asynchronous_iterators(graph: Graph, tmp_path: Path) -> None:
    async def work(there: AsyncGraph) -> None:
        expected = graph.query(NAMES).scalars()
        rows = 0
        async for batch in there.stream(NAMES):
            rows += batch.num_rows
        assert rows == len(expected)
        async with await there.query(NAMES, lazy=True) as stream:
            assert [row[0] async for row in stream.iter_rows()] == expected
        lines = [line async for line in there.export()]
        assert await there.export(tmp_path / "all.ndjson") == len(lines)
        friends = await there.prepare(NAMES)
        assert (await friends()).scalars() == expected

    run(graph, work)


async def fail_inside(tx: AsyncTransaction) -> None:
    async with tx:
        await tx.insert("Person", {"name": "zac"})
        raise ZeroDivisionError


def test_a_transaction_runs_in_one_thread(graph: Graph) -> None:
    async def work(there: AsyncGraph) -> None:
        async with there.transaction(message="two") as tx:
            await tx.insert("Person", {"name": "zed"})
            await tx.insert("Person", {"name": "zoe"})
            assert "zoe" in await tx.nodes("Person").ids()
            assert await there.node("Person", "zoe") is None
        assert tx.receipt is not None
        assert tx.receipt.nodes == {"Person": 2}
        tx = there.transaction()
        with pytest.raises(ZeroDivisionError):
            await fail_inside(tx)
        assert await there.node("Person", "zac") is None
        with pytest.raises(UsageError, match="not open"):
            await tx.insert("Person", {"name": "zac"})

    run(graph, work)


def test_retry_awaits_again_after_a_conflict(graph: Graph) -> None:
    other = omnigraph.open(graph.uri, durability="os")
    calls = 0

    async def change(there: AsyncGraph) -> str:
        nonlocal calls
        calls += 1
        if calls == 1:
            other.update("Person", where='name = "ann"', set={"age": 100 + len(other.refresh().log())})
        await there.update("Person", where='name = "ann"', set={"age": 77})
        return "changed"

    assert run(graph, lambda there: there.retry(change)) == "changed"
    assert calls == 2
    calls = 0
    graph.refresh()
    with pytest.raises(VersionConflict):
        run(graph, lambda there: there.retry(change, attempts=1))
    with pytest.raises(UsageError):
        run(graph, lambda there: there.retry(change, attempts=0))


def test_merge_sessions_are_decided_with_coroutines(graph: Graph) -> None:
    side = graph.branches.create("side")
    side.update("Person", where='name = "ann"', set={"age": 1})
    graph.update("Person", where='name = "ann"', set={"age": 2})

    async def work(there: AsyncGraph) -> None:
        session = await there.branches.merge_session("side")
        (conflict,) = await session.conflicts()
        await session.resolve(conflict, "theirs")
        assert await session.open() == ()
        assert (await session.commit()).outcome == "merged"

    run(graph, work)
    assert graph["Person", "ann"].age == 1


def test_changes_and_schema(graph: Graph) -> None:
    async def work(there: AsyncGraph) -> None:
        cursor = (await there.changes.feed()).cursor
        receipt = await there.insert("Person", {"name": "zed"})
        feed = await there.changes.feed(cursor=cursor)
        commits = [block.commit.id async for block in feed]
        assert commits == [there.head.id]
        assert (receipt.total, feed.caught_up) == (1, True)
        pages = [page async for page in there.changes.commit_pages(commits[0])]
        assert len(pages) == 1
        baseline = await there.changes.baseline()
        assert len([one async for one in baseline]) == len(list(graph.changes.baseline()))
        stop = threading.Event()
        stop.set()
        blocks = there.changes.follow("beginning", poll=0.01, stop=stop)
        assert [block async for block in blocks] == []
        assert await there.schema.source() == graph.schema.source
        assert "Person" in await there.schema.node_types()

    run(graph, work)


def test_maintenance(graph: Graph) -> None:
    async def work(there: AsyncGraph) -> None:
        assert await there.maintenance.check()
        assert await there.maintenance.operations.set_aside() == []
        async with there.maintenance.hold() as shown:
            assert shown.read_only
        assert await there.maintenance.check_absent("Person", "nobody")
        assert (await there.revisions.pin()).read_only

    run(graph, work)


def test_a_graph_is_copied(graph: Graph, tmp_path: Path) -> None:
    async def work(there: AsyncGraph) -> None:
        await there.maintenance.copy_to(tmp_path / "copy")
        copied = await omnigraph.aopen(tmp_path / "copy", read_only=True)
        assert copied.head.id == there.head.id

    run(graph, work)
