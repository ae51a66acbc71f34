"""`graph.spark`: the graph as Spark DataFrames, and loads from Spark streams.

Spark is imported only when a method is called.
"""

from os import PathLike
from typing import TYPE_CHECKING, Any

from omnigraph.api.facet import Facet
from omnigraph.ingest.load import LoadMode
from omnigraph.publish.write_plan import CommitMetadata

if TYPE_CHECKING:
    from omnigraph.spark.snapshot_frames import SparkGraph


class Spark(Facet):
    """Access to the graph from Spark. For example, `graph.spark.frames(session).nodes("Paper")` is a DataFrame."""

    __slots__ = ()

    def frames(self, session: Any = None, *, master: str | None = None, remote: str | None = None) -> "SparkGraph":
        """Return the newest snapshot for use in Spark, with each node and edge type as a DataFrame.

        If no session is passed, the active session is used, or a local session is started. If `master` or `remote`
        is given, a session is started at that address instead.
        """
        from omnigraph.spark.session import spark_session
        from omnigraph.spark.snapshot_frames import SparkGraph

        if session is None:
            session = spark_session(master=master, remote=remote)
        return SparkGraph(session, self._handle.latest_snapshot(), self._handle.branch_state)

    def stream_load(  # noqa: PLR0913 - all but two are keywords
        self,
        frame: Any,
        type_name: str,
        *,
        name: str,
        checkpoint: str | PathLike[str],
        mode: LoadMode = "append",
        branch: str | None = None,
        rejects: str | PathLike[str] | None = None,
        available_now: bool = False,
    ) -> Any:
        """Load each batch of a streaming DataFrame exactly once, and return the streaming query.

        `name` identifies the stream, and `checkpoint` is the folder in which Spark records its progress. If
        `available_now` is true, the query stops when all available data has been loaded.
        """
        from omnigraph.spark.stream import stream_load

        handle = self._handle.for_branch(branch)
        handle.require_writable("streaming")
        return stream_load(
            handle.branch_state,
            frame,
            type_name,
            mode=mode,
            name=name,
            checkpoint=checkpoint,
            commit_metadata=CommitMetadata(self._handle.actor),
            rejects=rejects,
            available_now=available_now,
        )
