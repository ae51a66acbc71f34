"""S3 requests of every verb, counted exactly; a changed number changes every user's price."""

import gc

import pytest

import omnigraph
from omnigraph.history import commit_log
from omnigraph.values.clock_and_ids import deterministic_ids
from tests.cost.measurements import Bill, Cost, add, cost_of_requests, golden, open_cold, wide_schema, window
from tests.rig.plugin import S3
from tests.rig.proxy import Proxy, requests_of
from tests.rig.writes import CITY, PERSON, SCHEMA, TABLES


def opens(bill: Bill, uri: str, branch: str, title: str) -> None:
    """Opening, with nothing remembered."""
    for read_only in (True, False):
        gc.collect()
        how = "read-only" if read_only else "read-write"
        with bill.item(f"open {title} {how}, cold") as made:
            open_cold(uri, branch=branch, read_only=read_only)
        assert sum(made.counts.values()) <= (6 if read_only else 7)


def test_requests_of_every_verb_match_the_golden_file(s3: S3) -> None:
    bill = Bill(s3.proxy)
    with deterministic_ids():
        with bill.item("make a graph of three tables"):
            graph = omnigraph.init(s3.url, SCHEMA)
        add(graph._handle.branch_state, "warm", TABLES)
        for title, keys in (("one table", (PERSON,)), ("two tables", (PERSON, CITY)), ("three tables", TABLES)):
            with bill.item(f"append a row to {title}, warm") as made:
                add(graph._handle.branch_state, title, keys)
            assert made.counts == {"PUT": 3 + 3 * len(keys), "LIST": 1}
        with bill.item("move to the newest state, nothing new"):
            graph.refresh()
        with bill.item("create a branch"):
            graph.branches.create("b")
        with bill.item("list the branches"):
            graph.branches.names()
        del graph
        opens(bill, s3.url, "main", "main")
        opens(bill, s3.url, "b", "a branch")
        graph = open_cold(s3.url, read_only=False)
        with bill.item("append a row to one table, first in a process"):
            add(graph._handle.branch_state, "first")
        with bill.item("delete a branch"):
            graph.branches.delete("b", force=True)
    assert bill.lines == golden("graph.txt", bill.lines)


@pytest.mark.parametrize(
    ("tables", "live"),
    [
        (2, 1),
        pytest.param(2, 50, marks=pytest.mark.full),
        pytest.param(112, 1, marks=pytest.mark.full),
        pytest.param(112, 50, marks=pytest.mark.full),
    ],
)
def test_branch_requests_do_not_depend_on_the_graph(s3: S3, tables: int, live: int) -> None:
    graph = omnigraph.init(s3.url, wide_schema(tables))
    for n in range(live - 1):
        graph.branches.create(f"b{n}")
    bill = Bill(s3.proxy)
    with bill.item("create a branch"):
        graph.branches.create("new")
    with bill.item("delete a branch"):
        graph.branches.delete("new", force=True)
    assert set(bill.lines) <= set(golden("graph.txt"))


def aged(proxy: Proxy, uri: str, count: int) -> list[Cost]:
    """The cost of each of many publishes."""
    graph, costs = open_cold(uri, read_only=False), []
    for n in range(count):
        with requests_of(proxy) as made:
            add(graph._handle.branch_state, f"r{n}")
        assert made.attempts == made.counts, made.lines
        costs.append(cost_of_requests(made))
    return costs


def test_write_requests_do_not_grow_with_history(s3: S3, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(commit_log, "CHUNK_COMMITS", 2)
    monkeypatch.setattr(commit_log, "MAX_CHUNK_COMMITS", 2 * 8 * 8)
    omnigraph.init(s3.url, SCHEMA)
    with deterministic_ids():
        costs = aged(s3.proxy, s3.url, 40)
    assert {one.plain for one in costs[1:]} == {(("LIST", 1), ("PUT", 6))}
    assert max(one.total for one in costs[1:]) <= 7 + 20
    assert any(("PUT", 2) in one.extra for one in costs), "no chunks were merged"


@pytest.mark.full
@pytest.mark.timeout(900)
def test_write_requests_do_not_grow_over_a_thousand_commits(s3: S3) -> None:
    omnigraph.init(s3.url, SCHEMA)
    bill = Bill(s3.proxy)
    with deterministic_ids():
        costs = aged(s3.proxy, s3.url, 1512)
        lines = [
            line
            for start in (10, 100, 1000)
            for line in window(f"512 publishes from commit {start}", costs[start : start + 512])
        ]
        opens(bill, s3.url, "main", "main")
    assert lines == golden("windows.txt", lines)
    assert set(bill.lines) <= set(golden("graph.txt"))
