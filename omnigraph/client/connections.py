"""Connections to one server: TCP, TLS or a Unix socket, kept open between requests.

A connection is used by one thread at a time. An idle connection that the server has closed is discarded before a
request is sent on it, so that a write is not lost on a dead connection. This module does not handle routes or tokens.
"""

import http.client
import os
import select
import socket
import ssl
import threading
import weakref
from typing import Any

from omnigraph.errors import ConfigError
from omnigraph.records.frozen import record
from omnigraph.values import clock_and_ids

from .locations import ServerAddress

_MAX_IDLE_SECONDS = 30.0  # less than the 75 seconds after which the server closes idle connections
_MAX_IDLE_CONNECTIONS = 16


@record
class TlsOptions:
    """The CA file for verifying the server (by default, the system's CAs), and the client's certificate and key."""

    ca_file: str | None = None
    certificate_file: str | None = None
    key_file: str | None = None


def make_tls_context(options: TlsOptions) -> ssl.SSLContext:
    """Return a context that verifies the server; raise `ConfigError` if a file cannot be used."""
    try:
        context = ssl.create_default_context(cafile=options.ca_file)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        if options.certificate_file is not None:
            context.load_cert_chain(options.certificate_file, options.key_file)
    except (OSError, ssl.SSLError) as error:
        raise ConfigError(reason=f"cannot use the TLS files: {getattr(error, 'strerror', None) or error}") from None
    return context


class _UnixConnection(http.client.HTTPConnection):
    """An HTTP connection over a Unix socket."""

    def __init__(self, socket_path: str, timeout: float | None) -> None:
        super().__init__("localhost", timeout=timeout)
        self._socket_path = socket_path

    def connect(self) -> None:
        """Connect to the socket."""
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self._socket_path)


class ConnectionPool:
    """A thread-safe pool of idle connections to one server. A forked process starts with an empty pool."""

    def __init__(self, address: ServerAddress, tls: TlsOptions, connect_seconds: float | None) -> None:
        self._address, self._tls_options, self._connect_seconds = address, tls, connect_seconds
        self._tls_context: ssl.SSLContext | None = None
        self._lock = threading.Lock()
        self._idle: list[tuple[http.client.HTTPConnection, float]] = []
        self._process_id = os.getpid()

    def __getstate__(self) -> tuple[Any, ...]:
        return self._address, self._tls_options, self._connect_seconds

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        self.__init__(*state)  # type: ignore[misc]

    def take(self, timeout: float | None) -> http.client.HTTPConnection:
        """Return an open connection. If none can be opened, raise `OSError` before anything has been sent."""
        connection = self._take_idle() or self._open()
        assert connection.sock is not None  # noqa: S101 - the connection is open
        connection.timeout = timeout
        connection.sock.settimeout(timeout)
        return connection

    def put_back(self, connection: http.client.HTTPConnection) -> None:
        """Keep a connection for the next request. Its last response must have been read completely."""
        if connection.sock is None:
            return
        with self._lock:
            if len(self._idle) < _MAX_IDLE_CONNECTIONS and self._process_id == os.getpid():
                self._idle.append((connection, clock_and_ids.monotonic()))
                return
        connection.close()

    def close(self) -> None:
        """Close all idle connections."""
        with self._lock:
            idle, self._idle = self._idle, []
        for connection, _ in idle:
            connection.close()

    def _take_idle(self) -> http.client.HTTPConnection | None:
        while True:
            with self._lock:
                if self._process_id != os.getpid():  # the sockets belong to the parent process
                    self._idle, self._process_id = [], os.getpid()
                if not self._idle:
                    return None
                connection, idle_since = self._idle.pop()
            if clock_and_ids.monotonic() - idle_since < _MAX_IDLE_SECONDS and not _is_closed_by_server(connection):
                return connection
            connection.close()

    def _open(self) -> http.client.HTTPConnection:
        address, timeout = self._address, self._connect_seconds
        connection: http.client.HTTPConnection
        if address.socket_path is not None:
            connection = _UnixConnection(address.socket_path, timeout)
        elif address.uses_tls:
            self._tls_context = self._tls_context or make_tls_context(self._tls_options)
            connection = http.client.HTTPSConnection(
                address.host, address.port, timeout=timeout, context=self._tls_context
            )
        else:
            connection = http.client.HTTPConnection(address.host, address.port, timeout=timeout)
        connection.connect()
        if address.socket_path is None:
            connection.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        # An abandoned graph must not leave open sockets behind. A `__del__` method might run too late, because the
        # garbage collector finalizes a cycle in any order, and may reach the socket first.
        weakref.finalize(connection, connection.sock.close)
        return connection


def _is_closed_by_server(connection: http.client.HTTPConnection) -> bool:
    """Return whether an idle connection has input; as no request is pending, this can only be the end of the stream."""
    if connection.sock is None:
        return True
    poller = select.poll()
    poller.register(connection.sock, select.POLLIN)
    return bool(poller.poll(0))
