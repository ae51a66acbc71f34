"""The Spark how-to pages run as written; the cluster page on a cluster."""

import sys
from pathlib import Path

import pytest

from tests.contract.page_examples import run_page
from tests.spark.cluster_rig import standalone

BINARIES = Path(sys.executable).parent


@pytest.mark.full
@pytest.mark.timeout(900)
@pytest.mark.parametrize("page", ["spark-read", "spark-stream", "spark-rejects"])
def test_how_to_page_runs_as_written(checkout: Path, tmp_path: Path, page: str) -> None:
    assert run_page((checkout / f"docs/how-to/{page}.md").read_text(), BINARIES, tmp_path) >= 1


@pytest.mark.full
@pytest.mark.timeout(900)
def test_cluster_how_to_page_runs_on_a_cluster(checkout: Path, tmp_path: Path) -> None:
    page = (checkout / "docs/how-to/spark-load.md").read_text()
    (tmp_path / "here").mkdir()
    with standalone(tmp_path) as made:
        address = {"SPARK_MASTER": made.master, "SPARK_LOCAL_IP": "127.0.0.1"}
        assert run_page(page, BINARIES, tmp_path / "here", address) == 5
