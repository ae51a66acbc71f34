"""Faults that need separate executors: rows land once or not at all, and the next load works.

They run like the twelve cases, in a process of their own against a small cluster.
"""

import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

from omnigraph.errors import ServerError
from omnigraph.spark.load import BulkLoad, load_on_spark
from tests.rig.invariants import files
from tests.spark.cluster_cases import Site, ages, knows, operations, person, settled, succeeded


def raising_task(site: Site) -> None:
    """A task that raises at every attempt: a typed error that says why, and nothing else."""
    graph = site.graph(person("a", age=1))
    tries = site.folder / "tries"

    def broken(batches: Any) -> Any:
        yield from batches
        with tries.open("a") as told:
            told.write("x")
        raise ValueError("no room for this row")

    frame = site.spark.range(2).selectExpr("concat('n', id) name").mapInArrow(broken, "name string")
    try:
        site.load(graph, {"Person": frame}, "append")
    except ServerError as error:
        told = (error.effect, error.message)
    assert told[0] == "none"
    assert "no room for this row" in told[1]
    assert tries.stat().st_size >= 4  # it was tried four times
    goes_on(site, graph, {"a": 1})


def lost_executor(site: Site) -> None:
    """A whole executor is killed while it stages; its tasks run again elsewhere."""
    graph = site.graph(person("a", age=1))
    died = str(site.folder / "died")
    frame = site.spark.range(0, 8, 1, 4).mapInArrow(killing_executor(died), "name string, age int")
    done = succeeded(site, graph, frame)
    assert Path(died).exists()
    assert done
    goes_on(site, graph, {"a": 1, **{f"n{at}": at for at in range(8)}})


def killing_executor(died: str) -> Callable[[Any], Any]:
    """A task that kills the executor it runs on: the first one to come here."""

    def run(batches: Any) -> Any:
        import os
        import signal
        import time
        from pathlib import Path

        import pyarrow as pa

        for batch in batches:
            numbers = batch.column(0)
            names = [f"n{one}" for one in numbers.to_pylist()]
            yield pa.RecordBatch.from_pydict({"name": names, "age": numbers.cast(pa.int32())})
        try:
            os.close(os.open(died, os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            return
        daemon = Path(f"/proc/{os.getppid()}/stat").read_text()
        os.kill(int(daemon.rpartition(")")[2].split()[1]), signal.SIGKILL)
        time.sleep(60)  # until this process ends with its executor

    return run


def executor_pids(spark: Any) -> set[int]:
    """The processes of the executors, asked of tasks on all of them."""

    def ask(batches: Any) -> Any:
        import os
        import time
        from pathlib import Path

        import pyarrow as pa

        for _ in batches:
            daemon = Path(f"/proc/{os.getppid()}/stat").read_text()
            pid = int(daemon.rpartition(")")[2].split()[1])
            time.sleep(0.5)  # so that every executor gets one
            yield pa.RecordBatch.from_pydict({"pid": pa.array([pid], pa.int64())})

    return {row["pid"] for row in spark.range(0, 4, 1, 4).mapInArrow(ask, "pid bigint").collect()}


def lost_between_stages(site: Site) -> None:
    """An executor is killed when everything is staged: what it kept for the checks is gone."""
    graph = site.graph(person("a", age=1))
    killed: list[int] = []

    def told(*stage: Any) -> None:
        if stage and stage[0] == "check" and not killed:
            killed.append(min(executor_pids(site.spark)))
            os.kill(killed[0], signal.SIGKILL)

    people = site.spark.range(0, 8, 1, 4).selectExpr("concat('n', id) name", "cast(id as int) age")
    ties = site.spark.range(0, 8, 1, 4).selectExpr("concat('n', id) `from`", "'a' `to`")
    bulk = BulkLoad("append", frames={"Person": people, "Knows": ties}, on_step=told)
    done = load_on_spark(site.spark, graph._handle.branch_state, bulk)
    assert killed
    assert done.commit is not None
    assert len(list(graph.refresh().export(types=["Knows"]))) == 8
    goes_on(site, graph, {"a": 1, **{f"n{at}": at for at in range(8)}})


def full_disk(site: Site) -> None:
    """One of two workers cannot write files of more than half a megabyte, as if it had no room.

    What it cannot write is written by the other one.
    """
    graph = site.graph(person("a", age=1))
    wide = "concat('n', id, '-', sha2(cast(id as string), 512)) name"
    frame = site.spark.range(0, 40_000, 1, 4).selectExpr(wide, "cast(id as int) age")
    done = succeeded(site, graph, frame)
    assert len(ages(graph)) == (40_001 if done else 1)
    assert done
    written = files(graph._handle.branch_state.store)
    limited = [size for name, size in written.items() if name.endswith(".lance")]
    assert max(limited) > 1 << 19  # more than that worker can write
    assert operations(graph) == ["load", "load", "init"]
    settled(graph)
    site.load(graph, site.file("next.ndjson", person("z")), "append")
    assert len(ages(graph)) == 40_002


def goes_on(site: Site, graph: Any, wanted: dict[str, Any]) -> None:
    """The graph holds this, nothing waits, and the next load works."""
    assert ages(graph) == wanted
    settled(graph)
    site.load(graph, site.file("next.ndjson", person("z"), knows("z", "a")), "append")
    assert set(ages(graph)) == {*wanted, "z"}
    settled(graph)


FAULTS: dict[str, Callable[[Site], None]] = {
    one.__name__: one for one in (raising_task, lost_executor, lost_between_stages, full_disk)
}
