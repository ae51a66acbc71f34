"""The twelve cases that every Spark deployment must pass, each on a fresh graph.

They run in the test process for `local[2]` and in a process of their own for everything else.
"""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

import omnigraph
from omnigraph.errors import RecoveryRequired, ServerError, StorageError
from omnigraph.publish import intent, long_operations
from omnigraph.spark import source
from tests.crash.verbs import overdue
from tests.rig.invariants import check_invariants

SCHEMA = """
node Person { name: String @key  age: I32?  size: U64? }
edge Knows: Person -> Person @card(0..3) { since: Date? }
"""
Record = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Site:
    """Where a case runs: a session, a folder that all workers see, whether tasks are retried."""

    spark: Any
    folder: Path
    retries: bool

    def graph(self, *records: Record) -> Any:
        """A new graph with some records."""
        made = omnigraph.init(self.folder / "g", SCHEMA, durability="os")
        if records:
            made.load(list(records), mode="append")
        return made

    def file(self, name: str, *records: Record) -> str:
        """Records as a file."""
        path = self.folder / name
        path.write_text("".join(f"{json.dumps(one)}\n" for one in records))
        return str(path)

    def load(self, graph: Any, data: Any, mode: str, **how: Any) -> Any:
        """Load on Spark."""
        return graph.load(data, mode=mode, engine="spark", spark=self.spark, **how)


def person(name: str, **data: Any) -> Record:
    return {"type": "Person", "data": {"name": name, **data}}


def knows(src: str, dst: str, **data: Any) -> Record:
    return {"edge": "Knows", "from": src, "to": dst, "data": data}


def ages(graph: Any) -> dict[str, Any]:
    """What the nodes hold; each id must be there once."""
    rows = [json.loads(line)["data"] for line in graph.refresh().export(types=["Person"])]
    found = {one["id"]: one.get("age") for one in rows}
    assert len(found) == len(rows)
    return found


def operations(graph: Any) -> list[str]:
    return [one.operation for one in graph.refresh().log()]


def settled(graph: Any) -> None:
    """At rest: no operation waits, and everything that can be checked from outside holds."""
    assert intent.list_intents(graph._handle.branch_state.store).pending == ()
    check_invariants(graph.uri)


def row_ids(graph: Any) -> dict[str, int]:
    found = graph.refresh().table("Person").to_table(columns=["id"], with_row_id=True)
    return dict(zip(found["id"].to_pylist(), found["_rowid"].to_pylist(), strict=True))


def append(site: Site) -> None:
    graph = site.graph(person("old", age=1))
    names = [f"p{at}" for at in range(40)]
    files = [
        site.file("a.ndjson", *(person(one, age=at) for at, one in enumerate(names[:20]))),
        site.file("b.ndjson", *(person(one) for one in names[20:]), knows("p0", "old", id="e")),
    ]
    done = site.load(graph, files, "append")
    assert (done.nodes, done.edges) == ({"Person": 40}, {"Knows": 1})
    assert ages(graph) == {"old": 1, **{one: at if at < 20 else None for at, one in enumerate(names)}}
    assert operations(graph)[0] == "load"
    settled(graph)


def merge(site: Site) -> None:
    graph = site.graph(person("a", age=1), person("b", age=2), knows("a", "b", id="e"))
    file = site.file("m.ndjson", person("b", age=9), person("c", age=3), knows("c", "a", id="e"))
    site.load(graph, file, "merge")
    assert ages(graph) == {"a": 1, "b": 9, "c": 3}
    (edge,) = [json.loads(one) for one in graph.export(types=["Knows"])]
    assert (edge["from"], edge["to"]) == ("c", "a")
    settled(graph)


def overwrite(site: Site) -> None:
    graph = site.graph(person("a", age=1), knows("a", "a", id="e"))
    file = site.file("o.ndjson", person("z", age=5), knows("z", "z", id="f"))
    site.load(graph, file, "overwrite")
    assert ages(graph) == {"z": 5}
    assert [json.loads(one)["data"]["id"] for one in graph.export(types=["Knows"])] == ["f"]
    settled(graph)


def rejects(site: Site) -> None:
    graph = site.graph(person("a"))
    one = site.file("one.ndjson", person("b"), person("a"), person("c", age="old"))
    two = site.file("two.ndjson", person("b"), knows("a", "a"), {"type": "Ghost", "data": {}})
    folder = site.folder / "rejects"
    found = site.load(graph, [one, two], "append", on_error="report", rejects=folder)
    told = sorted((Path(str(each.file)).name, each.line, each.type) for each in found)
    wanted = [("one.ndjson", 2, "Person"), ("one.ndjson", 3, "Person")]
    assert told[:2] == wanted
    assert [each[:2] for each in told[2:]] == [("two.ndjson", 1), ("two.ndjson", 3)]
    table = pq.read_table(folder / "rejects.parquet").to_pylist()
    lines = (folder / "rejects.ndjson").read_text().splitlines()
    assert [json.loads(line) for line in lines] == table
    assert len(table) == len(found)
    assert ages(graph) == {"a": None}
    assert operations(graph) == ["load", "init"]
    settled(graph)


def endpoints(site: Site) -> None:
    graph = site.graph(person("a"))
    file = site.file("e.ndjson", person("b"), knows("a", "b"), knows("b", "nobody", id="e"))
    found = site.load(graph, file, "append", on_error="report")
    assert [(each.line, each.type, each.id) for each in found] == [(3, "Knows", "e")]
    assert "nobody" in next(iter(found)).reason
    crowd = site.file("c.ndjson", *(knows("a", "a") for _ in range(4)))
    assert len(site.load(graph, crowd, "append", on_error="report")) == 1
    assert ages(graph) == {"a": None}
    settled(graph)


def upsert_keeps_row_ids(site: Site) -> None:
    graph = site.graph(*(person(f"p{at}", age=at) for at in range(30)))
    before = row_ids(graph)
    some = site.spark.range(10, 40, 1, 3).selectExpr(
        "concat('p', id) name", "cast(-id as int) age", "cast(id as decimal(20,0)) size"
    )
    site.load(graph, {"Person": some}, "merge")
    after = row_ids(graph)
    assert {one: after[one] for one in before} == before
    assert len(set(after.values())) == 40
    assert ages(graph) == {f"p{at}": at if at < 10 else -at for at in range(40)}
    settled(graph)


def export(site: Site) -> None:
    graph = site.graph(*(person(f"p{at}", age=at) for at in range(9)), knows("p1", "p2", id="e"))
    done = graph.spark.frames(site.spark).export(site.folder / "out", ordered=True)
    files = [site.folder / "out" / name for names in done.files.values() for name in names]
    assert b"".join(file.read_bytes() for file in files) == b"".join(graph.export())
    graph.spark.frames(site.spark).export(site.folder / "parquet", "parquet")
    copy = omnigraph.init(site.folder / "copy", SCHEMA, durability="os")
    site.load(copy, str(site.folder / "parquet"), "append")
    assert list(copy.refresh().export()) == list(graph.export())
    settled(copy)


def branch_read(site: Site) -> None:
    graph = site.graph(person("a", age=1))
    graph.branches.create("side")
    graph.load([person("b", age=2)], mode="append", branch="side")
    there = graph.checkout("side")
    shown = there.spark.frames(site.spark).nodes("Person")
    source.register(site.spark)
    reader = site.spark.read.format("omnigraph").option("graph", graph.uri)
    by_name = reader.options(type="Person", branch="side", columns="name,age").load()
    assert sorted(map(tuple, by_name.collect())) == [("a", 1), ("b", 2)]
    # Spark Connect makes a source anew for each action: a commit is what stays.
    reader = site.spark.read.format("omnigraph").option("graph", graph.uri)
    pinned = reader.options(type="Person", at=there.head.id, filters='[["age", ">", 0]]').load()
    there.load([person("c", age=3)], mode="append")
    assert sorted(row["id"] for row in shown.collect()) == ["a", "b"]
    assert pinned.count() == 2
    assert graph.refresh().spark.frames(site.spark).nodes("Person").count() == 1


def branch_write(site: Site) -> None:
    graph = site.graph(person("a", age=1))
    graph.branches.create("side")
    some = site.spark.range(0, 8, 1, 4).selectExpr("concat('n', id) name", "cast(id as int) age")
    site.load(graph, {"Person": some}, "append", branch="side")
    source.register(site.spark)
    more = site.spark.range(6, 10, 1, 2).selectExpr("concat('n', id) name", "-1 age")
    writer = more.write.format("omnigraph").mode("append").option("graph", graph.uri)
    writer.options(type="Person", branch="side", loadMode="merge").save()
    side = graph.checkout("side")
    wanted = {"a": 1, **{f"n{at}": at if at < 6 else -1 for at in range(10)}}
    assert ages(side) == wanted
    assert operations(side)[:2] == ["load", "load"]
    assert ages(graph) == {"a": 1}
    settled(graph)


def killed_task(site: Site) -> None:
    """A Python worker is killed in the middle of its task; where Spark tries again, it succeeds."""
    graph = site.graph(person("a", age=1))
    died = str(site.folder / "died")
    some = site.spark.range(0, 6, 1, 3).mapInArrow(killing_once(died), "name string, age int")
    done = succeeded(site, graph, some)
    assert Path(died).exists()
    assert done or not site.retries
    assert ages(graph) == {"a": 1, **({f"n{at}": at for at in range(6)} if done else {})}
    settled(graph)
    site.load(graph, site.file("next.ndjson", person("z")), "append")
    assert "z" in ages(graph)
    settled(graph)


def succeeded(site: Site, graph: Any, frame: Any) -> bool:
    try:
        site.load(graph, {"Person": frame}, "append")
    except ServerError as error:
        if error.effect != "none":
            raise
        return False
    return True


def killing_once(died: str) -> Callable[[Any], Any]:
    """A task that gives its rows, then kills the process it runs in: the first one to come here."""

    def run(batches: Any) -> Any:
        import os
        import signal

        import pyarrow as pa

        for batch in batches:
            numbers = batch.column(0)
            names = [f"n{one}" for one in numbers.to_pylist()]
            yield pa.RecordBatch.from_pydict({"name": names, "age": numbers.cast(pa.int32())})
        try:
            os.close(os.open(died, os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            return
        os.kill(os.getpid(), signal.SIGKILL)

    return run


def intent_finish(site: Site) -> None:
    """The store fails between confirmation and publish: the next opening publishes."""
    graph = site.graph(person("a", age=1))
    file = site.file("i.ndjson", person("b", age=2))
    with unpublished():
        try:
            site.load(graph, file, "append")
        except RecoveryRequired:
            pass
        else:
            raise AssertionError("it was published")
    assert ages(graph) == {"a": 1}
    with overdue():
        omnigraph.open(graph.uri, durability="os")
    assert ages(graph) == {"a": 1, "b": 2}
    assert [one.kind for one in graph.maintenance.operations.recoveries()] == ["finished"]
    settled(graph)


@contextmanager
def unpublished() -> Iterator[None]:
    """What was confirmed is not published."""

    def gone(*_: object) -> None:
        raise StorageError("the store is gone", kind="transient")

    there, long_operations.finish_confirmed = long_operations.finish_confirmed, gone  # type: ignore[assignment]
    try:
        yield
    finally:
        long_operations.finish_confirmed = there


def streaming_batch(site: Site) -> None:
    graph = site.graph(person("a", age=1))
    folder = site.folder / "in"
    folder.mkdir()
    for turn in (1, 2):
        (folder / f"{turn}.json").write_text(f'{{"name":"s{turn}","age":{turn}}}\n')
        rows = site.spark.readStream.schema("name string, age int").json(str(folder))
        query = graph.spark.stream_load(rows, "Person", name="s", checkpoint=site.folder / "point", available_now=True)
        query.awaitTermination(300)
        assert query.exception() is None
        assert not query.isActive
    assert ages(graph) == {"a": 1, "s1": 1, "s2": 2}
    assert operations(graph) == ["load", "load", "load", "init"]
    settled(graph)


CASES: dict[str, Callable[[Site], None]] = {
    one.__name__: one
    for one in (
        append,
        merge,
        overwrite,
        rejects,
        endpoints,
        upsert_keeps_row_ids,
        export,
        branch_read,
        branch_write,
        killed_task,
        intent_finish,
        streaming_batch,
    )
}
