"""`with graph.branch(..)`: the branch is created for a block, and deleted after it once it is merged."""

import asyncio
import copy
from typing import Any

import pytest

from omnigraph.api.async_graph import AsyncGraph
from omnigraph.api.graph import Graph
from omnigraph.errors import AlreadyExists, InputError, MergeConflict, UsageError
from tests.rig.graph_hosts import GraphHost

SCHEMA = "node Person { name: String @key  age: I32? }"


@pytest.fixture
def graph(graphs: GraphHost) -> Graph:
    graph = graphs.init(SCHEMA)
    graph.insert("Person", {"name": "ada"})
    return graph


def test_merged_branch_is_deleted_after_the_block(graph: Graph) -> None:
    with graph.branch("import", delete=True) as branch:
        branch.insert("Person", {"name": "bob"})
        assert branch.branch_name == "import"
        assert "import" in graph.branches
        branch.merge(into="main")
    assert list(graph.branches) == ["main"]
    assert graph.refresh().nodes("Person").ids() == ["ada", "bob"]


def test_branch_without_commits_is_deleted(graph: Graph) -> None:
    with graph.branch("look", delete=True) as branch:
        assert branch.nodes("Person").ids() == ["ada"]
    assert list(graph.branches) == ["main"]


def test_unmerged_work_is_kept(graph: Graph) -> None:
    with graph.branch("import", delete=True) as branch:
        branch.insert("Person", {"name": "bob"})
        branch.merge(into="main")
        branch.insert("Person", {"name": "cyd"})
    assert list(graph.branches) == ["import", "main"]
    assert graph.checkout("import").nodes("Person").ids() == ["ada", "bob", "cyd"]


def test_branch_is_kept_after_an_exception_and_can_be_opened_again(graph: Graph) -> None:
    with pytest.raises(ZeroDivisionError), graph.branch("import", delete=True):
        _ = 1 / 0
    assert "import" in graph.branches
    with pytest.raises(AlreadyExists), graph.branch("import"):
        pass
    with graph.branch("import", exist_ok=True, delete=True) as branch:
        branch.insert("Person", {"name": "bob"})
        graph.merge("import", delete_branch=True)
    assert list(graph.branches) == ["main"]


def test_branch_starts_at_a_revision(graph: Graph) -> None:
    graph.insert("Person", {"name": "bob"})
    with graph.branch("old", from_="HEAD~1", delete=True) as branch:
        assert branch.nodes("Person").ids() == ["ada"]
    assert list(graph.branches) == ["main"]


def test_a_block_merges_its_branch(graph: Graph) -> None:
    with graph.branch("import", on_exit="merge") as branch:
        branch.insert("Person", {"name": "bob"})
    assert list(graph.branches) == ["main"]
    assert graph.refresh().nodes("Person").ids() == ["ada", "bob"]
    with graph.branch("empty", on_exit="merge"):
        pass
    with graph.branch("merged", on_exit="merge") as branch:
        branch.merge(into="main", delete_branch=True)
    assert list(graph.branches) == ["main"]


def test_a_block_drops_its_branch(graph: Graph) -> None:
    with graph.branch("scratch", on_exit="drop") as branch:
        branch.insert("Person", {"name": "bob"})
    assert list(graph.branches) == ["main"]
    assert graph.refresh().nodes("Person").ids() == ["ada"]


@pytest.mark.parametrize("on_exit", ["merge", "drop"])
def test_a_block_that_fails_keeps_its_branch(graph: Graph, on_exit: Any) -> None:
    def fail() -> None:
        with graph.branch("import", on_exit=on_exit) as branch:
            branch.insert("Person", {"name": "bob"})
            _ = 1 / 0

    with pytest.raises(ZeroDivisionError):
        fail()
    assert graph.checkout("import").nodes("Person").ids() == ["ada", "bob"]
    assert graph.refresh().nodes("Person").ids() == ["ada"]


def test_a_block_whose_merge_has_conflicts_keeps_its_branch(graph: Graph) -> None:
    def disagree() -> None:
        with graph.branch("import", on_exit="merge") as branch:
            branch.update("Person", where="name = 'ada'", set={"age": 1})
            graph.update("Person", where="name = 'ada'", set={"age": 2})

    with pytest.raises(MergeConflict):
        disagree()
    assert "import" in graph.branches


def test_an_unknown_way_to_end_a_block_creates_no_branch(graph: Graph) -> None:
    unknown: Any = "push"
    with pytest.raises(InputError, match="'push'"), graph.branch("import", on_exit=unknown):
        pass
    assert list(graph.branches) == ["main"]


def test_asynchronous_blocks_merge_and_drop(graph: Graph) -> None:
    async def work() -> list[str]:
        asynchronous = AsyncGraph(graph)
        async with asynchronous.branch("import", on_exit="merge") as branch:
            await branch.insert("Person", {"name": "bob"})
        async with asynchronous.branch("scratch", on_exit="drop") as branch:
            await branch.insert("Person", {"name": "cyd"})
        return [name async for name in asynchronous.branches]

    assert asyncio.run(work()) == ["main"]
    assert graph.refresh().nodes("Person").ids() == ["ada", "bob"]


def test_asynchronous_block(graph: Graph) -> None:
    async def work() -> list[str]:
        asynchronous = AsyncGraph(graph)
        async with asynchronous.branch("import", delete=True) as branch:
            await branch.insert("Person", {"name": "bob"})
            await branch.merge(into="main")
        with pytest.raises(ZeroDivisionError):
            async with asynchronous.branch("kept", delete=True):
                _ = 1 / 0
        return [name async for name in asynchronous.branches]

    assert asyncio.run(work()) == ["kept", "main"]


def test_a_block_that_is_used_without_with_says_how_to_use_it(graph: Graph) -> None:
    block: Any = graph.branch("import")
    with pytest.raises(UsageError, match=r"use `with graph\.branch\('import'\) as work:`.* work\.insert") as rejected:
        block.insert("Person", {"name": "bob"})
    assert "graph.checkout" in str(rejected.value.hint)
    assert repr(block) == "<branch block: with graph.branch('import') as work>"
    assert not hasattr(block, "no_such_method")
    assert list(graph.branches) == ["main"]


def test_a_block_can_be_copied(graph: Graph) -> None:
    with copy.copy(graph.branch("import")) as branch:
        assert branch.branch_name == "import"
    assert repr(copy.copy(AsyncGraph(graph).branch("import"))).startswith("<branch block")


def test_a_block_is_used_only_once(graph: Graph) -> None:
    block = graph.branch("import")
    with block as branch:
        branch.insert("Person", {"name": "bob"})
    with pytest.raises(UsageError, match="only once"), block:
        pass


def test_an_asynchronous_block_that_is_used_without_with_says_how_to_use_it(graph: Graph) -> None:
    async def work() -> None:
        block: Any = AsyncGraph(graph).branch("import", on_exit="drop")
        with pytest.raises(UsageError, match=r"use `async with graph\.branch\('import'\) as work:`"):
            await block.insert("Person", {"name": "bob"})
        async with block:
            pass
        with pytest.raises(UsageError, match="only once"):
            async with block:
                pass

    asyncio.run(work())
    assert list(graph.branches) == ["main"]
