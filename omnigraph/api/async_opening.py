"""`omnigraph.aopen`: open a graph for an asynchronous program, without blocking its event loop."""

from omnigraph.api import opening
from omnigraph.api.async_graph import AsyncGraph
from omnigraph.api.opening import ExternalBlobs, Location, StorageOptions
from omnigraph.api.threads import run
from omnigraph.storage.layout import MAIN
from omnigraph.storage.store import Durability


async def open(  # noqa: PLR0913 - all but the first are keywords
    uri: Location,
    *,
    branch: str = MAIN,
    actor: str | None = None,
    read_only: bool = False,
    durability: Durability = "fsync",
    storage_options: StorageOptions | None = None,
    verify: bool | None = None,
    external_blobs: ExternalBlobs = None,
) -> AsyncGraph:
    """Open a graph for an asynchronous program; see `omnigraph.open`."""
    graph = await run(
        opening.open,
        uri,
        branch=branch,
        actor=actor,
        read_only=read_only,
        durability=durability,
        storage_options=storage_options,
        verify=verify,
        external_blobs=external_blobs,
    )
    return AsyncGraph(graph)
