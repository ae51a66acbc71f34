"""A stream into a graph: each batch is one commit that names the stream, its query and the batch.

A driver that dies between the publish and the checkpoint starts again with the same batch; the
state of the branch knows that it was published, and nothing is loaded twice. Other writers do not
matter. Batches may run in another process than the caller's: nothing of his is used there but what
can be sent.
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
    """A stream into one type of a branch, as whoever runs its batches needs it.

    `query` is the query of Spark that feeds it: the same as long as its checkpoint is.
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
        """The branch, opened for writing."""
        line = open_line(self.place.store(), self.branch)
        attend(line)
        return line


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
    require_text(type_name, "type")
    _check_name(line, name)
    if not getattr(frame, "isStreaming", False):
        raise InputError(
            "this DataFrame is not a stream",
            reason="not streaming",
            hint="make it with spark.readStream; a DataFrame that ends is loaded by graph.load",
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
    """Judge the name of a stream that the branch does not know yet."""
    if require_text(name, "stream") not in line.base().state.streams:
        check_new_stream(name)


def _landing(stream: Stream, checkpoint: str) -> Any:
    known: list[str] = []  # the query, which has no name before its first batch

    def land(batch: "DataFrame", number: int) -> None:
        if not known:
            known.append(query_of(batch, checkpoint))
        land_batch(replace(stream, query=known[0]), batch, number)

    return land


def query_of(batch: "DataFrame", checkpoint: str) -> str:
    """The query that a checkpoint belongs to; Spark reads it, wherever the checkpoint is."""
    (row,) = batch.sparkSession.read.text(f"{checkpoint}/metadata").collect()
    return str(json.loads(row[0])["id"])


def land_batch(stream: Stream, batch: "DataFrame", number: int) -> Loaded | None:
    """Load one batch, unless the branch has it; None then."""
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
    """Whether a batch of a stream, or a later one, is part of the branch.

    Batches of another query are told apart from those of this one by nothing but their query:
    its stream is refused, since skipping them would lose rows, and loading them might double some.
    """
    last: Any = line.refresh().state.streams.get(stream.name)
    if last is None:
        return False
    query, _, landed = last.rpartition(":")
    if query != stream.query:
        raise InputError(
            f"the stream '{stream.name}' into {stream.branch} was fed from another checkpoint",
            reason="another query",
            hint="go on with that checkpoint, or give the stream another name",
        )
    return int(landed) >= number
