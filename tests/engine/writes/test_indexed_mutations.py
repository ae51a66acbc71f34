"""Indexes change how a row is found and never which rows are found."""

from collections.abc import Callable

import pyarrow.compute as pc
import pytest

from omnigraph.history.snapshot import load_snapshot
from omnigraph.maintenance.index_maintenance import ensure_indices
from omnigraph.publish.publish import publish
from omnigraph.publish.write_plan import PublishPlan
from omnigraph.publish.write_txn import WriteTxn
from omnigraph.storage import column_index
from omnigraph.storage.column_index import index_coverage
from omnigraph.storage.compact import stage_compaction
from omnigraph.storage.table import Table
from omnigraph.values.table_key import TableKey
from tests.engine.writes.conftest import World

SCHEMA = """
node Item { code: String @key  n: I64? @index  tag: String? @unique  f: F64? @index  text: String? }
edge Near: Item -> Item { w: I32? @index }
"""


@pytest.fixture
def items(make: Callable[[str], World]) -> World:
    world = make(SCHEMA)
    world.load({"Item": [item(n) for n in range(300)]})
    world.load({"Near": [{"from": f"c{n}", "to": f"c{n + 1}", "w": n} for n in range(100)]})
    return world


def item(n: int) -> dict[str, object]:
    return {"code": f"c{n}", "n": n, "tag": f"t{n}", "f": n / 2}


def table(world: World, key: str) -> Table:
    return load_snapshot(world.line.store, world.line).table(TableKey(key))


def truthful(world: World) -> None:
    """The index and a scan find the same rows, by every indexed column."""
    for key, columns in (("node:Item", ("id", "code", "n", "tag", "f")), ("edge:Near", ("src", "w"))):
        dataset = table(world, key).dataset
        values = dataset.to_table(columns=list(columns)).to_pydict()
        known: dict[str, list[object]] = {"n": [5, 150, 5000], "f": [2.5, 75.0, 9.0], "w": [5, 7, 4999]}
        for column in columns:
            asked = [*values[column][:3], *values[column][-3:], *known.get(column, ["c5", "t5", "x"])]
            for value in asked:
                where = pc.field(column) == value
                found = [
                    dataset.to_table(columns=["id"], filter=where, use_scalar_index=use)["id"] for use in (True, False)
                ]
                assert sorted(found[0].to_pylist()) == sorted(found[1].to_pylist())


def test_declared_indexes_are_built(items: World) -> None:
    commit = ensure_indices(items.line)
    assert commit is not None
    assert (commit.actor, commit.operation) == ("omnigraph:maintenance", "ensure_indices")
    assert set(index_coverage(table(items, "node:Item"))) == {"id", "code", "n", "tag", "f"}
    assert set(index_coverage(table(items, "edge:Near"))) == {"id", "src", "dst", "w"}
    assert ensure_indices(items.line) is None
    truthful(items)


def test_building_indexes_keeps_the_content(items: World) -> None:
    before = items.line.refresh().state.tables[TableKey("node:Item")].content_id
    rows = items.rows("node:Item")
    ensure_indices(items.line)
    assert items.line.refresh().state.tables[TableKey("node:Item")].content_id == before
    assert items.rows("node:Item") == rows


def test_indexed_lookups_stay_correct_after_mutations(items: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(column_index, "_MAX_SEGMENTS", 3)
    ensure_indices(items.line)
    changes = (
        'update Item set { n: 5000 } where code = "c5"',
        'update Item set { n: 5, tag: "x" } where n = 150',
        'insert Item { code: "new", n: 5, f: 2.5 }',
        "delete Item where n = 7",
        "delete Near where w = 5",
        'upsert Item { code: "c5", n: 5, tag: "t5" }',
    )
    for statement in changes:
        items.do(statement)
        truthful(items)
        assert ensure_indices(items.line) is not None or statement.startswith("delete")
        truthful(items)
    assert len(items.ids("node:Item")) == 300
    found = table(items, "node:Item").dataset.describe_indices()
    assert max(len(one.segments) for one in found) <= 3


def test_rewrite_loses_index_coverage_but_not_correctness(items: World) -> None:
    ensure_indices(items.line)
    items.do("delete Item where n = 7")

    def rewrite(txn: WriteTxn) -> PublishPlan | None:
        staged = stage_compaction(txn.store, txn.table(TableKey("node:Item")))
        assert staged is not None
        return PublishPlan("optimize", {TableKey("node:Item"): staged}, maintenance=True)

    assert publish(items.line, rewrite) is not None
    truthful(items)
    assert ensure_indices(items.line) is not None
    truthful(items)
