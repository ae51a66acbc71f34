"""A driver that is killed: `python -m tests.spark.killed_driver VERB ROOT DATA SEAM NTH`.

It loads, or streams, and kills itself with SIGKILL at the n-th durable effect of a kind, as a
machine that goes off would end it.
"""

import os
import signal
import sys
from collections.abc import Callable
from typing import Any

import omnigraph
from omnigraph.spark.session import spark_session
from omnigraph.storage import layout
from omnigraph.storage.effects import Effects
from tests.spark.cluster_rig import SHORT_LIVED

Seam = tuple[Callable[[str, str], bool], bool]  # which effect, and whether it is done first


def part_of_intent(part: str) -> Callable[[str, str], bool]:
    def is_it(kind: str, target: str) -> bool:
        return kind == "object" and target.startswith(layout.INTENTS) and target.endswith(part)

    return is_it


def publishing(kind: str, _: str) -> bool:
    return kind == "publish"


SEAMS: dict[str, Seam] = {
    "armed": (part_of_intent(".json"), True),
    "unconfirmed": (part_of_intent(".confirmed"), False),
    "confirmed": (part_of_intent(".confirmed"), True),
    "decided": (part_of_intent(".verdict"), True),
    "published": (publishing, True),
}


def die_at(name: str, nth: int) -> None:
    """End this process at a seam."""
    is_it, done_first = SEAMS[name]
    run, seen = Effects.run, [0]

    def watched(self: Effects, kind: Any, target: str, action: Callable[[], Any]) -> Any:
        last = False
        if is_it(kind, target):
            seen[0] += 1
            last = seen[0] == nth
        if last and not done_first:
            os.kill(os.getpid(), signal.SIGKILL)
        result = run(self, kind, target, action)
        if last:
            os.kill(os.getpid(), signal.SIGKILL)
        return result

    Effects.run = watched  # type: ignore[method-assign]


def stream(graph: Any, spark: Any, folder: str, **how: Any) -> Any:
    """A file a batch, until all that is there has landed."""
    reader = spark.readStream.schema("name string, age int").option("maxFilesPerTrigger", 1)
    query = graph.spark.stream_load(
        reader.json(folder), "Person", name="s", checkpoint=f"{folder}.point", available_now=True
    )
    query.awaitTermination(300)
    return query


def main(verb: str, root: str, data: str, seam: str, nth: int) -> None:
    """Do it, and do not come back."""
    settings = {"spark.driver.extraJavaOptions": SHORT_LIVED}
    spark = spark_session(master="local[2]", settings=settings)
    graph = omnigraph.open(root, durability="os")
    die_at(seam, nth)
    if verb == "load":
        graph.load(data, mode="append", engine="spark", spark=spark)
    else:
        stream(graph, spark, data)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3], sys.argv[4], int(sys.argv[5]))
