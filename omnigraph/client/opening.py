"""`omnigraph.open`: open a graph by its location, either its files or its URL on a server."""

import os
from typing import TYPE_CHECKING, Any

from omnigraph.errors import UsageError

from .locations import is_remote

if TYPE_CHECKING:
    from omnigraph.api.graph import Graph
    from omnigraph.api.opening import ExternalBlobs, Location, StorageOptions
    from omnigraph.storage.store import Durability

_MAIN = "main"


def open(  # noqa: PLR0913 - all but the first are keywords
    uri: "Location",
    *,
    branch: str = _MAIN,
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
) -> "Graph":
    """Open a graph from its files, or connect to a graph on a server.

    A path, `file://` or `s3://` location opens the files. Unless `read_only` is true, interrupted operations are
    recovered first. `storage_options` configure an object store and override the `AWS_*` variables. If `verify` or
    `OMNIGRAPH_VERIFY=1` is set, the checksum of each file is verified on first use. `external_blobs` lists locations
    such as `s3://bucket/prefix` and `file:///data`. A write can then pass the URI of an object in one of these
    locations as a blob, and the object's bytes are copied into the graph. The default is the space-separated list in
    `OMNIGRAPH_EXTERNAL_BLOBS`. If that is not set, no location is allowed.

    `https://HOST/graphs/GRAPH` opens a graph on a server. `token` is the bearer token, by default `OMNIGRAPH_TOKEN`.
    `ca_file` is a file with the CA that issued the server's certificate. `timeout` is the maximum time to wait for each
    response, in seconds. A request that is safe to repeat is sent again at most `retries` times. The graph has the same
    methods as a graph that is opened from its files, but methods that need the files raise `NotSupportedRemotely`.
    """
    server_options: dict[str, Any] = {"token": token, "ca_file": ca_file, "timeout": timeout}
    file_options: dict[str, Any] = {
        "durability": durability,
        "storage_options": storage_options,
        "verify": verify,
        "external_blobs": external_blobs,
        "actor": actor,
    }
    if is_remote(uri):
        _reject_options(file_options, "the server controls the storage and determines the actor")
        return open_remote(str(uri), branch=branch, read_only=read_only, retries=retries, **server_options)
    from omnigraph.api import opening

    _reject_options(server_options, "a location without http:// or https:// is not on a server")
    return opening.open(
        uri, branch=branch, read_only=read_only, **(file_options | {"durability": durability or "fsync"})
    )


def open_remote(  # noqa: PLR0913 - all but the first are keywords
    uri: str,
    *,
    branch: str = _MAIN,
    read_only: bool = False,
    token: str | None = None,
    ca_file: str | None = None,
    timeout: float | None = None,
    retries: int = 3,
) -> "Graph":
    """Open a graph on a server, and check that the server has the branch and accepts the token."""
    from omnigraph.values.name_rules import strip_name

    from .connections import TlsOptions
    from .exchange import Exchange
    from .graph import RemoteGraph
    from .handle import RemoteHandle
    from .locations import parse_graph_address
    from .retries import RetryPolicy

    address = parse_graph_address(uri)
    exchange = Exchange(
        address,
        token=token if token is not None else os.environ.get("OMNIGRAPH_TOKEN") or None,
        tls=TlsOptions(ca_file=ca_file),
        policy=RetryPolicy(retries=retries),
        timeout=timeout,
    )
    handle = RemoteHandle(exchange, str(address), strip_name(branch), read_only=read_only)
    try:
        exchange.get("snapshot", branch=handle.branch_name)
    except BaseException:
        exchange.close()
        raise
    graph: Any = RemoteGraph(handle)
    return graph  # type: ignore[no-any-return] # has the same interface, without the members that need files


def _reject_options(options: dict[str, Any], reason: str) -> None:
    unusable = next((name for name, value in options.items() if value is not None), None)
    if unusable is not None:
        raise UsageError(reason=f"the option `{unusable}` cannot be used for this location: {reason}")
