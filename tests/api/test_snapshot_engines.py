"""DuckDB and polars over one snapshot: `graph.duckdb` and `graph.scan`."""

from collections.abc import Iterator

import duckdb
import polars as pl
import pytest

from omnigraph import testing
from omnigraph.api.graph import Graph
from omnigraph.errors import InputError, SnapshotNotFound

SCHEMA = """
node Person { name: String @key  age: I32?  order: String?  photo: Blob?  tags: [String]?  place: Vector(2)? }
node Knows { name: String @key }
edge Knows: Person -> Person { since: Date? }
"""


@pytest.fixture
def people() -> Iterator[Graph]:
    with testing.graph(SCHEMA) as graph:
        graph.insert(
            "Person",
            {"name": "ada", "age": 36, "order": "x", "photo": b"png", "tags": ["a"], "place": [1.0, 2.0]},
            {"name": "bob", "age": 25},
            {"name": "cyd"},
        )
        edges = [
            {"edge": "Knows", "from": "ada", "to": "bob", "data": {"since": "2020-01-01"}},
            {"edge": "Knows", "from": "bob", "to": "cyd"},
        ]
        graph.load(edges, mode="append")
        yield graph


def test_sql_joins_types_and_reads_every_column_but_blobs(people: Graph) -> None:
    with people.duckdb() as connection:
        rows = connection.sql(
            "select p.name, q.name, k.since::text from edges.Knows k"
            " join Person p on p.id = k.src join Person q on q.id = k.dst order by 1"
        ).fetchall()
        assert rows == [("ada", "bob", "2020-01-01"), ("bob", "cyd", None)]
        everything = connection.sql("select * from Person where name = 'ada'")
        assert everything.columns == ["id", "age", "name", "order", "place", "tags"]
        assert everything.fetchall() == [("ada", 36, "ada", "x", (1.0, 2.0), ["a"])]


def test_a_node_type_hides_an_edge_type_of_the_same_name(people: Graph) -> None:
    with people.duckdb() as connection:
        assert connection.sql("select count(*) from Knows").fetchall() == [(0,)]
        assert connection.sql("select count(*) from edges.Knows").fetchall() == [(2,)]


def test_views_never_follow_the_branch_and_can_show_the_past(people: Graph) -> None:
    people.tag("v1")
    with people.duckdb() as connection, people.duckdb(at="HEAD~1") as earlier:
        people.delete("Person", where="name = 'cyd'")
        assert connection.sql("select count(*) from Person").fetchall() == [(3,)]
        assert earlier.sql("select count(*) from edges.Knows").fetchall() == [(0,)]
    with people.duckdb() as connection:
        assert connection.sql("select name from Person order by 1").fetchall() == [("ada",), ("bob",)]
    with people.duckdb(at="v1") as connection:
        assert connection.sql("select count(*) from Person").fetchall() == [(3,)]
    with pytest.raises((SnapshotNotFound, InputError)):
        people.duckdb(at="01JCRX0000000000000000000Z")


def test_own_tables_can_stand_beside_the_views_which_are_read_only(people: Graph) -> None:
    with people.duckdb() as connection:
        connection.execute("create table picked as select name from Person where age > 30")
        assert connection.sql("from picked").fetchall() == [("ada",)]
        with pytest.raises(duckdb.Error):
            connection.execute("insert into Person (name) values ('dee')")


def test_a_frame_reads_only_what_is_selected(people: Graph) -> None:
    frame = people.scan("Person")
    assert frame.collect_schema().names() == ["id", "age", "name", "order", "place", "tags"]
    assert frame.filter(pl.col("age") > 30).select("name").collect().to_dicts() == [{"name": "ada"}]
    assert frame.select("name").head(2).collect().height == 2
    assert frame.select(pl.len()).collect().item() == 3
    assert frame.filter(pl.col("age").is_not_null()).head(1).collect().height == 1


def test_a_frame_of_edges_has_endpoints_and_is_pinned(people: Graph) -> None:
    frame = people.scan("Knows", kind="edge")
    people.delete("Person", where="name = 'cyd'")
    assert sorted(frame.select("src", "dst").collect().rows()) == [("ada", "bob"), ("bob", "cyd")]
    assert people.scan("Knows", kind="edge").select("src", "dst").collect().rows() == [("ada", "bob")]
    with pytest.raises(InputError, match="unknown"):
        people.scan("Nobody")
