"""A killed driver: confirmed work lands once, unconfirmed work never."""

import json
import os
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import omnigraph
from tests.crash.verbs import overdue
from tests.spark.cluster_cases import SCHEMA, ages, knows, operations, person, settled
from tests.spark.killed_driver import stream


def killed(verb: str, graph: Any, data: Path, seam: str, nth: int = 1) -> None:
    """Run a driver that dies at a seam."""
    words = [verb, graph.uri, str(data), seam, str(nth)]
    done = subprocess.run(
        [sys.executable, "-m", "tests.spark.killed_driver", *words], capture_output=True, text=True, check=False
    )
    assert done.returncode == -signal.SIGKILL, done.stderr[-2000:]


@pytest.fixture
def graph(tmp_path: Path) -> Any:
    made = omnigraph.init(tmp_path / "g", SCHEMA, durability="os")
    made.load([person("old", age=1)], mode="append")
    return made


@pytest.mark.full
@pytest.mark.parametrize(
    ("seam", "lands"),
    [("armed", False), ("unconfirmed", False), ("confirmed", True), ("decided", True), ("published", True)],
)
def test_load_of_a_killed_driver_lands_once_or_not_at_all(
    spark: Any, graph: Any, tmp_path: Path, seam: str, lands: bool
) -> None:
    records = [*(person(f"p{at}", age=at) for at in range(20)), knows("p1", "old")]
    data = tmp_path / "in.ndjson"
    data.write_text("".join(f"{json.dumps(one)}\n" for one in records))
    killed("load", graph, data, seam)
    before = ages(graph)
    assert len(before) == (21 if seam == "published" else 1)
    with overdue():
        omnigraph.open(graph.uri, durability="os")
    assert len(ages(graph)) == (21 if lands else 1)
    assert len(list(graph.export(types=["Knows"]))) == (1 if lands else 0)
    assert operations(graph) == ["load"] * (2 if lands else 1) + ["init"]
    settled(graph)
    graph.load({"Person": spark.sql("select 'next' name")}, mode="append", spark=spark)
    assert "next" in ages(graph)
    if not lands:
        graph.load(str(data), mode="append", engine="spark", spark=spark)
        assert len(ages(graph)) == 22
    settled(graph)


@pytest.mark.full
@pytest.mark.parametrize("seam", ["confirmed", "published"])
def test_stream_of_a_killed_driver_lands_each_batch_once(spark: Any, graph: Any, tmp_path: Path, seam: str) -> None:
    """Between publish and checkpoint, or between confirmation and publish, at the second batch.

    Another writer goes on, the stream is taken up before anybody has settled what it left.
    """
    folder = tmp_path / "in"
    folder.mkdir()
    for at in range(3):
        file = folder / f"{at}.json"
        file.write_text(f'{{"name":"s{at}","age":{at}}}\n')
        os.utime(file, (1_000_000_000 + at,) * 2)  # a stream takes the oldest file first
    killed("stream", graph, folder, seam, 2)
    landed = {"s0", "s1"} if seam == "published" else {"s0"}
    assert set(ages(graph)) == {"old", *landed}
    graph.load([person("other")], mode="append")
    graph.mutate('update Person set { age: 9 } where name = "old"')
    again = stream(graph, spark, str(folder))
    assert again.exception() is None
    wanted = {"old": 9, "other": None, "s0": 0, "s1": 1, "s2": 2}
    assert ages(graph) == wanted
    with overdue():
        omnigraph.open(graph.uri, durability="os")
    assert ages(graph) == wanted
    done = Counter(one for one in operations(graph) if one != "refused")
    assert done == {"init": 1, "load": 5, "mutate": 1}
    settled(graph)
    (folder / "4.json").write_text('{"name":"s4","age":4}\n')
    stream(graph, spark, str(folder))
    assert ages(graph) == {**wanted, "s4": 4}
    settled(graph)
