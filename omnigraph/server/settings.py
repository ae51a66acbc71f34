"""The settings of a server, which the supervisor passes to every worker as JSON.

This module defines the default values of all limits. It contains no secrets: each process reads the tokens from the
token file or the environment.
"""

import logging
import os
import re
from typing import Literal

import msgspec

from omnigraph.errors import ConfigError, InputError, redact_uri

LogFormat = Literal["text", "json"]
GRAPH_ID_PATTERN = re.compile(r"[a-zA-Z0-9-]{1,64}")
RESERVED_GRAPH_IDS = frozenset({"policies", "healthz", "openapi", "graphs"})
DEFAULT_GRAPH_ID = "default"
DEFAULT_BIND = "127.0.0.1:8080"
DEFAULT_REFRESH_SECONDS = 300.0  # a revoked key may remain accepted for this long
MEBIBYTE = 1 << 20
DEFAULT_QUERY_MEMORY = 4096 * MEBIBYTE  # the total for all workers


class GraphLocation(msgspec.Struct, frozen=True):
    """A graph that the server serves: its id in paths, and its storage location."""

    graph_id: str
    uri: str


class TlsFiles(msgspec.Struct, frozen=True):
    """The certificate and key of the server, and the CA for verifying client certificates."""

    certificate: str
    key: str
    client_ca: str | None = None


class RequestLimits(msgspec.Struct, frozen=True, kw_only=True):
    """Limits for a single request, and for all running requests of one actor or graph.

    A limit of 0 means unlimited. The limits per actor and per graph apply across all workers. Each worker holds at most
    `body_memory_bytes` of request bodies in memory.
    """

    json_bytes: int = MEBIBYTE
    query_bytes: int = 32 * MEBIBYTE
    load_bytes: int = 32 * MEBIBYTE
    blob_bytes: int = 32 * MEBIBYTE
    body_memory_bytes: int = 256 * MEBIBYTE
    result_rows: int = 0
    result_bytes: int = 0
    query_memory_bytes: int = DEFAULT_QUERY_MEMORY
    query_seconds: float = 0.0
    actor_requests: int = 16
    actor_bytes: int = 4 << 30
    export_slots: int = 4
    header_bytes: int = 64 << 10
    header_seconds: float = 15.0
    body_seconds: float = 60.0
    write_seconds: float = 300.0
    keep_alive_seconds: float = 75.0
    stream_bytes: int = 64 << 10


class LaneSizes(msgspec.Struct, frozen=True, kw_only=True):
    """The numbers of threads and the queue lengths of a worker's two lanes."""

    read_threads: int = 8
    read_queue: int = 256
    heavy_threads: int = 8
    heavy_queue: int = 256


class ServerSettings(msgspec.Struct, frozen=True, kw_only=True):
    """All settings of a worker, except secrets.

    >>> settings = ServerSettings(graphs=(GraphLocation("default", "data/graph"),))
    >>> settings.bind, settings.flat_graph_id
    ('127.0.0.1:8080', 'default')
    """

    graphs: tuple[GraphLocation, ...]
    bind: str = DEFAULT_BIND
    unix_socket: str | None = None
    workers: int = 1
    unauthenticated: bool = False
    token_permission: str = "read"  # noqa: S105 - the name of a permission
    oidc_issuer: str | None = None
    oidc_audience: str | None = None
    oidc_jwks_url: str | None = None
    oidc_refresh_seconds: float = DEFAULT_REFRESH_SECONDS
    tls: TlsFiles | None = None
    queries_directory: str | None = None
    runtime_directory: str | None = None
    default_graph: str | None = None
    requires_all_graphs: bool = False
    flat_routes: bool = True
    hide_uris: bool = False
    cors_origins: tuple[str, ...] = ()
    forwarded_allow_ips: str | None = None
    shutdown_grace: float = 30.0
    log_format: LogFormat = "text"
    log_level: str = "info"
    tracing: bool = False
    limits: RequestLimits = RequestLimits()
    lanes: LaneSizes = LaneSizes()

    @property
    def flat_graph_id(self) -> str | None:
        """The graph that is also served without its prefix, or None."""
        if not self.flat_routes:
            return None
        if self.default_graph is not None:
            return self.default_graph
        return self.graphs[0].graph_id if len(self.graphs) == 1 else None


def parse_graph_locations(arguments: tuple[str, ...]) -> tuple[GraphLocation, ...]:
    """Parse `URI` or `NAME=URI` arguments. A single graph without a name is named `default`.

    >>> [location.graph_id for location in parse_graph_locations(("people=a", "docs=s3://bucket/b"))]
    ['people', 'docs']
    """
    locations = [_parse_location(argument) for argument in arguments]
    if len(locations) > 1 and any(location.graph_id == DEFAULT_GRAPH_ID for location in locations):
        raise InputError("several graphs require names", reason="pass NAME=URI for each graph")
    graph_ids = [location.graph_id for location in locations]
    repeated = next((graph_id for graph_id in graph_ids if graph_ids.count(graph_id) > 1), None)
    if repeated is not None:
        raise InputError(f"the graph '{repeated}' is specified twice", reason="graph ids must be unique")
    return tuple(locations)


def _parse_location(argument: str) -> GraphLocation:
    name, separator, uri = argument.partition("=")
    if not separator or "/" in name or ":" in name:
        return GraphLocation(DEFAULT_GRAPH_ID, argument)
    require_graph_id(name)
    if not uri:
        raise InputError(f"'{argument}' has no location", reason="expected NAME=URI")
    return GraphLocation(name, uri)


def require_graph_id(graph_id: str) -> str:
    """Return a valid graph id; raise `InputError` for anything else."""
    if GRAPH_ID_PATTERN.fullmatch(graph_id) is None or graph_id in RESERVED_GRAPH_IDS:
        hint = "a graph id must consist of 1 to 64 letters, digits or hyphens, and must not be a reserved word"
        raise InputError("invalid graph id", reason="invalid graph id", hint=hint)
    return graph_id


def parse_bind(bind: str) -> tuple[str, int]:
    """Split `host:port`; an IPv6 address is written in brackets.

    >>> parse_bind("127.0.0.1:0"), parse_bind("[::1]:8080")
    (('127.0.0.1', 0), ('::1', 8080))
    """
    host, separator, port = bind.rpartition(":")
    if not separator or not port.isdecimal() or int(port) > 65535:
        raise ConfigError(reason=f"'{bind}' is not an address; expected HOST:PORT, such as {DEFAULT_BIND}")
    return host.strip("[]"), int(port)


def read_number_variable(name: str, default: int) -> int:
    """Return the number in an environment variable, or the default if it is unset or invalid. Log an invalid value."""
    text = os.environ.get(name, "").strip()
    if not text:
        return default
    if not text.isascii() or not text.isdecimal():
        logging.getLogger("omnigraph.server").warning("%s is not a number; using %d", name, default)
        return default
    return int(text)


def read_boolean_variable(name: str) -> bool:
    """Return whether an environment variable is set to a value other than whitespace, `0` or `false`."""
    return os.environ.get(name, "").strip().lower() not in ("", "0", "false")


def public_uri(settings: ServerSettings, location: GraphLocation) -> str:
    """Return the location of a graph for responses: its URI without secrets, or only its path on this server."""
    return f"/graphs/{location.graph_id}" if settings.hide_uris else redact_uri(location.uri)
