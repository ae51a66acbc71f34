"""Streaming loads, in which each batch is one commit that records the stream, its query and the batch number.

A driver that crashes between the publish and the checkpoint starts again with the same batch. The branch's manifest
records that the batch was published, so no batch is loaded twice, whatever other writers do. Batches may run in a
different process from the caller's, so they must use only data that can be serialized.
"""

import json
import os
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from omnigraph.errors import InputError
from omnigraph.history.branch_state import BranchState
from omnigraph.history.branches import open_branch
from omnigraph.ingest.load import LoadMode, LoadOutcome
from omnigraph.ingest.rejects import write_rejects
from omnigraph.publish.recover import install_recovery_hook
from omnigraph.publish.write_plan import CommitMetadata
from omnigraph.values.name_rules import check_new_stream_name, require_text

from .load import BulkLoad, load_on_spark
from .pinned_graph import PinnedGraph, pin_graph

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.query import StreamingQuery


@dataclass(frozen=True, slots=True)
class StreamLoad:
    """A stream into one type on a branch, in a form that can be sent to the process that loads the batches.

    `query_id` identifies the Spark query that feeds the stream, and stays the same as long as the checkpoint exists.
    """

    pinned_graph: PinnedGraph
    branch_name: str
    type_name: str
    mode: LoadMode
    stream_name: str
    commit_metadata: CommitMetadata
    rejects_folder: str | None = None
    query_id: str = ""

    def open_branch(self) -> BranchState:
        """Open the branch for writing."""
        branch_state = open_branch(self.pinned_graph.store(), self.branch_name)
        install_recovery_hook(branch_state)
        return branch_state


def stream_load(  # noqa: PLR0913 - all but three are keyword-only
    branch_state: BranchState,
    frame: "DataFrame",
    type_name: str,
    *,
    mode: LoadMode = "append",
    name: str,
    checkpoint: str | os.PathLike[str],
    commit_metadata: CommitMetadata | None = None,
    rejects: str | os.PathLike[str] | None = None,
    available_now: bool = False,
) -> "StreamingQuery":
    """Start a query that loads every batch from a streaming DataFrame, and return the query.

    `name` is the stream's name; two streams into one branch need different names. A batch with rejected records stops
    the stream.
    """
    require_text(type_name, "type")
    _check_stream_name(branch_state, name)
    if not getattr(frame, "isStreaming", False):
        raise InputError(
            "this DataFrame is not a stream",
            reason="not streaming",
            hint="create the DataFrame with spark.readStream, or use graph.load for a bounded DataFrame",
        )
    rejects_folder = None if rejects is None else os.fspath(rejects)
    metadata = commit_metadata or CommitMetadata()
    pinned_graph = pin_graph(branch_state.store, {})
    stream = StreamLoad(pinned_graph, branch_state.name, type_name, mode, name, metadata, rejects_folder)
    stream_writer = frame.writeStream.foreachBatch(_make_batch_loader(stream, os.fspath(checkpoint)))
    stream_writer = stream_writer.option("checkpointLocation", os.fspath(checkpoint))
    if available_now:
        stream_writer = stream_writer.trigger(availableNow=True)
    return stream_writer.start()


def _check_stream_name(branch_state: BranchState, name: str) -> None:
    """Check a stream's name if the stream is new to the branch."""
    if require_text(name, "stream") not in branch_state.last_known().state.streams:
        check_new_stream_name(name)


def _make_batch_loader(stream: StreamLoad, checkpoint: str) -> Any:
    query_ids: list[str] = []  # contains the query id once the first batch has started

    def land(batch: "DataFrame", batch_number: int) -> None:
        if not query_ids:
            query_ids.append(read_query_id(batch, checkpoint))
        load_batch(replace(stream, query_id=query_ids[0]), batch, batch_number)

    return land


def read_query_id(batch: "DataFrame", checkpoint: str) -> str:
    """Return the query id that is stored in a checkpoint.

    Spark reads the file, so any location that Spark supports will work.
    """
    (row,) = batch.sparkSession.read.text(f"{checkpoint}/metadata").collect()
    return str(json.loads(row[0])["id"])


def load_batch(stream: StreamLoad, batch: "DataFrame", batch_number: int) -> LoadOutcome | None:
    """Load one batch, or return None if the branch already contains it."""
    branch_state = stream.open_branch()
    if is_batch_loaded(branch_state, stream, batch_number):
        return None
    batch_token = f"{stream.query_id}:{batch_number}"
    idempotency_key = f"stream:{stream.stream_name}:{batch_token}"
    metadata = replace(stream.commit_metadata, idempotency_key=idempotency_key, request_hash=idempotency_key)
    batch_folder = None
    if stream.rejects_folder is not None:
        # The folder may be a URI, which `Path` would modify.
        batch_folder = os.path.join(stream.rejects_folder, f"batch-{batch_number}")  # noqa: PTH118
    streams = {stream.stream_name: batch_token}
    bulk_load = BulkLoad(stream.mode, frames={stream.type_name: batch}, streams=streams, rejects=batch_folder)
    loaded = load_on_spark(batch.sparkSession, branch_state, bulk_load, commit_metadata=metadata)
    if loaded.problems:
        if batch_folder is not None and not loaded.reject_files:
            write_rejects(batch_folder, loaded.problems)
        raise loaded.problems[0].error
    return loaded


def is_batch_loaded(branch_state: BranchState, stream: StreamLoad, batch_number: int) -> bool:
    """Return whether the branch already contains this batch or a later batch from the stream.

    Raises `InputError` if a different query has fed the stream before. Different queries use the same batch numbers, so
    skipping a batch could lose rows, and loading it could duplicate rows.
    """
    last_token: Any = branch_state.refresh().state.streams.get(stream.stream_name)
    if last_token is None:
        return False
    last_query, _, last_number = last_token.rpartition(":")
    if last_query != stream.query_id:
        raise InputError(
            f"cannot continue the stream '{stream.stream_name}' into {stream.branch_name} from a different checkpoint",
            reason="another query",
            hint="continue from the stream's own checkpoint, or use a different stream name",
        )
    return int(last_number) >= batch_number
