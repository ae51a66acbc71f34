"""Parse the address of a graph on a server.

This module defines the syntax of addresses. An address never contains a secret. An address with a password is rejected,
and the error does not show the password.
"""

from urllib.parse import quote, unquote, urlsplit

from omnigraph.errors import InputError
from omnigraph.records.frozen import record

_DEFAULT_PORTS = {"http": 80, "https": 443}
_UNIX_SCHEME = "http+unix"
REMOTE_SCHEMES = ("http://", "https://", f"{_UNIX_SCHEME}://")


@record
class ServerAddress:
    """The address of a server: its host and port, or its Unix socket. `prefix` is a path that a proxy adds.

    >>> str(ServerAddress("https", "db.example.org", 443))
    'https://db.example.org'
    """

    scheme: str
    host: str
    port: int
    prefix: str = ""
    socket_path: str | None = None

    @property
    def uses_tls(self) -> bool:
        """Whether connections are encrypted."""
        return self.scheme == "https"

    def __str__(self) -> str:
        if self.socket_path is not None:
            return f"{_UNIX_SCHEME}://{quote(self.socket_path, safe='')}{self.prefix}"
        host = f"[{self.host}]" if ":" in self.host else self.host
        port = "" if self.port == _DEFAULT_PORTS[self.scheme] else f":{self.port}"
        return f"{self.scheme}://{host}{port}{self.prefix}"


@record
class GraphUrl:
    """A server and the id of a graph on it."""

    server: ServerAddress
    graph_id: str

    @property
    def path(self) -> str:
        """The path prefix of the graph's routes."""
        return f"/graphs/{quote(self.graph_id, safe='')}"

    def __str__(self) -> str:
        return f"{self.server}{self.path}"


def is_remote(uri: object) -> bool:
    """Return whether a location is the address of a server rather than a storage location.

    >>> is_remote("https://db.example.org/graphs/g"), is_remote("s3://bucket/g")
    (True, False)
    """
    return isinstance(uri, str) and uri.lower().startswith(REMOTE_SCHEMES)


def parse_server_address(url: str) -> ServerAddress:
    """Return the server in a URL such as `https://host:8080` or `http+unix://%2Frun%2Fomnigraph.sock`.

    >>> parse_server_address("http://localhost:8080/").port
    8080
    """
    scheme, _, location = url.partition("://")
    if "@" in location.partition("/")[0] or "?" in location or "#" in location:
        raise InputError(
            "the URL of a server must not contain credentials, a query or a fragment",
            reason="credentials or parameters in the URL",
            hint="pass the token as `token`, or set OMNIGRAPH_TOKEN",
        )
    if scheme.lower() == _UNIX_SCHEME:
        socket_path, _, prefix = location.partition("/")
        return ServerAddress(_UNIX_SCHEME, "localhost", 0, _clean_prefix(prefix), unquote(socket_path))
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:
        host, port = None, None
    if scheme.lower() not in _DEFAULT_PORTS or not host:
        raise InputError(f"'{url}' is not a valid server URL", reason="expected https://HOST[:PORT]")
    return ServerAddress(scheme.lower(), host, port or _DEFAULT_PORTS[scheme.lower()], _clean_prefix(parts.path))


def parse_graph_address(url: str) -> GraphUrl:
    """Return the server and the graph in a URL. The path segment after `graphs` is the graph's id.

    >>> str(parse_graph_address("https://host/api/graphs/g/"))
    'https://host/api/graphs/g'
    """
    server = parse_server_address(url)
    prefix, separator, graph_id = server.prefix.rpartition("/graphs/")
    if not separator or not graph_id or "/" in graph_id:
        raise InputError(
            f"'{server}' is not the URL of a graph",
            reason="expected https://HOST/graphs/GRAPH",
            hint="add /graphs/ and the graph's id to the URL; if the server has only one graph, its id is `default`",
        )
    address = ServerAddress(server.scheme, server.host, server.port, prefix, server.socket_path)
    return GraphUrl(address, unquote(graph_id))


def _clean_prefix(path: str) -> str:
    path = path.strip("/")
    return f"/{path}" if path else ""
