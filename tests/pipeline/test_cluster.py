"""The twelve cases on every kind of Spark: in this process, on two executors, on a cluster with a
master and two workers, and behind Spark Connect.
"""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.pipeline.cluster_cases import CASES, Site
from tests.pipeline.cluster_rig import CHECKOUT, cluster

KINDS = ("local-cluster", "standalone", "connect")


@pytest.mark.parametrize("case", CASES)
def test_local(spark: Any, tmp_path: Path, case: str) -> None:
    CASES[case](Site(spark, tmp_path, retries=False))


@pytest.fixture(scope="module", params=KINDS)
def told(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """How each case went on one kind of Spark; all of them run in one session."""
    folder = tmp_path_factory.mktemp(request.param)
    with cluster(request.param, folder) as made:
        command = [sys.executable, "-m", "tests.pipeline.cluster_run", made.kind, made.master]
        done = subprocess.run(
            [*command, str(folder / "cases")],
            cwd=CHECKOUT,
            env={**os.environ, **made.environment},
            capture_output=True,
            text=True,
            check=False,
        )
    lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    return {one["case"]: one["error"] for one in lines}, done.stderr[-4000:]


@pytest.mark.full
@pytest.mark.timeout(1500)
@pytest.mark.parametrize("case", CASES)
def test_elsewhere(told: Any, case: str) -> None:
    outcomes, noise = told
    assert case in outcomes, noise
    assert outcomes[case] is None, outcomes[case]
