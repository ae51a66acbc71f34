"""`with graph.branch(..)`: the branch is created for a block, and deleted after it once it is merged."""

import asyncio
from pathlib import Path

import pytest

import omnigraph
from omnigraph.api.async_graph import AsyncGraph
from omnigraph.api.graph import Graph
from omnigraph.errors import AlreadyExists

SCHEMA = "node Person { name: String @key  age: I32? }"


@pytest.fixture
def graph(tmp_path: Path) -> Graph:
    graph = omnigraph.init(tmp_path / "g", SCHEMA, durability="os")
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
