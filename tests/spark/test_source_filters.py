"""Filters of the data source equal a Spark `where` and affect no other read."""

import json
from typing import Any

import pytest

import omnigraph
from omnigraph.errors import OmnigraphError
from omnigraph.lang.schema.type_names import type_for_key
from omnigraph.spark import source
from omnigraph.spark.filters import SparkFilter, parse_filter
from omnigraph.storage.fragments import list_fragment_ids, read_fragments
from omnigraph.values.table_key import TableKey

SCHEMA = """
node V {
    k: String @key
    b: Bool?
    i: I32?
    u: U32?
    w: U64?
    d: F64?
    day: Date?
    at: DateTime?
    t: [String]?
    v: Vector(2)?
}
"""
ROWS = [
    {"k": "a", "b": True, "i": -1, "u": 2**32 - 1, "w": 2**64 - 1, "d": 0.5, "day": "2024-01-01"},
    {"k": "b", "b": False, "i": 0, "u": 0, "w": 0, "d": -0.0, "at": "2024-01-01T00:00:00Z"},
    {"k": "c", "i": 7, "u": 7, "w": 7, "d": 7.0, "day": "1969-12-31", "t": [], "v": [1, 2]},
    {"k": "B'\"%", "b": True, "day": "2024-01-02", "at": "1969-12-31T23:59:59.999Z"},
    {"k": " "},
]
SAME = [
    ([["k", "=", "a"]], "k = 'a'"),
    ([["id", "=", "B'\"%"]], "id = 'B\\'\"%'"),
    ([["k", "!=", "a"]], "k != 'a'"),
    ([["k", "<", "b"]], "k < 'b'"),
    ([["k", "in", ["a", "c", "zz"]]], "k in ('a', 'c', 'zz')"),
    ([["b", "=", True]], "b = true"),
    ([["b", "!=", True]], "b != true"),
    ([["i", "<=", 0]], "i <= 0"),
    ([["i", ">", -1], ["b", "=", False]], "i > -1 and b = false"),
    ([["i", "is null"]], "i is null"),
    ([["i", "is not null"], ["day", "is null"]], "i is not null and day is null"),
    ([["u", ">", 7]], "u > 7"),
    ([["w", ">=", 2**64 - 1]], "w >= 18446744073709551615"),
    ([["w", "in", [0, 7]]], "w in (0, 7)"),
    ([["d", "=", 0]], "d = 0.0d"),
    ([["d", ">", -0.0]], "d > -0.0d"),
    ([["day", "<", "2024-01-01"]], "day < date'2024-01-01'"),
    ([["day", "!=", "2024-01-01"]], "day != date'2024-01-01'"),
    ([["at", "<", "1970-01-01T00:00:00Z"]], "at < timestamp'1970-01-01T00:00:00Z'"),
    ([["at", ">=", "2024-01-01T00:00:00Z"]], "at >= timestamp'2024-01-01T00:00:00Z'"),
    ([["t", "is null"]], "t is null"),
    ([["v", "is not null"]], "v is not null"),
]


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> Any:
    made = omnigraph.init(tmp_path_factory.mktemp("filters") / "g", SCHEMA, durability="os")
    made.load([{"type": "V", "data": one} for one in ROWS], mode="append")
    return made


def where(graph: Any, conditions: Any) -> SparkFilter:
    return parse_filter(type_for_key(graph.snapshot.schema.ir.catalog, TableKey("node:V")), json.dumps(conditions))


def kept(graph: Any, conditions: Any) -> list[str]:
    """The keys of the rows that pass."""
    made, table = where(graph, conditions), graph.snapshot.table("node:V")
    names = list(dict.fromkeys(["k", *made.batch_columns]))
    batches = read_fragments(table, list_fragment_ids(table), names, made.storage_filter)
    return [one for rows in batches for one in made.apply_to_batch(rows)["k"].to_pylist()]


def test_filter_option_equals_spark_where(spark: Any, graph: Any) -> None:
    whole = graph.spark.frames(spark).nodes("V")
    asked = [f"collect_list(k) filter (where {text}) n{at}" for at, (_, text) in enumerate(SAME)]
    (wanted,) = whole.selectExpr(*asked).collect()
    for at, (conditions, text) in enumerate(SAME):
        found = kept(graph, conditions)
        assert sorted(found) == sorted(wanted[f"n{at}"]), text
        assert 0 < len(found) < 5


def test_the_plan_of_a_filtered_frame_shows_the_filter(spark: Any, graph: Any) -> None:
    frame = graph.spark.frames(spark).nodes("V", ["k"], where(graph, [["i", ">", 3]]).storage_filter)
    plan = frame._jdf.queryExecution().toString()
    assert "node:V where (i > 3)" in plan
    assert [row["k"] for row in frame.collect()] == ["c"]


@pytest.mark.full
def test_filtered_and_unfiltered_reads_do_not_affect_each_other(spark: Any, graph: Any) -> None:
    """Spark 4.3 would keep a filter that was pushed down by itself for every use of a frame."""
    source.register(spark)
    reader = spark.read.format("omnigraph").option("graph", graph.uri).option("type", "V")
    frame = reader.option("columns", "k,i").option("filters", '[["i","is not null"],["w","is not null"]]').load()
    assert frame.where("i > 3").count() == 1
    both = frame.where("i < 0").unionAll(frame.where("i >= 0"))
    assert (both.count(), frame.count()) == (3, 3)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("i > 3", "a filter is a JSON array"),
        ("[]", "a filter is a JSON array"),
        ('[["i"]]', "a filter is a JSON array"),
        ('[["j", ">", 3]]', "V has no column 'j'"),
        ('[["i", "like", 3]]', "unknown operator 'like'"),
        ('[["i", "=", null]]', "use 'is null'"),
        ('[["i", "is null", 3]]', "does not take a value"),
        ('[["i", ">", "three"]]', "three|string|text"),
        ('[["i", "in", 3]]', "requires a non-empty array"),
        ('[["t", "=", ["a"]]]', "cannot compare"),
        ('[["v", ">", 1]]', "cannot compare"),
    ],
)
def test_invalid_filter_is_rejected(graph: Any, text: str, told: str) -> None:
    with pytest.raises(OmnigraphError, match=told):
        parse_filter(type_for_key(graph.snapshot.schema.ir.catalog, TableKey("node:V")), text)
