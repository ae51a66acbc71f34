"""A stream into a graph: each batch is one commit that names the stream and the batch.

A driver that dies between the publish and the checkpoint starts again with the same batch; the
state of the branch knows that it was published, and nothing is loaded twice. Other writers do not
matter.
"""

import os
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from omnigraph.errors import InputError
from omnigraph.history.line import Line
from omnigraph.history.plan import Signature
from omnigraph.ingest.load import Loaded, LoadMode

from .load import Bulk, load_on_spark
from .rejects import write_rejects

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery


def stream_load(  # noqa: PLR0913 - all but three are named
    line: Line,
    frame: "DataFrame",
    type_name: str,
    *,
    mode: LoadMode = "append",
    name: str,
    checkpoint: str | os.PathLike[str],
    signature: Signature | None = None,
    rejects: str | os.PathLike[str] | None = None,
    available_now: bool = False,
) -> "StreamingQuery":
    """Load every batch of a streaming DataFrame; gives the query, which Spark runs.

    `name` is the stream: two streams into one branch need two. A batch with rejects stops it.
    """
    if not name.strip():
        raise InputError("a stream needs a name", reason="empty name")

    def land(batch: "DataFrame", number: int) -> None:
        land_batch(
            line,
            batch,
            number,
            type_name,
            mode=mode,
            name=name,
            signature=signature,
            rejects=rejects,
        )

    writer = frame.writeStream.foreachBatch(land)
    writer = writer.option("checkpointLocation", os.fspath(checkpoint))
    if available_now:
        writer = writer.trigger(availableNow=True)
    return writer.start()


def land_batch(  # noqa: PLR0913 - one call, from one place
    line: Line,
    batch: "DataFrame",
    number: int,
    type_name: str,
    *,
    mode: LoadMode,
    name: str,
    signature: Signature | None = None,
    rejects: str | os.PathLike[str] | None = None,
) -> Loaded | None:
    """Load one batch, unless the branch has it; None then."""
    if is_landed(line, name, number):
        return None
    key = f"stream:{name}:{number}"
    signed = replace(signature or Signature(), key=key, request=key)
    bulk = Bulk(mode, frames={type_name: batch}, streams={name: str(number)})
    session: SparkSession = batch.sparkSession
    done = load_on_spark(session, line, bulk, signature=signed)
    if done.problems:
        if rejects is not None:
            write_rejects(os.path.join(rejects, f"batch-{number}"), done.problems)  # noqa: PTH118
        raise done.problems[0].error
    return done


def is_landed(line: Line, name: str, number: int) -> bool:
    """Whether a batch of a stream, or a later one, is part of the branch."""
    last: Any = line.refresh().state.streams.get(name)
    return last is not None and int(last) >= number
