"""The number of bytes that a server accepts in one load. Larger loads are sent in parts."""

from omnigraph.errors import NotFound, ResourceLimitExceeded

from .exchange import Exchange

UNQUESTIONED_BYTES = 16 << 20  # a body of this size is sent without asking for the limit of the server
_REQUEST_RESOURCE = "graph_batch_request_bytes"


def read_load_limit(exchange: Exchange, size: int) -> int:
    """Return how many bytes of a load of this size may be sent in one request."""
    if size <= UNQUESTIONED_BYTES:
        return size
    try:
        return int(exchange.get("limits")["load_bytes"]) or size
    except NotFound:  # a server of an earlier version
        return UNQUESTIONED_BYTES


def find_exceeded_limit(error: ResourceLimitExceeded, size: int) -> int:
    """Return the limit for requests that a load of this size exceeds. An error about another limit is raised again."""
    limit = error.limit or UNQUESTIONED_BYTES  # a proxy does not report its limit
    if error.resource not in (None, _REQUEST_RESOURCE) or size <= limit:
        raise error
    return limit
