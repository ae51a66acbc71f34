"""The change feed of a graph on a server returns what the feed of an embedded graph returns."""

import json
import threading
from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import Any

import pytest

import omnigraph
from omnigraph import Graph
from omnigraph.errors import ChangeCursorRejected, InputError, UsageError
from tests.rig.http_server import HttpServer, serving
from tests.server.conftest import make_graph


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the graph."""
    return tmp_path_factory.mktemp("server")


@pytest.fixture(scope="module")
def server(folder: Path) -> Iterator[HttpServer]:
    """A server whose graph the tests also open themselves."""
    with serving(folder, make_graph(folder / "graph"), "--unauthenticated") as running:
        yield running


@pytest.fixture
def embedded(graph: Graph, folder: Path) -> Graph:
    """The same branch, opened from its files, after a few kinds of changes."""
    graph.insert("Person", {"name": "cyd", "born": date(1990, 1, 2)}, {"name": "dee"}, message="two")
    graph.connect_nodes("Knows", [("cyd", "ada", {"since": 3})])
    graph.update("Person", where="name = 'cyd'", set={"score": 2.5, "born": date(1991, 1, 2)})
    graph.schema.apply(graph.schema.source.replace("score: F64?", "score: F64?  height: I32?"))
    graph.delete("Person", where="name = 'bob'")
    return omnigraph.open(folder / "graph", branch=graph.branch_name, read_only=True)


def facts_of(blocks: Any) -> list[Any]:
    return [(block.commit.id, list(block.changes), block.to_json(), block.cursor) for block in blocks]


def test_a_feed_has_the_same_blocks_and_cursors(graph: Graph, embedded: Graph) -> None:
    for start in ("beginning", "now", "after:HEAD~3"):
        remote, local = graph.changes.feed(start), embedded.changes.feed(start)
        assert facts_of(remote) == facts_of(local)
        assert (remote.cursor, remote.caught_up, remote.at_start) == (local.cursor, local.caught_up, local.at_start)
    blocks = list(graph.changes.feed("beginning"))
    assert [block.schema_change is not None for block in blocks].count(True) == 1
    assert "2 changes" in repr(next(block for block in blocks if len(block.changes) == 2))
    resumed, local = graph.changes.feed(cursor=blocks[3].cursor), embedded.changes.feed(cursor=blocks[3].cursor)
    assert facts_of(resumed) == facts_of(local)
    arrow = [rows for block in graph.changes.feed("beginning") if (rows := block.to_arrow().to_pylist())]
    assert sorted(arrow[0][0]) == [
        "after", "before", "commit_id", "id", "kind", "op", "type",
    ]  # fmt: skip
    assert sum(batch.num_rows for batch in graph.changes.feed("beginning").to_arrow_batches()) == sum(map(len, arrow))


def test_filters_select_the_same_changes(graph: Graph, embedded: Graph) -> None:
    several_filters: tuple[Any, ...] = ({"types": ["Person"]}, {"kinds": ["edge"]}, {"ops": ["delete", "update"]})
    for filters in several_filters:
        remote, local = graph.changes.feed("beginning", **filters), embedded.changes.feed("beginning", **filters)
        assert facts_of(remote) == facts_of(local)
        with pytest.raises(ChangeCursorRejected):
            graph.changes.feed(cursor=local.cursor)
    with pytest.raises(InputError, match="selects nothing"):
        graph.changes.feed("beginning", types=[])
    with pytest.raises(UsageError, match="mutually exclusive"):
        graph.changes.feed("beginning", cursor="x")
    with pytest.raises(InputError, match="unknown start"):
        graph.changes.feed("yesterday")


def test_pages_are_limited_and_continue(graph: Graph, embedded: Graph) -> None:
    remote, local = (one.changes.poll("beginning", max_commits=2) for one in (graph, embedded))
    assert remote.to_json() == local.to_json()
    assert (remote.cursor, remote.caught_up, len(remote.blocks)) == (local.cursor, False, 2)
    page = graph.changes.poll("beginning", limit=1, types=["Person"])
    changes, pages = 0, 0
    while not page.caught_up:
        changes, pages = changes + sum(len(block.changes) for block in page.blocks), pages + 1
        position = {"page_token": page.next_page_token} if page.next_page_token else {"cursor": page.cursor}
        page = graph.changes.poll(**position, limit=1, types=["Person"])
    assert changes >= 5
    assert pages >= changes


def test_the_changes_of_one_commit(graph: Graph, embedded: Graph) -> None:
    for revision in ("HEAD", "HEAD~1", "HEAD~2", "HEAD~4"):
        remote, local = graph.changes.of_commit(revision), embedded.changes.of_commit(revision)
        assert list(remote) == list(local)
        assert len(remote) == len(local)
        assert (remote.schema_change is None) == (local.schema_change is None)
    commit = graph.log()[4]
    assert list(graph.changes.of_commit(commit)) == list(embedded.changes.of_commit(commit.id))
    first = graph.changes.commit_page(commit.id, limit=1)
    assert (first.commit.message, len(first.changes), bool(first.next_page_token)) == ("two", 1, True)
    assert first.to_json() == embedded.changes.commit_page(commit.id, limit=1).to_json()
    assert [len(page.changes) for page in graph.changes.commit_pages(commit.id, limit=1)] == [1, 1]


def test_a_baseline_continues_as_a_feed(graph: Graph, embedded: Graph, tmp_path: Path) -> None:
    remote, local = graph.changes.baseline(), embedded.changes.baseline()
    assert remote.commit_id == local.commit_id
    assert remote.cursor is None
    assert list(remote) == list(local)
    assert (remote.cursor, remote.count) == (local.cursor, local.count)
    graph.insert("Person", {"name": "eve"})
    assert [change.id for block in graph.changes.feed(cursor=remote.cursor) for change in block.changes] == ["eve"]
    written = graph.changes.baseline(tmp_path / "base.ndjson", types=["Person"])
    lines = (tmp_path / "base.ndjson").read_text().splitlines()
    assert json.loads(lines[-1])["baseline"]["resume_cursor"] == written.cursor
    assert len(lines) == written.count + 1


def test_a_reader_follows_new_commits(graph: Graph) -> None:
    stop = threading.Event()
    blocks = graph.changes.follow(poll=60, stop=stop)
    receipts = [graph.insert("Person", {"name": name}) for name in ("eve", "fay")]
    assert [next(blocks).commit.id for _ in receipts] == [receipt.commit_id for receipt in receipts]
    writer = threading.Thread(target=graph.insert, args=("Person", {"name": "gus"}))
    writer.start()
    assert [change.id for change in next(blocks).changes] == ["gus"]
    writer.join()
    stop.set()
    assert list(blocks) == []
    waits: list[float] = []

    def insert_later(seconds: float) -> None:
        waits.append(seconds)
        graph.insert("Person", {"name": "hal"})

    assert next(graph.changes.follow(poll=7, wait=insert_later)).commit.id == graph.head.id
    assert waits == [7]
    with pytest.raises(UsageError):
        graph.at("HEAD").changes.follow()
    with pytest.raises(InputError):
        graph.changes.follow(poll=0)
