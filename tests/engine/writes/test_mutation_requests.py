"""S3 requests of mutations and loads, counted exactly."""

import re
from typing import Any

import pytest

import omnigraph
from omnigraph.engine.writes import mutate
from omnigraph.engine.writes.mutate import run_mutation
from omnigraph.history.branch_state import BranchState
from omnigraph.ingest.load import load
from omnigraph.ingest.stage import stage
from omnigraph.lang.query import compile_query
from omnigraph.lang.schema.catalog import Catalog
from omnigraph.values.clock_and_ids import deterministic_ids
from tests.cost.measurements import Bill, golden
from tests.rig.plugin import S3

SCHEMA = """
node Note { text: String  n: I32? }
node User { login: String @key  age: I32?  bio: String? }
edge Wrote: User -> Note
"""
STEPS = (
    ("insert a node without a key", 'insert Note { text: "a" }'),
    ("insert a node with a key, new", 'insert User { login: "cyd" }'),
    ("upsert a node with a key", 'upsert User { login: "ann", age: 3 }'),
    ("update a node by its key", 'update User set { age: 4 } where login = "bob"'),
    ("update a node by its key that is not there", 'update User set { age: 4 } where login = "x"'),
    ("delete a node and its edges", 'delete User where login = "bob"'),
)


def do(line: BranchState, catalog: Catalog, statements: str) -> None:
    run_mutation(line, compile_query(f"query q() {{ {statements} }}", catalog), {})


def test_requests_of_writes_match_the_golden_file(s3: S3) -> None:
    bill = Bill(s3.proxy)
    with deterministic_ids():
        graph = omnigraph.init(s3.url, SCHEMA)
        line, catalog = graph._handle.branch_state, graph.schema.ir.catalog
        load(line, {"User": [{"login": "ann"}, {"login": "bob"}], "Note": [{"text": "t"}]}, "append")
        for title, statements in STEPS:
            with bill.item(f"{title}, warm") as made:
                do(line, catalog, statements)
            if "without a key" in title:
                assert made.counts == {"PUT": 6, "LIST": 1}
        with bill.item("load 50 nodes without a key, warm") as made:
            load(line, {"Note": [{"text": "t"}] * 50}, "append")
        assert made.counts == {"PUT": 6, "LIST": 1}
        with bill.item("load 50 nodes with a key and their edges, warm"):
            users = [{"login": f"u{n}"} for n in range(50)]
            notes = [{"id": f"n{n}", "text": "t"} for n in range(50)]
            wrote = [{"from": f"u{n}", "to": f"n{n}"} for n in range(50)]
            load(line, {"User": users, "Note": notes, "Wrote": wrote}, "append")
    # Reads of one lookup may overlap, so only their number is the same every time.
    lines = [re.sub(r", \d+ one after another", "", one) for one in bill.lines]
    assert lines == golden("mutate.txt", lines)


def test_requests_of_updates_beside_another_writer_match_the_golden_file(
    s3: S3, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What an update reads to find out that another writer changed other nodes, and what a lost race adds."""
    bill = Bill(s3.proxy)
    with deterministic_ids():
        graph = omnigraph.init(s3.url, SCHEMA)
        graph.insert("User", [{"login": f"u{n}"} for n in range(40)])
        other = omnigraph.open(s3.url, durability="os")
        assert other._handle.branch_state is not graph._handle.branch_state
        for handle, login in ((graph, "u0"), (other, "u1"), (graph, "u0"), (other, "u1")):
            _set_age(handle, login)
        with bill.item("update a node, warm"):
            _set_age(other, "u1")
        for count in (1, 4):
            for number in range(count):
                _set_age(other, f"u{number + 1}")
            with bill.item(f"update a node after {count} commit{'s' if count > 1 else ''} of another writer"):
                _set_age(graph, "u0")
        _after_staging(monkeypatch, lambda: _set_age(other, "u1"))
        with bill.item("update a node, and lose the race against an update of another node, both writers"):
            _set_age(graph, "u0")
    lines = [re.sub(r", \d+ one after another", "", line) for line in bill.lines]
    assert lines == golden("updates-beside-writers.txt", lines)


def _set_age(graph: omnigraph.Graph, login: str) -> None:
    graph.update("User", where="login = $login", set={"age": 1}, login=login)


def _after_staging(monkeypatch: pytest.MonkeyPatch, rival: Any) -> None:
    """Let another writer publish after the next mutation is staged, before it lands."""
    rivals = [rival]

    def stage_and_lose(*arguments: Any) -> Any:
        staged = stage(*arguments)
        if rivals:
            rivals.pop()()
        return staged

    monkeypatch.setattr(mutate, "stage", stage_and_lose)
