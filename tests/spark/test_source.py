"""`format("omnigraph")`: reading at a branch, version or commit; writing; streams."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import omnigraph
from omnigraph.errors import InputError
from omnigraph.publish.write_plan import CommitMetadata
from omnigraph.spark import source
from omnigraph.spark.pinned_graph import pin_graph
from omnigraph.spark.stream import StreamLoad, is_batch_loaded, load_batch, read_query_id

SCHEMA = """
node Person { name: String @key  age: I32?  size: U64? }
edge Knows: Person -> Person
"""


@pytest.fixture
def graph(tmp_path: Path) -> Any:
    made = omnigraph.init(tmp_path / "g", SCHEMA, durability="os")
    people = [{"type": "Person", "data": {"name": n, "age": at}} for at, n in enumerate("abcd")]
    made.load([*people, {"edge": "Knows", "from": "a", "to": "b"}], mode="append")
    return made


def reading(spark: Any, graph: Any, **options: str) -> Any:
    source.register(spark)
    made = spark.read.format("omnigraph").option("graph", graph.uri)
    return made.options(**options).load()


@pytest.mark.full
def test_dataframe_reads_one_commit_for_all_actions(spark: Any, graph: Any) -> None:
    frame = reading(spark, graph, type="Person", columns="name, age")
    assert frame.columns == ["name", "age"]
    graph.load([{"type": "Person", "data": {"name": "e", "age": 9}}], mode="append")
    old = frame.where("age >= 2 and name <> 'c'")
    assert [tuple(row) for row in old.collect()] == [("d", 3)]
    assert frame.count() == 4
    assert reading(spark, graph, type="Person").count() == 5
    first = graph.log()[1].id
    assert reading(spark, graph, type="Person", at=first).count() == 4
    graph.branches.create("side")
    assert reading(spark, graph, type="Knows", branch="side").count() == 1
    with pytest.raises(Exception, match="mutually exclusive"):
        reading(spark, graph, type="Person", branch="main", at=first)


@pytest.mark.full
def test_write_is_one_validated_commit(spark: Any, graph: Any) -> None:
    source.register(spark)
    people = spark.sql("select * from values ('a', 7), ('z', 8) as t(name, age)")

    def write(frame: Any, **options: str) -> None:
        made = frame.write.format("omnigraph").option("graph", graph.uri).mode("append")
        made.options(type="Person", **options).save()

    with pytest.raises(Exception, match="already has an entity with id 'a'"):
        write(people)
    assert len(graph.refresh().log()) == 2
    write(people, loadMode="merge")
    assert len(graph.refresh().log()) == 3
    rows = graph.query("query q() { match { $p: Person } return { $p.name, $p.age } }").to_dicts()
    assert {tuple(one.values()) for one in rows} >= {("a", 7), ("z", 8), ("d", 3)}


def test_frames_of_spark_are_loaded_by_type(spark: Any, graph: Any) -> None:
    people = spark.range(5).selectExpr("concat('p', id) name", "cast(id as int) age", "cast(id as decimal(20,0)) size")
    ties = spark.range(4).selectExpr("concat('p', id) `from`", "concat('p', id + 1) `to`")
    graph.branches.create("bulk")
    done = graph.load({"Person": people, "Knows": ties}, mode="append", branch="bulk", spark=spark)
    assert (done.nodes, done.edges) == ({"Person": 5}, {"Knows": 4})
    assert graph.checkout("bulk").spark.frames(spark).nodes("Person").count() == 9
    assert graph.refresh().spark.frames(spark).nodes("Person").count() == 4
    bad = ties.selectExpr("`from`", "'nobody' as `to`")
    found = graph.load({"Knows": bad}, mode="append", on_error="report", max_errors=1, spark=spark)
    assert (len(found), found.left_out) == (1, 7)


@pytest.mark.full
def test_write_is_validated_as_a_whole(spark: Any, graph: Any) -> None:
    """Rules that no task can see alone; tasks stage, and nothing of it is visible."""
    source.register(spark)

    def refused(frame: Any, match: str, mode: str = "append", **options: str) -> None:
        writer = frame.write.format("omnigraph").option("graph", graph.uri).mode(mode)
        with pytest.raises(Exception, match=match):
            writer.options(**options).save()

    twice = spark.sql("select 'x' name, id age from range(0, 2, 1, 2)")
    refused(twice, "'x'", type="Person")
    refused(twice, "several Person rows have the id 'x'", type="Person", loadMode="merge")
    ties = spark.sql("select 'a' `from`, 'nobody' `to`")
    refused(ties, "'nobody' not found in Person", type="Knows")
    refused(spark.sql("select 'y' name"), "not found in Person", "overwrite", type="Person")
    refused(twice, "expected one of append, merge, overwrite", type="Person", loadMode="sideways")
    assert len(graph.refresh().log()) == 2


def test_a_stream_lands_each_batch_once(spark: Any, graph: Any, tmp_path: Path) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    (folder / "1.json").write_text('{"name":"s1","age":1}\n{"name":"s2","age":2}\n')
    rows = spark.readStream.schema("name string, age int").json(str(folder))

    def run(checkpoint: str = "point") -> Any:
        query = graph.spark.stream_load(
            rows, "Person", name="people", checkpoint=tmp_path / checkpoint, available_now=True
        )
        query.awaitTermination(120)
        return query

    run()
    count = len(graph.refresh().log())
    (folder / "2.json").write_text('{"name":"s3","age":3}\n')
    run()
    assert len(graph.refresh().log()) == count + 1
    stream = StreamLoad(
        pin_graph(graph._handle.store, {}), "main", "Person", "append", "people", CommitMetadata(),
        query_id=read_query_id(rows, str(tmp_path / "point")),
    )  # fmt: skip
    assert is_batch_loaded(graph._handle.branch_state, stream, 1)
    # The driver died after the publish and before the checkpoint: the batch comes again, also
    # after another writer has written.
    graph.load([{"type": "Person", "data": {"name": "other"}}], mode="append")
    again = spark.range(1).selectExpr("'s3' as name", "3 as age")
    assert load_batch(stream, again, 1) is None
    assert graph.refresh().spark.frames(spark).nodes("Person").count() == 8
    # Batch 0 of a new checkpoint is not batch 0 of the old one.
    with pytest.raises(InputError, match="from a different checkpoint"):
        load_batch(replace(stream, query_id="another"), again, 0)
    with pytest.raises(InputError, match="not a stream"):
        graph.spark.stream_load(again, "Person", name="people", checkpoint=tmp_path / "point")
