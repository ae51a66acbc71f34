"""Graphs and inputs on S3: tasks get the settings, and credentials are never shown."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow.fs import FileSelector

import omnigraph
from omnigraph.ingest.input_files import s3_file_system
from omnigraph.spark import rejected_records
from omnigraph.storage import layout
from omnigraph.storage.root import s3_options
from omnigraph.storage.store import open_store
from tests.crash.verbs import overdue
from tests.rig.invariants import check_invariants, files
from tests.rig.plugin import S3
from tests.spark.cluster_cases import SCHEMA, ages, knows, person
from tests.spark.cluster_rig import CHECKOUT, environment


def put(url: str, name: str, data: bytes) -> None:
    with s3_file_system(s3_options(os.environ)).open_output_stream(f"{url.removeprefix('s3://')}/{name}") as file:
        file.write(data)


def fill(url: str) -> None:
    """Six people in two files of NDJSON, and two more in a file of Parquet."""
    for at in (0, 1):
        some = [person(f"p{number}", age=number) for number in range(3 * at, 3 * at + 3)]
        put(url, f"in/{at}.ndjson", "".join(f"{json.dumps(one)}\n" for one in some).encode())
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table({"name": ["q0", "q1"], "age": pa.array([1, 2], pa.int32())}), sink)
    put(url, "in/Person/part-0.parquet", sink.getvalue().to_pybytes())


@pytest.mark.full
def test_inputs_roots_and_exports_work_on_s3(spark: Any, s3: S3, tmp_path: Path) -> None:
    """The processes of Spark were started without any `AWS_*` variable."""
    fill(s3.url)
    graph: Any = omnigraph.init(f"{s3.url}/g", SCHEMA)
    done = graph.load(f"{s3.url}/in/*.ndjson", mode="append", engine="spark", spark=spark)
    assert done.nodes == {"Person": 6}
    folder = {"Person": f"{s3.url}/in/Person"}
    graph.load(folder, mode="append", engine="spark", spark=spark)
    put(s3.url, "bad/1.ndjson", json.dumps(knows("p0", "nobody")).encode())
    found = graph.load(f"{s3.url}/bad", mode="append", engine="spark", spark=spark, on_error="report")
    assert [(one.file, one.line) for one in found] == [(f"{s3.url}/bad/1.ndjson", 1)]
    assert len(ages(graph)) == 8
    graph.load({"Person": spark.sql("select 'p1' name, 99 age")}, mode="merge", spark=spark)
    assert graph.refresh().spark.frames(spark).nodes("Person").where("age = 99").count() == 1
    graph.spark.frames(spark).export(f"{s3.url}/out", ordered=True)
    copy = omnigraph.init(tmp_path / "copy", SCHEMA, durability="os")
    copy.load(f"{s3.url}/out", mode="append", engine="spark", spark=spark)
    assert ages(copy) == ages(graph)
    check_invariants(graph.uri)


def test_rejects_are_written_to_s3(s3: S3, tmp_path: Path) -> None:
    graph: Any = omnigraph.init(tmp_path / "g", SCHEMA, durability="os")
    file = tmp_path / "bad.ndjson"
    file.write_text(json.dumps(person("ann", age="old")))
    folder = f"{s3.url}/rejects"
    found = graph.load(file, mode="append", engine="local", on_error="report", rejects=folder)
    assert len(found) == 1
    system, name = s3_file_system(s3_options(os.environ)), folder.removeprefix("s3://")
    table = pq.read_table(f"{name}/rejects.parquet", filesystem=system)
    assert table.column("file").to_pylist() == [str(file)]
    with system.open_input_stream(f"{name}/rejects.ndjson") as lines:
        assert json.loads(lines.read())["id"] == "ann"
    assert not Path("s3:").exists()


@pytest.mark.full
def test_tasks_write_rejects_to_s3(spark: Any, s3: S3, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rejected_records, "MAX_COLLECTED", 2)
    graph: Any = omnigraph.init(tmp_path / "g", SCHEMA, durability="os")
    file = tmp_path / "bad.ndjson"
    file.write_text("".join(f"{json.dumps(person(f'p{at}', age='old'))}\n" for at in range(9)))
    folder = f"{s3.url}/rejects"
    put(folder, "rejects.ndjson", b"of an earlier load")
    found = graph.load(str(file), mode="append", engine="spark", spark=spark, on_error="report", rejects=folder)
    assert (len(found), found.left_out, len(found.reject_files)) == (2, 7, 1)
    system, name = s3_file_system(s3_options(os.environ)), folder.removeprefix("s3://")
    files = system.get_file_info(FileSelector(name))
    assert sorted(entry.base_name for entry in files) == [
        f"{found.reject_files[0]}.{suffix}" for suffix in ("ndjson", "parquet")
    ]
    table = pq.read_table(f"{name}/{found.reject_files[0]}.parquet", filesystem=system)
    assert table.column("line").to_pylist() == list(range(1, 10))


@pytest.mark.full
@pytest.mark.timeout(900)
def test_credentials_never_appear_in_plans_or_logs(s3: S3, tmp_path: Path) -> None:
    fill(s3.url)
    done = subprocess.run(
        [sys.executable, "-m", "tests.spark.s3_driver", s3.url, str(tmp_path)],
        cwd=CHECKOUT,
        env={**os.environ, **environment(), "SPARK_WORKER_DIR": str(tmp_path / "work")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    assert "held 9" in done.stdout
    assert "MapInArrow" in done.stdout
    secrets = [s3.server.secret.encode(), s3.server.key.encode()]
    told = done.stdout.encode() + done.stderr.encode()
    assert not any(secret in told for secret in secrets)
    events = [one for one in (tmp_path / "events").rglob("*") if one.is_file()]
    assert b"MapInArrow" in b"".join(one.read_bytes() for one in events)
    for one in tmp_path.rglob("*"):
        if one.is_file():
            assert not any(secret in one.read_bytes() for secret in secrets), one
    _nothing_stored(f"{s3.url}/g", secrets)
    with overdue():
        assert len(ages(omnigraph.open(f"{s3.url}/g"))) == 10


def _nothing_stored(url: str, secrets: list[bytes]) -> None:
    """No object of a graph holds a secret; the intent that was left is among them."""
    store = open_store(url)
    names = sorted(files(store))
    assert any(name.startswith(layout.INTENTS) and "confirmed" in name for name in names)
    for name in names:
        data = store.objects.read(name) or b""
        assert not any(secret in data for secret in secrets), name
