"""`omnigraph.aopen`: open a graph for an asynchronous program, without blocking its event loop."""

from typing import TYPE_CHECKING

from omnigraph.api.async_graph import AsyncGraph
from omnigraph.api.threads import run

from . import opening

if TYPE_CHECKING:
    from omnigraph.api.opening import ExternalBlobs, Location, StorageOptions
    from omnigraph.storage.store import Durability


async def open(  # noqa: PLR0913 - all but the first are keywords
    uri: "Location",
    *,
    branch: str = "main",
    actor: str | None = None,
    read_only: bool = False,
    durability: "Durability | None" = None,
    storage_options: "StorageOptions | None" = None,
    verify: bool | None = None,
    external_blobs: "ExternalBlobs" = None,
    token: str | None = None,
    ca_file: str | None = None,
    timeout: float | None = None,
    retries: int = 3,
) -> AsyncGraph:
    """Open a graph from its files or on a server, for an asynchronous program; see `omnigraph.open`.

    If the graph is on a server, reading the property `head` or `actor` sends a request and blocks the event loop until
    the server responds. All other requests are sent from threads.
    """
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
        token=token,
        ca_file=ca_file,
        timeout=timeout,
        retries=retries,
    )
    return AsyncGraph(graph)
