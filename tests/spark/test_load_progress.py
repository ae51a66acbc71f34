"""Progress and final report of a Spark load, and removal of its scratch files."""

from collections import namedtuple
from pathlib import Path
from typing import Any

import pytest

import omnigraph
from omnigraph.errors import ResourceLimitExceeded
from omnigraph.spark import endpoint_lookup
from omnigraph.spark.step_progress import StepProgress, StepTracker

SCHEMA = "node N { k: String @key }\nedge E: N -> N"
NODES = "".join(f'{{"type":"N","data":{{"k":"n{at}"}}}}\n' for at in range(30))
EDGES = "".join(f'{{"edge":"E","from":"n{at}","to":"n{at + 1}"}}\n' for at in range(29))
Usage = namedtuple("Usage", "total used free")


@pytest.fixture
def graph(tmp_path: Path) -> Any:
    (tmp_path / "in.ndjson").write_text(NODES + EDGES)
    (tmp_path / "bad.ndjson").write_text(NODES + EDGES + '{"edge":"E","from":"n1","to":"x"}\n')
    return omnigraph.init(tmp_path / "g", SCHEMA, durability="os")


def left(spark: Any) -> list[Path]:
    place = Path(spark.conf.get("spark.local.dir"))
    return list(place.rglob("omnigraph-*"))


def test_load_reports_steps_and_removes_scratch_files(
    spark: Any, graph: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    built: list[bool] = []
    forget = endpoint_lookup.remove_scratch_folders

    def looked(*given: Any) -> None:
        built.append(bool(left(spark)))
        forget(*given)

    monkeypatch.setattr("omnigraph.spark.load.remove_scratch_folders", looked)
    how: dict[str, Any] = {"engine": "spark", "spark": spark, "mode": "append"}
    found = graph.load(str(tmp_path / "bad.ndjson"), on_error="report", **how)
    assert [(one.line, one.type) for one in found] == [(60, "E")]
    assert list(found.steps) == ["stage", "check"]
    done = graph.load(str(tmp_path / "in.ndjson"), progress=lambda done, total: None, **how)
    assert list(done.steps) == ["stage", "check", "publish"]
    assert all(spent >= 0 for spent in done.steps.values())
    assert (done.nodes, done.edges) == ({"N": 30}, {"E": 29})
    assert done.written > 0
    assert built == [True, True]
    assert left(spark) == []


def test_load_larger_than_the_disk_is_rejected(
    spark: Any, graph: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("shutil.disk_usage", lambda _: Usage(9, 9, 10))
    with pytest.raises(ResourceLimitExceeded, match="only 10 B is free"):
        graph.load(str(tmp_path / "in.ndjson"), mode="append", engine="spark", spark=spark)
    assert len(graph.refresh().log()) == 1
    checked = graph.load(str(tmp_path / "in.ndjson"), mode="append", engine="spark", spark=spark, dry_run=True)
    assert checked.nodes == {"N": 30}


def test_running_steps_report_progress(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("omnigraph.spark.step_progress.running_tasks", lambda _: (1, 4))
    monkeypatch.setattr("omnigraph.spark.step_progress._POLL_SECONDS", 0.001)
    told: list[StepProgress] = []
    steps = StepTracker(None, told.append)  # type: ignore[arg-type]
    with steps.report_progress():
        steps.begin("stage", 100)
        while not told:
            pass
        steps.end()
    assert (told[0].name, told[0].done, told[0].total, told[0].rows) == ("stage", 1, 4, 100)
    assert list(steps.seconds) == ["stage"]
