"""The twelve cases on every Spark deployment: local, two executors, cluster, Spark Connect."""

import json
import os
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from omnigraph.ingest.input_files import open_input_file
from omnigraph.ingest.input_parts import find_input_files
from tests.spark.cluster_cases import CASES, Site
from tests.spark.cluster_rig import CHECKOUT, cluster

KINDS = ("local-cluster", "standalone", "connect")


@pytest.mark.parametrize("case", CASES)
def test_cluster_cases_pass_in_local_mode(spark: Any, tmp_path: Path, case: str) -> None:
    CASES[case](Site(spark, tmp_path, retries=False))


def test_relative_input_is_found_from_another_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Executors have folders of their own."""
    (tmp_path / "in.ndjson").write_text("{}\n")
    monkeypatch.chdir(tmp_path)
    (one,) = find_input_files("in.ndjson")
    monkeypatch.chdir("/")
    assert one.path == "in.ndjson"
    with open_input_file(pickle.loads(pickle.dumps(one))) as file:
        assert file.read() == b"{}\n"


def outcomes(kind: str, folder: Path, *cases: str) -> tuple[dict[str, str | None], str]:
    """How each case went on one kind of Spark, all of them in one session; and what it printed."""
    with cluster(kind, folder) as made:
        command = [sys.executable, "-m", "tests.spark.cluster_run", made.kind, made.master]
        done = subprocess.run(
            [*command, str(folder / "cases"), *cases],
            cwd=CHECKOUT,
            env={**os.environ, **made.environment},
            capture_output=True,
            text=True,
            check=False,
        )
    lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    return {one["case"]: one["error"] for one in lines}, done.stderr[-4000:]


@pytest.fixture(scope="module", params=KINDS)
def told(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Any:
    return outcomes(request.param, tmp_path_factory.mktemp(request.param))


@pytest.mark.full
@pytest.mark.timeout(1500)
@pytest.mark.parametrize("case", CASES)
def test_cluster_cases_pass_on_other_spark_deployments(told: Any, case: str) -> None:
    found, noise = told
    assert case in found, noise
    assert found[case] is None, found[case]


@pytest.mark.full
@pytest.mark.timeout(1500)
def test_failed_tasks_and_lost_executors_leave_rows_once_or_not_at_all(tmp_path: Path) -> None:
    names = ("raising_task", "lost_executor", "lost_between_stages")
    found, noise = outcomes("local-cluster", tmp_path, *names)
    assert found == dict.fromkeys(names), noise


@pytest.mark.full
@pytest.mark.timeout(1500)
def test_worker_with_a_full_disk_fails_the_load(tmp_path: Path) -> None:
    found, noise = outcomes("limited", tmp_path, "full_disk")
    assert found == {"full_disk": None}, noise
