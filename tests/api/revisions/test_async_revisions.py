"""Revisions, merges and reverts with coroutines."""

import asyncio

from omnigraph import Graph
from omnigraph.api.async_graph import AsyncGraph


def test_async_graph_supports_merges_and_revisions(graph: Graph) -> None:
    async def session() -> list[object]:
        there = AsyncGraph(graph)
        side = graph.branches.create("side")
        side.insert("Person", {"name": "cy"})
        merged = await there.merge("side")
        taken = await there.revisions.revert("HEAD")
        picked = await there.revisions.cherry_pick("side")
        changes = await there.diff("HEAD~2", "HEAD")
        versions = await there.revisions.history("Person", "cy")
        ops = [one.op for one in versions]
        return [merged.outcome, taken.outcome, picked.outcome, len(changes), ops]

    expected = ["fast_forward", "merged", "merged", 0, ["insert", "delete", "insert"]]
    assert asyncio.run(session()) == expected
