"""`omnigraph.aopen` opens a graph on a server, with the asynchronous interface of an embedded graph."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

import omnigraph
from omnigraph import AsyncGraph, Graph
from omnigraph.errors import (
    BranchNotFound,
    EntityNotFound,
    InputError,
    MergeConflict,
    NotFound,
    NotSupportedRemotely,
    ServerUnreachable,
    UsageError,
    VersionConflict,
)

NAMES = "match { $p: Person } return { $p.name } order { $p.name asc }"


def run(graph: Graph, work: Callable[[AsyncGraph], Awaitable[Any]]) -> None:
    """Run a coroutine with the graph of the test, opened by `aopen`."""

    async def session() -> None:
        async with await omnigraph.aopen(graph.uri, branch=graph.branch_name) as opened:
            await work(opened)

    asyncio.run(session())


def test_reads(graph: Graph, tmp_path: Path) -> None:
    async def work(there: AsyncGraph) -> None:
        assert (there.is_remote, there.read_only, there.uri) == (True, False, graph.uri)
        assert (there.branch_name, there.head.id, there.actor) == (graph.branch_name, graph.head.id, None)
        assert (await there.query(NAMES)).scalars() == ["ada", "bob"]
        async with await there.query(NAMES, lazy=True) as stream:
            assert [row[0] async for row in stream.iter_rows()] == ["ada", "bob"]
        assert [batch.num_rows async for batch in there.stream(NAMES)] == [2]
        assert await there.nodes("Person").filter("age > $min", min=36).ids() == ["bob"]
        assert await there.edges("Knows").count() == 1
        assert (await there["Person", "ada"]).age == 36
        assert await there.node("Person", "nobody") is None
        with pytest.raises(EntityNotFound):
            await there["Person", "nobody"]
        prepared = await there.prepare("query q($n: String) { match { $p: Person  $p.name = $n } return { $p.age } }")
        assert (await prepared(n="bob")).scalar() == 40
        assert "Person" in str(await there.explain(NAMES))
        assert len((await there.subgraph("match { $p: Person } return { $p }")).nodes) == 2
        assert len([line async for line in there.export()]) == 3
        assert await there.export(tmp_path / "all.ndjson") == 3
        assert await there.schema.node_types() == ("Doc", "Person")
        assert "Knows" in await there.schema.edges()
        queries = [there.query(NAMES) for _ in range(8)]
        assert {result.num_rows for result in await asyncio.gather(*queries)} == {2}
        for name in ("scan", "duckdb"):
            with pytest.raises(NotSupportedRemotely):
                await getattr(there, name)()

    run(graph, work)


def test_writes_and_transactions(graph: Graph) -> None:
    async def work(there: AsyncGraph) -> None:
        assert (await there.insert("Person", {"name": "cyd"})).affected_nodes == 1
        await there.upsert("Person", {"name": "cyd", "age": 1})
        await there.patch("Person", {"name": "cyd", "age": 2})
        await there.connect_nodes("Knows", [("cyd", "ada")])
        await there.update("Person", where="name = 'cyd'", set={"age": 3})
        await there.mutate('update Person set { age: 4 } where name = "cyd"')
        assert (await there["Person", "cyd"]).age == 4
        await there.load({"Doc": [{"slug": "d", "body": b"hello"}]}, mode="append")
        await there.put_blob("Doc", "d", "body", b"hello you")
        blob = await there.blob("Doc", "d", "body")
        assert (await blob.read(), blob.size) == (b"hello you", 9)
        assert [chunk async for chunk in blob.iter_chunks(4)] == [b"hell", b"o yo", b"u"]
        await there.delete("Person", where="name = 'cyd'")
        async with there.transaction(message="two") as tx:
            await tx.insert("Person", {"name": "zed"})
            assert "zed" in await tx.nodes("Person").ids()
            assert await there.node("Person", "zed") is None
            assert await (await tx.blob("Doc", "d", "body")).read() == b"hello you"
        assert tx.receipt is not None
        assert tx.receipt.nodes == {"Person": 1}
        with pytest.raises(UsageError, match="not open"):
            await tx.insert("Person", {"name": "zac"})

    run(graph, work)


def test_branches_tags_and_history(graph: Graph) -> None:
    side, tag = f"{graph.branch_name}-side", graph.branch_name.replace("/", "-")

    async def work(there: AsyncGraph) -> None:
        start = there.head.id
        async with there.branch(side) as branch:
            await branch.insert("Person", {"name": "cyd"})
        assert side in [name async for name in there.branches]
        assert (await there.branches[side]).ahead == 1
        assert await there.branches.get("nowhere") is None
        merged = await there.merge(side)
        assert merged.commit is not None
        assert (merged.outcome, merged.commit.id) == ("fast_forward", there.head.id)
        assert (await there.diff(start)).summary()["inserts"] == 1
        assert [commit.id for commit in await there.log(limit=1)] == [merged.commit.id]
        assert (await (await there.at("HEAD~1")).query(NAMES)).num_rows == 2
        assert (await there.revisions.commit("HEAD~1")).id == start
        assert len(await there.revisions.history("Person", "cyd")) == 1
        assert "age" in await there.revisions.blame("Person", "ada")
        await there.revisions.revert("HEAD")
        assert (await there.revisions.pin()).read_only
        await there.tag(tag)
        assert tag in [name async for name in there.tags]
        assert (await there.tags[tag]).commit_id == there.head.id
        await there.tags.delete(tag)
        with pytest.raises(NotFound):
            await there.tags[tag]
        await there.branches.reset(graph.branch_name, to=start)
        await there.branches.rename(side, f"{side}-2")
        await there.branches.delete(f"{side}-2", force=True)
        with pytest.raises(BranchNotFound):
            await there.checkout(side)
        plan = await there.schema.plan((await there.schema.source()).replace("score: F64?", "score: F64?  x: I32?"))
        assert (await there.schema.apply(plan)).commit is not None

    run(graph, work)


def test_changes_and_maintenance(graph: Graph) -> None:
    async def work(there: AsyncGraph) -> None:
        first = await there.insert("Person", {"name": "cyd"})
        feed = await there.changes.feed("after:HEAD~1")
        assert [block.commit.id async for block in feed] == [first.commit_id]
        assert feed.caught_up
        assert len(await there.changes.of_commit("HEAD")) == 1
        assert (await there.changes.poll("now")).caught_up
        baseline = await there.changes.baseline(types=["Person"])
        assert len([document async for document in baseline]) == 3
        assert baseline.cursor is not None
        blocks = there.changes.follow(cursor=baseline.cursor, poll=0.01, types=["Person"])
        receipt = await there.insert("Person", {"name": "dee"})
        assert (await anext(blocks)).commit.id == receipt.commit_id
        await blocks.aclose()  # type: ignore[attr-defined]
        assert [len(page.changes) async for page in there.changes.commit_pages(there.head.id)] == [1]
        assert (await there.maintenance.status()).to_json()
        assert await there.maintenance.ensure_indices() is not None
        assert await there.maintenance.pending_indices() == []

    run(graph, work)


def test_conflicts_are_retried(graph: Graph) -> None:
    calls = 0

    async def change(there: AsyncGraph) -> str:
        nonlocal calls
        calls += 1
        if calls == 1:
            raise VersionConflict("changed in the meantime")
        await there.update("Person", where='name = "ada"', set={"age": 77})
        return "changed"

    async def work(there: AsyncGraph) -> None:
        assert await there.retry(change) == "changed"
        side = await there.branches.create(f"{graph.branch_name}-side")
        for one, age in ((there, 1), (side, 2)):
            await one.update("Person", where='name = "bob"', set={"age": age})
        with pytest.raises(MergeConflict):
            await there.merge(side.branch_name)

    run(graph, work)
    assert calls == 2


def test_options_and_failures_of_aopen(url: str) -> None:
    async def work() -> None:
        with pytest.raises(BranchNotFound):
            await omnigraph.aopen(url, branch="nowhere", token="any-token")
        with pytest.raises(UsageError, match="actor"):
            await omnigraph.aopen(url, actor="ann")
        with pytest.raises(InputError):
            await omnigraph.aopen(url.removesuffix("/default"))
        with pytest.raises(ServerUnreachable):
            await omnigraph.aopen("http://127.0.0.1:1/graphs/default", retries=0, timeout=1.0)

    asyncio.run(work())
