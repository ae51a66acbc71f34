"""Streaming loads: each batch is one commit that names the stream, its query and the batch.

A driver that crashes between the publish and the checkpoint starts again with the same batch; the
branch's manifest records that it was published, so nothing is loaded twice, whatever other writers
do. Batches may run in another process than the caller's: they must use only what can be shipped.
"""

import json
import os
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from omnigraph.errors import InputError
from omnigraph.history.branches import open_line
from omnigraph.history.line import Line
from omnigraph.history.plan import Signature
from omnigraph.history.recover import attend
from omnigraph.ingest.load import Loaded, LoadMode
from omnigraph.naming import check_new_stream, require_text

from .load import Bulk, load_on_spark
from .place import Place, place_of
from .rejects import write_rejects

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.query import StreamingQuery


@dataclass(frozen=True, slots=True)
class Stream:
    """A stream into one type of a branch, as the process that runs its batches needs it.

    `query_id` identifies the Spark query that feeds it: it lasts as long as its checkpoint.
    """

    place: Place
    branch: str
    type_name: str
    mode: LoadMode
    name: str
    signature: Signature
    rejects: str | None = None
    query: str = ""

    def line(self) -> Line:
        """Open the branch for writing."""
        line = open_line(self.place.store(), self.branch)
        attend(line)
        return line


def stream_load(  # noqa: PLR0913 - all but three are keyword-only
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
    """Load every batch of a streaming DataFrame; return the query, which Spark runs.

    `name` is the name of the stream: two streams into one branch need two names. A batch with
    rejects stops the stream.
    """
    require_text(type_name, "type")
    _check_name(line, name)
    if not getattr(frame, "isStreaming", False):
        raise InputError(
            "this DataFrame is not a stream",
            reason="not streaming",
            hint="create it with spark.readStream; load a bounded DataFrame with graph.load",
        )
    folder = None if rejects is None else os.fspath(rejects)
    signed = signature or Signature()
    place = place_of(line.store, {})
    stream = Stream(place, line.name, type_name, mode, name, signed, folder)
    writer = frame.writeStream.foreachBatch(_landing(stream, os.fspath(checkpoint)))
    writer = writer.option("checkpointLocation", os.fspath(checkpoint))
    if available_now:
        writer = writer.trigger(availableNow=True)
    return writer.start()


def _check_name(line: Line, name: str) -> None:
    """Check the name of a stream that the branch does not have yet."""
    if require_text(name, "stream") not in line.base().state.streams:
        check_new_stream(name)


def _landing(stream: Stream, checkpoint: str) -> Any:
    known: list[str] = []  # the query id, which can be read from the first batch on

    def land(batch: "DataFrame", number: int) -> None:
        if not known:
            known.append(query_of(batch, checkpoint))
        land_batch(replace(stream, query=known[0]), batch, number)

    return land


def query_of(batch: "DataFrame", checkpoint: str) -> str:
    """Return the id of the query of a checkpoint; Spark reads it, wherever the checkpoint is."""
    (row,) = batch.sparkSession.read.text(f"{checkpoint}/metadata").collect()
    return str(json.loads(row[0])["id"])


def land_batch(stream: Stream, batch: "DataFrame", number: int) -> Loaded | None:
    """Load one batch; None if the branch already has it."""
    line = stream.line()
    if is_landed(line, stream, number):
        return None
    token = f"{stream.query}:{number}"
    key = f"stream:{stream.name}:{token}"
    signed = replace(stream.signature, key=key, request=key)
    bulk = Bulk(stream.mode, frames={stream.type_name: batch}, streams={stream.name: token})
    done = load_on_spark(batch.sparkSession, line, bulk, signature=signed)
    if done.problems:
        if stream.rejects is not None:
            write_rejects(os.path.join(stream.rejects, f"batch-{number}"), done.problems)  # noqa: PTH118
        raise done.problems[0].error
    return done


def is_landed(line: Line, stream: Stream, number: int) -> bool:
    """Whether a batch of a stream, or a later one, is already in the branch.

    Raises `InputError` if another query fed the stream: only the query id tells its batches from
    those of this one, so skipping them could lose rows and loading them could duplicate rows.
    """
    last: Any = line.refresh().state.streams.get(stream.name)
    if last is None:
        return False
    query, _, landed = last.rpartition(":")
    if query != stream.query:
        raise InputError(
            f"the stream '{stream.name}' into {stream.branch} was fed from another checkpoint",
            reason="another query",
            hint="continue with that checkpoint, or use another stream name",
        )
    return int(landed) >= number
