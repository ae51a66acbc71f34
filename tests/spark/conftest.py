"""One Spark session, hence one JVM, for all Spark tests.

In a parallel run all of them are in one process: `tests/rig/xdist_groups.py`.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from omnigraph.spark.session import spark_session
from tests.spark.cluster_rig import SHORT_LIVED

HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.timeout(900))


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    pytest.importorskip("pyspark")
    scratch = tmp_path_factory.mktemp("spark")
    settings = {"spark.local.dir": str(scratch / "local")}
    settings["spark.sql.warehouse.dir"] = str(scratch / "warehouse")
    settings["spark.driver.extraJavaOptions"] = SHORT_LIVED
    session = spark_session(master="local[2]", settings=settings)
    yield session
    session.stop()
