"""Types as DataFrames: exact values, one snapshot for all actions, filters below Spark."""

from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow.compute as pc
import pytest

import omnigraph
from omnigraph.errors import InputError

SCHEMA = """
node V {
    k: String @key
    b: Bool?
    i: I32?
    l: I64?
    u: U32?
    w: U64?
    f: F32?
    d: F64?
    day: Date?
    at: DateTime?
    t: [String]?
    n: [I64]?
    v: Vector(3)?
    pic: Blob?
    e: enum(x, y)?
}
edge Near: V -> V { cost: F64? }
"""
FULL = {
    "k": "full", "b": True, "i": -(2**31), "l": 2**63 - 1, "u": 2**32 - 1, "w": 2**64 - 1,
    "f": 0.5, "d": -1.7e308, "day": "0001-01-01", "at": "9999-12-31T23:59:59.999Z",
    "t": ["", "z"], "n": [2**63 - 1], "v": [1, 2, 3], "pic": "base64:AAE=", "e": "y",
}  # fmt: skip


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> Any:
    made = omnigraph.init(tmp_path_factory.mktemp("scan") / "g", SCHEMA, durability="os")
    made.load([{"type": "V", "data": FULL}, {"type": "V", "data": {"k": "none"}}], mode="append")
    made.load([{"edge": "Near", "from": "full", "to": "none"}], mode="append")
    return made


def test_spark_types_match_the_documentation_and_values_are_exact(spark: Any, graph: Any) -> None:
    frame = graph.spark.frames(spark).nodes("V")
    assert {f"{one.name} {one.dataType.simpleString()}" for one in frame.schema} == {
        "id string", "k string", "b boolean", "i int", "l bigint", "u bigint", "w decimal(20,0)",
        "f float", "d double", "day date", "at timestamp", "t array<string>",
        "n array<bigint>", "v array<float>", "pic binary", "e string",
    }  # fmt: skip
    full, none = frame.orderBy("id").toArrow().to_pylist()
    assert full == {
        **FULL, "id": "full", "w": Decimal(2**64 - 1), "day": date(1, 1, 1),
        "at": datetime(9999, 12, 31, 23, 59, 59, 999000, UTC),
        "v": [1.0, 2.0, 3.0], "pic": b"\x00\x01",
    }  # fmt: skip
    assert {name for name, value in none.items() if value is not None} == {"id", "k"}


def test_values_round_trip_through_spark(spark: Any, graph: Any, tmp_path: Path) -> None:
    copy = omnigraph.init(tmp_path / "copy", SCHEMA, durability="os")
    shown = graph.spark.frames(spark)
    copy.load({"V": shown.nodes("V"), "Near": shown.edges("Near")}, mode="append", spark=spark)
    assert list(copy.refresh().export()) == list(graph.export())


def test_scan_selects_columns_and_filters(spark: Any, graph: Any) -> None:
    shown = graph.spark.frames(spark)
    found = shown.table("V", ["k", "u"], pc.field("i") < 0)
    assert [tuple(row) for row in found.collect()] == [("full", 2**32 - 1)]
    (edge,) = shown.edges("Near", ["src", "dst"]).collect()
    assert tuple(edge) == ("full", "none")
    with pytest.raises(InputError, match="node:V has no column 'kk'"):
        shown.nodes("V", ["kk"])
    with pytest.raises(InputError, match="unknown edge type 'V'"):
        shown.edges("V")


def test_two_actions_see_one_snapshot(spark: Any, tmp_path: Path) -> None:
    graph = omnigraph.init(tmp_path / "g", "node N { k: String @key }", durability="os")
    graph.load([{"type": "N", "data": {"k": "a"}}], mode="append")
    before = graph.spark.frames(spark).nodes("N")
    assert before.count() == 1
    graph.load([{"type": "N", "data": {"k": "b"}}], mode="append")
    assert before.count() == 1
    assert graph.spark.frames(spark).nodes("N").count() == 2
    first = graph.log()[1].id
    assert graph.at(first).spark.frames(spark).nodes("N").count() == 1


def test_empty_table_has_its_columns(spark: Any, tmp_path: Path) -> None:
    graph = omnigraph.init(tmp_path / "g", "node N { k: String @key }", durability="os")
    assert graph.spark.frames(spark).nodes("N").collect() == []
