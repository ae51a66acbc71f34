"""Run the same queries on three engines: Omnigraph, Ladybug and DuckDB.

Each engine has a method `build`, which loads Parquet files, and one method per query, which returns plain rows.
"""

import importlib.metadata
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from bench.peers_data import SCHEMA
from omnigraph.values.table_key import TableKey

Row = tuple[Any, ...]

QUERIES = """
query point($id: String) {
    match { $p: Person { pid: $id } }
    return { $p.pid, $p.name, $p.age, $p.city }
}
query one_hop($id: String, $age: I32) {
    match { $p: Person { pid: $id }  $p knows $f  $f.age > $age }
    return { $f.pid, $f.name, $f.age }
}
query two_hops($id: String) {
    match { $p: Person { pid: $id }  $p knows $m  $m knows $f }
    return { count(distinct $f) as n }
}
query three_hops($id: String) {
    match { $p: Person { pid: $id }  $p knows{1,3} $f }
    return { count($f) as n }
}
query shortest_path($from: String, $to: String) {
    match {
        $a: Person { pid: $from }
        $b: Person { pid: $to }
        $p = any shortest $a knows{1,8} $b
    }
    return { length($p) as n }
}
query cheapest_path($from: String, $to: String) {
    match {
        $a: Person { pid: $from }
        $b: Person { pid: $to }
        $p = any shortest $a $k:knows{1,8} $b by $k.since
    }
    return { cost($p) as n }
}
query friends_of_friends($ids: [String]) {
    match {
        $a: Person
        $a.pid in $ids
        $a knows $b
        $b knows $c
        $a.pid != $c.pid
        not { $a knows $c }
    }
    return { $a.pid as a, $c.pid as c, count($b) as n }
    order { n desc, a, c }
    limit 10
}
query group_by() {
    match { $p: Person  $p.age >= 30 }
    return { $p.city as city, avg($p.age) as mean, count($p.age) as n }
    order { city }
}
query two_paths() {
    match { $a: Person  $a knows $b  $b knows $c }
    return { count($c) as n }
}
query triangles($below: String) {
    match {
        $a: Person
        $a.pid < $below
        $a knows $b
        $b.pid < $below
        $b knows $c
        $c.pid < $below
        $c knows $a
    }
    return { count($c) as n }
}
"""


class Ours:
    """Omnigraph, with its default settings."""

    name = "omnigraph"

    def __init__(self, place: Path) -> None:
        import omnigraph

        os.environ["OMNIGRAPH_CACHE_DIR"] = str(place / "cache")
        self.graph = omnigraph.open(str(place / "graph"))

    @staticmethod
    def version() -> str:
        """Return the version of Omnigraph."""
        return importlib.metadata.version("omnigraph")

    @staticmethod
    def build(place: Path) -> None:
        """Stage and publish both tables, then build the indexes."""
        import omnigraph
        from omnigraph.maintenance.index_maintenance import ensure_indices
        from omnigraph.publish.publish import publish
        from omnigraph.publish.write_plan import PublishPlan
        from omnigraph.publish.write_txn import WriteTxn
        from omnigraph.storage.stage_rows import stage_append

        graph = omnigraph.init(str(place / "graph"), SCHEMA)
        for key, name in ((TableKey("node:Person"), "person"), (TableKey("edge:Knows"), "knows")):
            rows = pq.read_table(place / f"{name}.parquet")

            def prepare(txn: WriteTxn, key: TableKey = key, rows: Any = rows) -> PublishPlan:
                staged = stage_append(txn.store, txn.table(key), rows)
                return PublishPlan("load", {key: staged}, gc_epoch=txn.base.state.head.gc_epoch)

            publish(graph._handle.branch_state, prepare)
        ensure_indices(graph._handle.branch_state)
        # Store the neighbor lists on disk, because the other engines store theirs in their files.
        os.environ["OMNIGRAPH_TRAVERSAL_MODE"] = "csr"
        os.environ["OMNIGRAPH_CACHE_DIR"] = str(place / "cache")
        ours = Ours(place)
        ours.two_hops("p00000000")
        ours.cheapest_path("p00000000", "p00000001")

    def ask(self, name: str, params: Mapping[str, Any]) -> list[Row]:
        """Run the query with the given name."""
        return self.graph.query(QUERIES, name=name, params=params).to_records()

    def topology(self) -> float:
        """Build the neighbor lists again, and return the duration in seconds."""
        from time import perf_counter

        from omnigraph.engine.adjacency.topology import EdgeTables, build_topology

        state = self.graph.snapshot
        person, knows = state.table(TableKey("node:Person")), state.table(TableKey("edge:Knows"))
        began = perf_counter()
        build_topology(EdgeTables(knows, person, person), with_edge_ids=False)
        return perf_counter() - began

    def point(self, one: str) -> list[Row]:
        """Return a node by its key."""
        return self.ask("point", {"id": one})

    def one_hop(self, one: str) -> list[Row]:
        """Return friends above an age."""
        return self.ask("one_hop", {"id": one, "age": 40})

    def two_hops(self, one: str) -> list[Row]:
        """Count the distinct friends of friends."""
        return self.ask("two_hops", {"id": one})

    def three_hops(self, one: str) -> list[Row]:
        """Count the people within three hops."""
        return self.ask("three_hops", {"id": one})

    def shortest_path(self, one: str, other: str) -> list[Row]:
        """Return the length of the shortest path from one person to another."""
        return self.ask("shortest_path", {"from": one, "to": other})

    def cheapest_path(self, one: str, other: str) -> list[Row]:
        """Return the lowest sum of `since` on a path from one person to another."""
        return self.ask("cheapest_path", {"from": one, "to": other})

    def friends_of_friends(self, starts: Sequence[str]) -> list[Row]:
        """Return the people with the most friends in common who are not friends yet."""
        return self.ask("friends_of_friends", {"ids": list(starts)})

    def group_by(self) -> list[Row]:
        """Return the average age and the number of people who are at least 30, by city."""
        return self.ask("group_by", {})

    def two_paths(self) -> list[Row]:
        """Count the paths with two edges, where parallel edges count once."""
        return self.ask("two_paths", {})

    def triangles(self, below: str) -> list[Row]:
        """Count the directed triangles among some of the people."""
        return self.ask("triangles", {"below": below})


class Ladybug:
    """Ladybug, with two threads and prepared statements."""

    name = "ladybug"

    def __init__(self, place: Path) -> None:
        import ladybug

        self.database = ladybug.Database(str(place / "ladybug.db"), read_only=True)
        self.connection = ladybug.Connection(self.database, num_threads=2)
        self.prepared: dict[str, Any] = {}

    @staticmethod
    def version() -> str:
        """Return the version of Ladybug."""
        return importlib.metadata.version("ladybug")

    @staticmethod
    def build(place: Path) -> None:
        """Copy both Parquet files into the database."""
        import ladybug

        connection = ladybug.Connection(ladybug.Database(str(place / "ladybug.db")))
        connection.execute("CREATE NODE TABLE Person(id STRING PRIMARY KEY, name STRING, age INT32, city STRING)")
        connection.execute("CREATE REL TABLE Knows(FROM Person TO Person, id STRING, since INT32)")
        person, knows = place / "person.parquet", place / "knows.parquet"
        connection.execute(f"COPY Person FROM (LOAD FROM '{person}' RETURN id, name, age, city)")
        connection.execute(f"COPY Knows FROM (LOAD FROM '{knows}' RETURN src, dst, id, since)")

    def ask(self, text: str, **params: Any) -> list[Row]:
        """Run a statement."""
        if text not in self.prepared:
            self.prepared[text] = self.connection.prepare(text)
        found: Any = self.connection.execute(self.prepared[text], params)
        return [tuple(one) for one in found.get_all()]

    def point(self, one: str) -> list[Row]:
        """Return a node by its key."""
        return self.ask("MATCH (p:Person) WHERE p.id=$i RETURN p.id, p.name, p.age, p.city", i=one)

    def one_hop(self, one: str) -> list[Row]:
        """Return friends above an age."""
        return self.ask(
            "MATCH (p:Person)-[:Knows]->(f:Person) WHERE p.id=$i AND f.age>40 RETURN DISTINCT f.id, f.name, f.age",
            i=one,
        )

    def two_hops(self, one: str) -> list[Row]:
        """Count the distinct friends of friends."""
        return self.ask(
            "MATCH (p:Person)-[:Knows]->(:Person)-[:Knows]->(f:Person) WHERE p.id=$i RETURN count(DISTINCT f.id)", i=one
        )

    def three_hops(self, one: str) -> list[Row]:
        """Count the people within three hops."""
        return self.ask(
            "MATCH (p:Person)-[:Knows* SHORTEST 1..3]->(f:Person) WHERE p.id=$i RETURN count(DISTINCT f.id)", i=one
        )

    def shortest_path(self, one: str, other: str) -> list[Row]:
        """Return the length of the shortest path from one person to another."""
        return self.ask(
            "MATCH (a:Person)-[e:Knows* SHORTEST 1..8]->(b:Person) WHERE a.id=$i AND b.id=$j RETURN length(e)",
            i=one,
            j=other,
        )

    def cheapest_path(self, one: str, other: str) -> list[Row]:
        """Return the lowest sum of `since` on a path from one person to another."""
        return self.ask(
            "MATCH (a:Person)-[e:Knows* WSHORTEST(since) 1..8]->(b:Person) WHERE a.id=$i AND b.id=$j RETURN cost(e)",
            i=one,
            j=other,
        )

    def friends_of_friends(self, starts: Sequence[str]) -> list[Row]:
        """Return the people with the most friends in common who are not friends yet."""
        return self.ask(
            "MATCH (a:Person)-[:Knows]->(b:Person)-[:Knows]->(c:Person) "
            "WHERE a.id IN $l AND a.id<>c.id AND NOT EXISTS {MATCH (a)-[:Knows]->(c)} "
            "RETURN a.id, c.id, count(DISTINCT b.id) AS n ORDER BY n DESC, a.id, c.id LIMIT 10",
            l=list(starts),
        )

    def group_by(self) -> list[Row]:
        """Return the average age and the number of people who are at least 30, by city."""
        return self.ask("MATCH (p:Person) WHERE p.age>=30 RETURN p.city, avg(p.age), count(p.age) ORDER BY p.city")

    def two_paths(self) -> list[Row]:
        """Count the paths with two edges, where parallel edges count separately."""
        return self.ask("MATCH (a:Person)-[:Knows]->(b:Person)-[:Knows]->(c:Person) RETURN count(*)")

    def triangles(self, below: str) -> list[Row]:
        """Count the directed triangles among some of the people."""
        return self.ask(
            "MATCH (a:Person)-[:Knows]->(b:Person)-[:Knows]->(c:Person)-[:Knows]->(a) "
            "WHERE a.id<$l AND b.id<$l AND c.id<$l "
            "WITH DISTINCT id(a) AS x, id(b) AS y, id(c) AS z RETURN count(*)",
            l=below,
        )


class DuckDB:
    """DuckDB, with two threads and indexes on ids and on the sources of edges."""

    name = "duckdb"

    def __init__(self, place: Path) -> None:
        import duckdb

        self.connection = duckdb.connect(str(place / "duck.db"), read_only=True)
        self.connection.execute("SET threads=2")

    @staticmethod
    def version() -> str:
        """Return the version of DuckDB."""
        return importlib.metadata.version("duckdb")

    @staticmethod
    def build(place: Path) -> None:
        """Create both tables and their indexes."""
        import duckdb

        connection = duckdb.connect(str(place / "duck.db"))
        for name in ("person", "knows"):
            path = place / f"{name}.parquet"
            connection.execute(f"CREATE TABLE {name} AS SELECT * FROM '{path}'")  # noqa: S608
        connection.execute("CREATE UNIQUE INDEX person_id ON person(id)")
        connection.execute("CREATE INDEX knows_src ON knows(src)")
        connection.close()

    def ask(self, text: str, *params: Any) -> list[Row]:
        """Run a statement."""
        found: list[Row] = self.connection.execute(text, list(params)).fetchall()
        return found

    def point(self, one: str) -> list[Row]:
        """Return a node by its key."""
        return self.ask("SELECT id, name, age, city FROM person WHERE id=?", one)

    def one_hop(self, one: str) -> list[Row]:
        """Return friends above an age."""
        return self.ask(
            "SELECT DISTINCT f.id, f.name, f.age FROM knows k JOIN person f ON f.id=k.dst WHERE k.src=? AND f.age>40",
            one,
        )

    def two_hops(self, one: str) -> list[Row]:
        """Count the distinct friends of friends."""
        return self.ask(
            "SELECT count(DISTINCT k2.dst) FROM knows k1 JOIN knows k2 ON k2.src=k1.dst WHERE k1.src=?", one
        )

    def three_hops(self, one: str) -> list[Row]:
        """Count the people within three hops, including the start if it has an edge to itself."""
        return self.ask(
            "WITH RECURSIVE r(v, h) AS (SELECT CAST(? AS VARCHAR), 0 UNION "
            "SELECT k.dst, h+1 FROM r JOIN knows k ON k.src=r.v WHERE h<3) "
            "SELECT count(DISTINCT v) FROM r WHERE h>0 AND (v<>? OR h=1)",
            one,
            one,
        )

    def shortest_path(self, one: str, other: str) -> list[Row]:
        """Return the length of the shortest path from one person to another. Each person is visited once."""
        return self.ask(
            "WITH RECURSIVE r(v, h) USING KEY (v) AS (SELECT CAST(? AS VARCHAR), 0 UNION "
            "SELECT k.dst, min(r.h)+1 FROM r JOIN knows k ON k.src=r.v "
            "LEFT JOIN recurring.r x ON x.v=k.dst WHERE x.v IS NULL AND r.h<8 GROUP BY k.dst) "
            "SELECT h FROM r WHERE v=?",
            one,
            other,
        )

    def cheapest_path(self, one: str, other: str) -> list[Row]:
        """Return the lowest sum of `since` on a path. A person is visited again if a cheaper path is found."""
        return self.ask(
            "WITH RECURSIVE r(v, c, h) USING KEY (v) AS (SELECT CAST(? AS VARCHAR), CAST(0 AS DOUBLE), 0 UNION "
            "SELECT k.dst, min(r.c+k.since), min(r.h)+1 FROM r JOIN knows k ON k.src=r.v "
            "LEFT JOIN recurring.r x ON x.v=k.dst WHERE r.h<8 AND (x.v IS NULL OR x.c>r.c+k.since) GROUP BY k.dst) "
            "SELECT c FROM r WHERE v=?",
            one,
            other,
        )

    def friends_of_friends(self, starts: Sequence[str]) -> list[Row]:
        """Return the people with the most friends in common who are not friends yet."""
        return self.ask(
            "WITH st AS (SELECT unnest(?) a), "
            "h1 AS (SELECT DISTINCT st.a, k.dst b FROM st JOIN knows k ON k.src=st.a), "
            "h2 AS (SELECT DISTINCT h1.a, h1.b, k.dst c FROM h1 JOIN knows k ON k.src=h1.b "
            "WHERE k.dst<>h1.a) "
            "SELECT a, c, count(*) n FROM h2 WHERE NOT EXISTS "
            "(SELECT 1 FROM h1 WHERE h1.a=h2.a AND h1.b=h2.c) "
            "GROUP BY a, c ORDER BY n DESC, a, c LIMIT 10",
            list(starts),
        )

    def group_by(self) -> list[Row]:
        """Return the average age and the number of people who are at least 30, by city."""
        return self.ask("SELECT city, avg(age), count(age) FROM person WHERE age>=30 GROUP BY city ORDER BY city")

    def two_paths(self) -> list[Row]:
        """Count the paths with two edges as a sum of products of degrees, which is the fastest method in SQL."""
        return self.ask(
            "SELECT sum(o.c*i.c) FROM (SELECT src v, count(*) c FROM knows GROUP BY 1) o "
            "JOIN (SELECT dst v, count(*) c FROM knows GROUP BY 1) i USING (v)"
        )

    def triangles(self, below: str) -> list[Row]:
        """Count the directed triangles among some of the people."""
        return self.ask(
            "WITH e AS (SELECT DISTINCT src, dst FROM knows WHERE src<? AND dst<?) "
            "SELECT count(*) FROM e a JOIN e b ON b.src=a.dst "
            "JOIN e c ON c.src=b.dst AND c.dst=a.src",
            below,
            below,
        )


ENGINES: dict[str, Any] = {one.name: one for one in (Ours, Ladybug, DuckDB)}
