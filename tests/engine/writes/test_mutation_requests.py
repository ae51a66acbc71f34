"""S3 requests of mutations and loads, counted exactly."""

import re

import omnigraph
from omnigraph.engine.writes.mutate import run_mutation
from omnigraph.history.branch_state import BranchState
from omnigraph.ingest.load import load
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
    ("insert a node with a key, again", 'insert User { login: "ann", age: 3 }'),
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
