"""Merges of similar rows, overwritten tables and unvalidated values."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import omnigraph
from omnigraph import Graph
from omnigraph.errors import MergeConflict
from omnigraph.publish.publish import publish
from omnigraph.publish.write_plan import PublishPlan
from omnigraph.storage.stage_rows import stage_append
from omnigraph.values.table_key import TableKey
from tests.merging.conftest import Both, person, stored

SCHEMA = """
node Item { code: String @key  text: String?  _row_notes: String?  size: enum(s, m)? }
edge Fits: Item -> Item
"""


@pytest.fixture
def graph(tmp_path: Path) -> Graph:
    """Two items, and a branch `dev`."""
    made = omnigraph.init(tmp_path / "g", SCHEMA, durability="os")
    items: Any = [{"code": code, "text": "", "_row_notes": "x", "size": "s"} for code in ("a", "b")]
    made.insert("Item", *items)
    made.branches.create("dev")
    return made


@pytest.mark.parametrize(("name", "value"), [("text", None), ("_row_notes", "y")])
@pytest.mark.parametrize("diverged", [False, True], ids=["fast_forward", "merged"])
def test_every_kind_of_value_change_is_merged(graph: Graph, name: str, value: Any, diverged: bool) -> None:
    graph.checkout("dev").update("Item", where="code = 'a'", set={name: value})
    if diverged:
        graph.update("Item", where="code = 'b'", set={"size": "m"})
    done = graph.merge("dev")
    assert (done.outcome, done.stats["updates"]) == (("fast_forward", "merged")[diverged], 1)
    assert [one.changed for one in done.delta] == [(name,)]
    assert graph["Item", "a"].properties[name] == value


def _forge(graph: Graph, key: str, **values: Any) -> None:
    """Append a row that no rule has seen."""

    def prepare(txn: Any) -> PublishPlan:
        table = txn.table(TableKey(key))
        row = {name: [values.get(name)] for name in table.schema.names}
        return PublishPlan("load", {TableKey(key): stage_append(txn.store, table, pa.table(row, schema=table.schema))})

    assert publish(graph._handle.branch_state, prepare) is not None


def test_unvalidated_value_is_a_merge_conflict(graph: Graph) -> None:
    _forge(graph.checkout("dev"), TableKey("node:Item"), id="z", code="z", size="huge")
    graph.update("Item", where="code = 'b'", set={"size": "m"})
    head = graph.head.id
    with pytest.raises(MergeConflict) as caught:
        graph.merge("dev")
    (one,) = caught.value.conflicts
    assert (one.kind, one.entity_id, one.changed) == ("value_constraint_violation", "z", ("size",))
    assert graph.refresh().head.id == head


def test_overwrite_merges_only_rows_that_differ(both: Both) -> None:
    both.put("main", {"node:Person": {n: person(n, 0) for n in "abcde"}})
    both.fork("dev")
    dev = both.on("dev")
    dev.load({"Person": [{"name": n, "p": 0 if n in "abc" else 1} for n in "abcd"]}, mode="overwrite")
    both.put("main", {"node:Person": {"a": person("a", 7)}})
    done = both.graph.merge("dev")
    assert [(c.id, c.op) for c in done.delta] == [("d", "update"), ("e", "delete")]
    left = stored(both.on("main"))["node:Person"]
    assert {n: row["p"] for n, row in left.items()} == {"a": 7, "b": 0, "c": 0, "d": 1}


@pytest.mark.parametrize("diverged", [False, True], ids=["fast_forward", "merged"])
def test_deleting_a_merged_branch_and_cleanup_keep_merges_working(both: Both, diverged: bool) -> None:
    both.put("main", {"node:Person": {n: person(n, 0) for n in "abc"}})
    both.fork("dev")
    for at in range(3):
        both.put("dev", {"node:Person": {"a": person("a", at), f"n{at}": person(f"n{at}", at)}})
    if diverged:
        both.put("main", {"node:Person": {"b": person("b", 5)}})
    both.merge("dev")
    both.graph.branches.delete("dev", force=True)
    both.graph.maintenance.cleanup(keep=1, older_than=0, grace=0, confirm=True)
    both.check("main")
    fresh = omnigraph.open(both.graph.uri, durability="os")
    assert fresh.maintenance.check()
    fresh.update("Person", where="name = 'a'", set={"p": 9})
    assert fresh["Person", "a"].properties["p"] == 9
