"""The maximum number of bytes that a server accepts in one load. Larger loads are sent in parts."""

from omnigraph.errors import NotFound, ResourceLimitExceeded

from .exchange import Exchange

UNQUESTIONED_BYTES = 16 << 20  # up to this size, a body is sent without reading the server's limit
REQUEST_RESOURCE = "graph_batch_request_bytes"


def read_load_limit(exchange: Exchange, size: int) -> int:
    """Return the maximum size of one request in bytes, for a load of `size` bytes.

    The server is asked for its limit only if the load is large.
    """
    if size <= UNQUESTIONED_BYTES:
        return size
    try:
        return int(exchange.get("limits")["load_bytes"]) or size
    except NotFound:  # an earlier version of the server
        return UNQUESTIONED_BYTES


def find_exceeded_limit(error: ResourceLimitExceeded, size: int) -> int:
    """Return the request size limit that a load has exceeded. Reraise an error about any other limit."""
    limit = error.limit or UNQUESTIONED_BYTES  # a proxy does not report its limit
    if error.resource not in (None, REQUEST_RESOURCE) or size <= limit:
        raise error
    return limit
