"""Every Spark operation on a graph on S3, recorded in the Spark event log as well.

`python -m tests.spark.s3_driver URL FOLDER` prints the plans that a user could print, and leaves
an intent behind: what is looked for in all of it are credentials.
"""

import json
import sys
from pathlib import Path
from typing import Any

import omnigraph
from omnigraph.errors import RecoveryRequired
from omnigraph.spark import source
from omnigraph.spark.session import spark_session
from tests.spark.cluster_cases import SCHEMA, ages, person, unpublished
from tests.spark.cluster_rig import SHORT_LIVED


def session(folder: Path) -> Any:
    (folder / "events").mkdir()
    settings = {
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": (folder / "events").as_uri(),
        "spark.eventLog.compress": "false",
        "spark.local.dir": str(folder / "local"),
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        "spark.driver.extraJavaOptions": SHORT_LIVED,
        "spark.executor.extraJavaOptions": SHORT_LIVED,
    }
    return spark_session(master="local-cluster[2,1,1024]", settings=settings)


def explained(frame: Any) -> str:
    return str(frame._jdf.queryExecution().toString()) + repr(frame) + repr(frame.schema)


def main(url: str, folder: Path) -> None:
    """Load, read, write, export; then stop before a publish."""
    spark = session(folder)
    graph: Any = omnigraph.init(f"{url}/g", SCHEMA)
    done = graph.load(f"{url}/in/*.ndjson", mode="append", engine="spark", spark=spark)
    assert done.nodes == {"Person": 6}, done
    graph.load({"Person": f"{url}/in/Person"}, mode="merge", engine="spark", spark=spark)
    shown = graph.refresh().spark.frames(spark).nodes("Person")
    source.register(spark)
    reader = spark.read.format("omnigraph").option("graph", graph.uri)
    by_name = reader.options(type="Person", columns="name,age").load()
    assert shown.count() == by_name.count() == 8
    print(explained(shown), explained(by_name), repr(graph), repr(graph.spark.frames(spark)))
    more = spark.sql("select 'w' name, 1 age")
    more.write.format("omnigraph").mode("append").option("graph", graph.uri).option("type", "Person").save()
    exported = graph.refresh().spark.frames(spark).export(f"{url}/out", "parquet")
    assert exported.rows["node:Person"] == 9
    last = folder / "last.ndjson"
    last.write_text(json.dumps(person("last")))
    with unpublished():
        try:
            graph.load(str(last), mode="append", engine="spark", spark=spark)
        except RecoveryRequired as error:
            print(repr(error), error, error.details)
    print(f"held {len(ages(graph))}")
    spark.stop()


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
